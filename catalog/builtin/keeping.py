"""The builtins of an open store: read by name, and kept up to date by whoever may write."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalog.builtin.deriving import follow
from catalog.builtin.run import Outcome, Process, Used, join
from catalog.errors import (
    BuiltinsTooNewError,
    CatalogError,
    ShardFinalizedError,
    UninstructedSchemaError,
    UnknownCollectionError,
    UnmigratedBuiltinsError,
)
from catalog.log.delta import DeltaLog
from catalog.project import Place
from catalog.shard.schema import DIFF
from catalog.shard.shard import shard_uri
from catalog.stash.stash import Stash

if TYPE_CHECKING:
    import pyarrow as pa

    from catalog.builtin.measures import Measure
    from catalog.shard.reader import Snapshot


Use = Callable[[Process], Outcome]
"""How a process comes to the builtins that it uses: one of the verbs of `run`."""


def keep(place: Place, stash: Stash, generation: int | None, use: Use) -> Keeper | None:
    """The builtins of the store at a place, as a stash tells of them; none if the project has none."""
    process = process_of(place, stash, generation)
    return None if process is None else Keeper(process, use(process), use)


def keep_migrated(place: Place, stash: Stash) -> Keeper | None:
    """The builtins, for whoever maintains the store; none unless they are those of this build."""
    with suppress(BuiltinsTooNewError, UninstructedSchemaError, UnmigratedBuiltinsError):
        return keep(place, stash, None, join)
    return None


def process_of(place: Place, stash: Stash, generation: int | None) -> Process | None:
    """Whoever opens the store, for a deploy generation or that of the store; none if the project has no builtins."""
    if place.project.builtins is None:
        return None
    return Process(
        place.project.builtins(),
        stash,
        lambda shard: DeltaLog(shard_uri(place.uri, shard), place.options),
        stash.head.state.fence.generation if generation is None else generation,
    )


@dataclass(slots=True)
class Keeper:
    process: Process
    outcome: Outcome
    use: Use
    postponed: CatalogError | None = None
    """Why rows were last left for another time."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(name.object_name for name in self.outcome.used))

    def snapshot(self, name: str) -> Snapshot | None:
        """What a builtin holds; none if no leader has made it yet, and it is empty.

        If a leader has replaced it meanwhile, whoever only reads finds out what is used now.
        """
        try:
            return self._snapshot(self._used(name))
        except ShardFinalizedError:
            if self.process.stash.head.fence is not None:
                raise
            self.outcome = self.use(self.process)
            return self._snapshot(self._used(name))

    def table(self, name: str) -> pa.Table:
        import pyarrow as pa  # noqa: PLC0415 - whoever reads none needs none

        found, schema = self.snapshot(name), self._used(name).schema
        rows = pa.Table.from_batches([], schema.outer) if found is None else found.table()
        return rows.drop_columns([DIFF])

    def measures(self) -> tuple[Measure, ...]:
        """How large the collections were, the oldest first."""
        from catalog.builtin.measures import read_measures  # noqa: PLC0415 - as above

        name = self.process.declared.measures
        used = None if name is None else self.outcome.used.get(name)
        return () if used is None or used.shard is None else read_measures(self.process.shard(used.shard))

    def follow(self, rows_max: int | None = None) -> None:
        """Bring what follows from the stash up to date with what this process shows of it.

        With `rows_max`, what would mean comparing more rows is left to maintenance, and to whoever reads it.
        """
        self._kept(lambda: self._follow(rows_max))

    def measure(self) -> None:
        """Record how large the collections are now."""
        self._kept(self._measure)

    def maintain(self) -> None:
        """All of this, and merge what is in too many pieces."""
        self._kept(self._follow, self._measure, self._compact)

    def _kept(self, *works: Callable[[], None]) -> None:
        """What cannot be done now is no failure of what it goes along with, and is due again."""
        self.postponed = None
        for work in works:
            try:
                work()
            except CatalogError as postponed:
                self.postponed = self.postponed or postponed

    def _snapshot(self, used: Used) -> Snapshot | None:
        return None if used.shard is None else self.process.shard(used.shard).reader(used.schema).snapshot()

    def _follow(self, rows_max: int | None = None) -> None:
        for name, derivation in self.process.declared.derivations.items():
            used = self.outcome.used[name]
            if used.shard is not None:
                follow(derivation, used.schema, self.process.shard(used.shard), self.process.stash, rows_max)

    def _measure(self) -> None:
        from catalog.builtin.measures import measure  # noqa: PLC0415 - upgrades and maintenance alone

        name = self.process.declared.measures
        used = None if name is None else self.outcome.used.get(name)
        if used is not None and used.shard is not None:
            measure(self.process.stash, self.process.shard(used.shard))

    def _compact(self) -> None:
        for used in self.outcome.used.values():
            if used.shard is not None and (shard := self.process.shard(used.shard)).due() is not None:
                shard.compact()

    def _used(self, name: str) -> Used:
        for own, used in self.outcome.used.items():
            if name in {str(own), own.object_name}:
                return used
        raise UnknownCollectionError(name, self.names)
