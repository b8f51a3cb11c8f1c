"""Builtins whose rows follow from those of the stash, one row of it at a time.

A shard records the ts of the stash that it follows up to, in the commit that makes it so. Whoever brings it up to date
takes the changes since, or if those are not to be had any more compares all rows; two who do so at once end the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catalog.builtin.columns import Row, rows_table
from catalog.errors import ConflictError, NoSuchVersionError, RetiredError, VersionChangedError
from catalog.log.protocol import Mark, State
from catalog.shard.order import consolidate, numbers
from catalog.shard.schema import DIFF, Schema
from catalog.shard.shard import Shard
from catalog.stash.stash import Stash

Derive = Callable[[Any, Any], Iterable[Row]]
"""From a key and a value, rows in the columns of a builtin."""

_ROWS_AT_ONCE = 50_000


@dataclass(frozen=True, slots=True)
class Derivation:
    """How the rows of a builtin follow from those of collections, each by itself."""

    sources: Mapping[str, Derive]


def follow(derivation: Derivation, schema: Schema, shard: Shard, stash: Stash) -> bool:
    """Bring a shard up to date with what the stash shows; answer whether there was anything to do."""
    while True:
        state, shown = shard.head.catch_up(), stash.view()
        followed = state.marks.get(Mark.FOLLOWED)
        if followed is not None and not _is_due(derivation, shown.state, followed):
            return False
        rows = _changes(derivation, schema, shard, stash, followed)
        with suppress(ConflictError):  # another process did the same
            shard.append(
                schema, rows.drop_columns([DIFF]), rows[DIFF], expected=state.version, followed=shown.state.version
            )
            return True


def _is_due(derivation: Derivation, shown: State, followed: int) -> bool:
    """Whether a source may have changed since. A shard that is ahead of what this process shows is left alone."""
    sources = (file for file in shown.files.values() if file.collection in derivation.sources)
    return followed < shown.version and any(file.ts_max > followed for file in sources)


def _changes(derivation: Derivation, schema: Schema, shard: Shard, stash: Stash, followed: int | None) -> pa.Table:
    """Rows with their diffs: what happened since, or what is between all that should be there and all that is."""
    if followed is not None:
        with suppress(RetiredError, VersionChangedError, NoSuchVersionError):
            return _added_up(schema, _tables(schema, _since(derivation, stash, followed)))
    present = shard.reader(schema).snapshot().table()
    gone = present.set_column(present.num_columns - 1, schema.outer.field(DIFF), pc.negate(present[DIFF]))
    return _added_up(schema, [gone, *_tables(schema, _all(derivation, stash))])


def _since(derivation: Derivation, stash: Stash, followed: int) -> Iterator[tuple[Row, int]]:
    for name, key, value, _, diff in stash.feed(derivation.sources.keys(), followed, until=stash.ts):
        yield from ((row, diff) for row in derivation.sources[name](key, value))


def _all(derivation: Derivation, stash: Stash) -> Iterator[tuple[Row, int]]:
    view, registry = stash.view(), stash.head.registry
    for name, derive in derivation.sources.items():
        collection = registry.named(name)
        for stored in view.rows(name):
            yield from ((row, 1) for row in derive(*collection.decode(*stored)))


def _tables(schema: Schema, found: Iterator[tuple[Row, int]]) -> Iterator[pa.Table]:
    """Rows and diffs in columns; as Python values only some at a time."""
    while some := list(islice(found, _ROWS_AT_ONCE)):
        rows = rows_table(schema, [row for row, _ in some])
        yield rows.append_column(schema.outer.field(DIFF), [numbers(np.array([diff for _, diff in some], np.int64))])


def _added_up(schema: Schema, tables: Iterable[pa.Table]) -> pa.Table:
    joined = pa.concat_tables([pa.Table.from_batches([], schema.outer), *tables]).combine_chunks()
    return pa.Table.from_batches([consolidate(batch) for batch in joined.to_batches()], schema.outer)
