"""The builtins of an open store: read by name, and kept up to date by processes that write."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalog.engine.builtins.derived_rows import changed_collections, follow, is_behind
from catalog.engine.builtins.migrate import BuiltinMigrationResult, BuiltinMigrator, ResolvedBuiltin, attach
from catalog.engine.log.place import StorePlace
from catalog.engine.shard.schema import DIFF
from catalog.engine.stash.engine_rows import BUILTIN_COLLECTIONS
from catalog.engine.stash.stash import Stash
from catalog.errors import (
    BuiltinsTooNewError,
    CatalogError,
    ShardFinalizedError,
    UninstructedSchemaError,
    UnknownCollectionError,
    UnmigratedBuiltinsError,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from catalog.engine.builtins.store_metrics import StoreMetric
    from catalog.engine.shard.reader import ShardSnapshot


Use = Callable[[BuiltinMigrator], BuiltinMigrationResult]
"""Resolves the builtins that a process uses: `inspect`, `attach`, `run_leader` and so on in `migrate`."""


def open_builtins(place: StorePlace, stash: Stash, generation: int | None, use: Use) -> BuiltinTables | None:
    """Open the builtins of a store; return none if the project has none."""
    process = process_of(place, stash, generation)
    if process is None:
        return None
    stash.protected |= BUILTIN_COLLECTIONS
    return BuiltinTables(process, use(process), use)


def open_migrated_builtins(place: StorePlace, stash: Stash) -> BuiltinTables | None:
    """Open the builtins for maintenance; return none unless they are those of this build."""
    with suppress(BuiltinsTooNewError, UninstructedSchemaError, UnmigratedBuiltinsError):
        return open_builtins(place, stash, None, attach)
    return None


def maintain_builtins(place: StorePlace, stash: Stash) -> None:
    """Bring the builtins of this build up to date and measure the store, as maintenance always does."""
    if stash.replica.row_version == place.project.current:
        stash.join()
        tables = open_migrated_builtins(place, stash)
        if tables is not None:
            tables.maintain()


def process_of(place: StorePlace, stash: Stash, generation: int | None) -> BuiltinMigrator | None:
    """Return the migrator for a deploy generation, by default the store's; none if there are no builtins."""
    if place.project.builtins is None:
        return None
    return BuiltinMigrator(
        place.project.builtins(),
        stash,
        place.shard_log,
        stash.state.fence.generation if generation is None else generation,
    )


@dataclass(slots=True)
class BuiltinTables:
    process: BuiltinMigrator
    outcome: BuiltinMigrationResult
    use: Use
    postponed: CatalogError | None = None
    """The error because of which rows were last postponed."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(name.object_name for name in self.outcome.used))

    def snapshot(self, name: str) -> ShardSnapshot | None:
        """Return the rows of a builtin; none if no leader has created it yet.

        If a leader has replaced it meanwhile, a process that only reads resolves its shard again.
        """
        try:
            return self._snapshot(self._used(name))
        except ShardFinalizedError:
            if self.process.stash.fence is not None:
                raise
            self.outcome = self.use(self.process)
            return self._snapshot(self._used(name))

    def table(self, name: str) -> pa.Table:
        import pyarrow as pa  # noqa: PLC0415 - not every process reads builtins

        found, schema = self.snapshot(name), self._used(name).schema
        rows = pa.Table.from_batches([], schema.outer) if found is None else found.table()
        return rows.drop_columns([DIFF])

    def measures(self) -> tuple[StoreMetric, ...]:
        """Return the recorded sizes of the collections, the oldest first."""
        from catalog.engine.builtins.store_metrics import read_measures  # noqa: PLC0415 - as above

        name = self.process.declared.measures
        used = None if name is None else self.outcome.used.get(name)
        return () if used is None or used.shard is None else read_measures(self.process.shard(used.shard))

    def follow(self, rows_max: int | None = None) -> None:
        """Bring derived builtins up to date with the rows of this process.

        With `rows_max`, a builtin for which more rows would be compared is left to maintenance and to the next reader.
        """
        self._attempt(lambda: self._follow(rows_max))

    def measure(self) -> None:
        """Record the present sizes of the collections."""
        self._attempt(self._measure)

    def maintain(self) -> None:
        """Follow, measure, and compact the shards that are due."""
        self._attempt(self._follow, self._measure, self._compact)

    def _attempt(self, *works: Callable[[], None]) -> None:
        """Do the work as far as possible: errors are recorded, and the work is tried again at the next maintenance."""
        self.postponed = None
        for work in works:
            try:
                work()
            except CatalogError as postponed:
                self.postponed = self.postponed or postponed

    def _snapshot(self, used: ResolvedBuiltin) -> ShardSnapshot | None:
        return None if used.shard is None else self.process.shard(used.shard).reader(used.schema).snapshot()

    def _follow(self, rows_max: int | None = None) -> None:
        process, changed = self.process, changed_collections(self.process.stash)
        for name, derivation in process.declared.derivations.items():
            used = self.outcome.used[name]
            if used.shard is not None and is_behind(derivation, process.logs(used.shard), process.stash, changed):
                follow(derivation, used.schema, process.shard(used.shard), process.stash, rows_max)

    def _measure(self) -> None:
        from catalog.engine.builtins.store_metrics import measure  # noqa: PLC0415 - upgrades and maintenance alone

        name = self.process.declared.measures
        used = None if name is None else self.outcome.used.get(name)
        if used is not None and used.shard is not None:
            measure(self.process.stash, self.process.shard(used.shard))

    def _compact(self) -> None:
        for used in self.outcome.used.values():
            if used.shard is not None and (shard := self.process.shard(used.shard)).due() is not None:
                shard.compact()

    def _used(self, name: str) -> ResolvedBuiltin:
        for own, used in self.outcome.used.items():
            if name in {str(own), own.object_name}:
                return used
        raise UnknownCollectionError(name, self.names)
