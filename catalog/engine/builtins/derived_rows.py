"""Builtins whose rows follow from those of the stash, one row of it at a time.

A shard records the ts of the stash that it follows up to, in the commit that makes it so. Whoever brings it up to date
takes the changes since, or if those are not to be had any more compares all rows; two who do so at once end the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from catalog.engine.base.arrow import number_array
from catalog.engine.base.lazy_arrow import pa, pc
from catalog.engine.builtins.declaration import Derivation
from catalog.engine.log.protocol import AppTxn, Log, LogState
from catalog.engine.log.replica import newest_state
from catalog.engine.shard.row_table import Row, rows_table
from catalog.engine.shard.schema import DIFF, FINALIZED, Schema
from catalog.engine.stash.stash import Stash
from catalog.errors import ConflictError, NoSuchVersionError, RetiredError, VersionChangedError

if TYPE_CHECKING:
    from catalog.engine.shard.shard import Shard

_ROWS_AT_ONCE = 50_000
ChangedCollections = Callable[[int], frozenset[str] | None]
"""Returns the collections that were changed after a ts; none if that is no longer known."""
_COMMITS_READ_MAX = 32
"""So many commits are read again by every start; after more, the shard records that it follows them."""


def is_behind(derivation: Derivation, log: Log, stash: Stash, changed: ChangedCollections) -> bool:
    """Tell by the log of a shard if `follow` may have something to do; no row is read."""
    state = newest_state(log)
    followed = state.app_txns.get(AppTxn.FOLLOWED)
    if followed is None or state.files_of(FINALIZED):
        return True
    return _is_due(derivation, changed, stash.view().state, followed)


def changed_collections(stash: Stash) -> ChangedCollections:
    """Return a function that reads the commits after a ts once, however many shards follow them."""

    @cache
    def changed(followed: int) -> frozenset[str] | None:
        try:
            return stash.replica.changed_collections(followed)
        except (RetiredError, VersionChangedError, NoSuchVersionError):
            return None

    return changed


def follow(derivation: Derivation, schema: Schema, shard: Shard, stash: Stash, rows_max: int | None = None) -> bool:
    """Bring a shard up to date with what the stash shows; answer whether it is.

    With `rows_max`, leave the builtin as it is if more rows than that would have to be compared.
    """
    while True:
        state, shown = shard.replica.catch_up(), stash.view()
        followed = state.app_txns.get(AppTxn.FOLLOWED)
        if followed is not None and not _is_due(derivation, changed_collections(stash), shown.state, followed):
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


def _is_due(derivation: Derivation, changed: ChangedCollections, shown: LogState, followed: int) -> bool:
    """Tell if a source may have changed since. A shard that is ahead of the rows of this process is left alone.

    Files tell, unless a source has none: then all of its rows may have gone since, and commits tell, if they are few.
    """
    sources = [file for file in shown.files.values() if file.collection in derivation.sources]
    if followed >= shown.version or any(file.ts_max > followed for file in sources):
        return followed < shown.version
    if not derivation.sources.keys() - {file.collection for file in sources}:
        return False
    if shown.version - followed > _COMMITS_READ_MAX:
        return True
    added = changed(followed)
    return added is None or any(name in derivation.sources for name in added)


def _source_rows(derivation: Derivation, shown: LogState) -> int:
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
    view, registry = stash.view(), stash.registry
    for name, derive in derivation.sources.items():
        collection = registry.named(name)
        for stored in view.rows(name):
            yield from ((row, 1) for row in derive(*collection.decode(*stored)))


def _tables(schema: Schema, found: Iterator[tuple[Row, int]]) -> Iterator[pa.Table]:
    """Rows and diffs in columns; as Python values only some at a time."""
    while some := list(islice(found, _ROWS_AT_ONCE)):
        rows = rows_table(schema, [row for row, _ in some])
        diffs = number_array(pa.int64(), (diff for _, diff in some))
        yield rows.append_column(schema.outer.field(DIFF), diffs)


def _added_up(schema: Schema, tables: Iterable[pa.Table]) -> pa.Table:
    from catalog.engine.shard.row_order import consolidate  # noqa: PLC0415 - a shard that is up to date needs none

    joined = pa.concat_tables([pa.Table.from_batches([], schema.outer), *tables]).combine_chunks()
    return pa.Table.from_batches([consolidate(batch) for batch in joined.to_batches()], schema.outer)
