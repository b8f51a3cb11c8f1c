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
_COMMITS_READ_MAX = 100
"""So many commits are read again by every start; after more, the shard records that it follows them."""


@dataclass(frozen=True, slots=True)
class Derivation:
    """How the rows of a builtin follow from those of collections, each by itself."""

    sources: Mapping[str, Derive]


def follow(derivation: Derivation, schema: Schema, shard: Shard, stash: Stash, rows_max: int | None = None) -> bool:
    """Bring a shard up to date with what the stash shows; answer whether it is.

    With `rows_max`, whoever cannot wait leaves it as it is if more rows than that would have to be compared.
    """
    while True:
        state, shown = shard.head.catch_up(), stash.view()
        followed = state.marks.get(Mark.FOLLOWED)
        if followed is not None and not _is_due(derivation, stash, shown.state, followed):
            return True
        rows = None if followed is None else _happened(derivation, schema, stash, followed)
        if rows is None:
            if rows_max is not None and _source_rows(derivation, shown.state) > rows_max:
                return False
            rows = _compared(derivation, schema, shard, stash)
        with suppress(ConflictError):  # another process did the same
            shard.append(
                schema, rows.drop_columns([DIFF]), rows[DIFF], expected=state.version, followed=shown.state.version
            )
            return True


def _is_due(derivation: Derivation, stash: Stash, shown: State, followed: int) -> bool:
    """Whether a source may have changed since. A shard that is ahead of what this process shows is left alone.

    Files tell, unless a source has none: then all of its rows may have gone since, and commits tell, if they are few.
    """
    sources = [file for file in shown.files.values() if file.collection in derivation.sources]
    if followed >= shown.version or any(file.ts_max > followed for file in sources):
        return followed < shown.version
    if not derivation.sources.keys() - {file.collection for file in sources}:
        return False
    if shown.version - followed > _COMMITS_READ_MAX:
        return True
    try:
        added = (file.collection for commit in stash.head.commits(followed) for file in commit.adds)
        return any(name in derivation.sources for name in added)
    except (RetiredError, VersionChangedError, NoSuchVersionError):
        return True


def _source_rows(derivation: Derivation, shown: State) -> int:
    return sum(file.rows for file in shown.files.values() if file.collection in derivation.sources)


def _happened(derivation: Derivation, schema: Schema, stash: Stash, followed: int) -> pa.Table | None:
    """Rows with their diffs since a ts; none if that is not to be had any more."""
    try:
        return _added_up(schema, _tables(schema, _since(derivation, stash, followed)))
    except (RetiredError, VersionChangedError, NoSuchVersionError):
        return None


def _compared(derivation: Derivation, schema: Schema, shard: Shard, stash: Stash) -> pa.Table:
    """Rows with their diffs: what is between all that is there and all that should be."""
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
