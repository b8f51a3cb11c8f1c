"""The migration shard: which process keeps which replacement shards, `(id, build, deploy generation) → shard`.

A process uses the entries of its own build and generation, and none of others. Every append is made for the exact ts
that was read; a process that is overtaken reads again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalog.engine.base.fence import Fence
from catalog.engine.base.lazy_arrow import pa
from catalog.engine.base.project import BuildVersion
from catalog.engine.log.protocol import Log
from catalog.engine.shard.row_table import rows_table
from catalog.engine.shard.schema import DIFF, Column, Schema
from catalog.errors import ConflictError, NoStoreError

if TYPE_CHECKING:
    from catalog.engine.shard.shard import Shard

MIGRATION_SHARD = "builtin_migrations"
"""Its id; the only shard that is known by a name."""

SCHEMA = Schema.of(
    Column(0, "id", "int64", nullable=False),
    Column(1, "build", "string", nullable=False),
    Column(2, "deploy_generation", "int64", nullable=False),
    Column(3, "shard", "string", nullable=False),
)

Logs = Callable[[str], Log]
"""Returns the log of a shard by its id; the log may not exist yet."""


@dataclass(frozen=True, slots=True)
class ReplacementShard:
    id: int
    build: BuildVersion
    generation: int
    shard: str

    def is_earlier_than(self, build: BuildVersion, fence: Fence) -> bool:
        """Tell if the entry is of an older build, or of this build and a lower generation."""
        return (self.build, self.generation) < (build, fence.generation)


@dataclass(frozen=True, slots=True)
class ReplacementShards:
    logs: Logs
    fence: Fence

    def ts(self) -> int | None:
        """Return the newest ts of the migration shard; none if there is no such shard. Reads no entry."""
        try:
            return self.logs(MIGRATION_SHARD).verify()
        except NoStoreError:
            return None

    def read(self) -> tuple[ReplacementShard, ...]:
        try:
            return self._at(self._open())[1]
        except NoStoreError:
            return ()

    def own(
        self, ids: Iterable[int], build: BuildVersion, condemned: frozenset[str], new_id: Callable[[], str]
    ) -> Mapping[int, str]:
        """Return the shard of each id for this build and generation; add one where none can be used."""
        wanted = tuple(ids)
        if not wanted:
            return {}
        shard = self._made()
        while True:
            ts, found = self._at(shard)
            own = {one.id: one for one in found if (one.build, one.generation) == (build, self.fence.generation)}
            lacking = [id_ for id_ in wanted if id_ not in own or own[id_].shard in condemned]
            if not lacking:
                return {id_: own[id_].shard for id_ in wanted}
            spent = [own[id_] for id_ in lacking if id_ in own]
            new = [ReplacementShard(id_, build, self.fence.generation, new_id()) for id_ in lacking]
            with suppress(ConflictError):
                shard.append(SCHEMA, _rows([*spent, *new]), [-1] * len(spent) + [1] * len(new), expected=ts)

    def delete(self, is_spent: Callable[[ReplacementShard], bool]) -> tuple[int | None, tuple[ReplacementShard, ...]]:
        """Delete entries; return those that are left, and the ts at which they were read."""
        try:
            shard = self._open()
        except NoStoreError:
            return None, ()
        while True:
            ts, found = self._at(shard)
            spent = [one for one in found if is_spent(one)]
            if not spent:
                break
            with suppress(ConflictError):
                shard.append(SCHEMA, _rows(spent), [-1] * len(spent), expected=ts)
        if shard.due() is not None:
            shard.compact()
        return ts, found

    def _open(self) -> Shard:
        from catalog.engine.shard.shard import Shard  # noqa: PLC0415 - most starts read no entries

        return Shard.open(self.logs(MIGRATION_SHARD), self.fence)

    def _made(self) -> Shard:
        """Open the migration shard, or create it. Its schema is the same in every build so far."""
        from catalog.engine.shard.shard import Shard  # noqa: PLC0415 - as above

        shard = Shard.create(self.logs(MIGRATION_SHARD), self.fence)
        shard.compare_and_evolve_schema(None, SCHEMA)
        return shard

    def _at(self, shard: Shard) -> tuple[int, tuple[ReplacementShard, ...]]:
        """Read the entries, and the ts at which they were read."""
        snapshot = shard.reader(SCHEMA).snapshot()
        diffs: Counter[ReplacementShard] = Counter()
        for row in (row for batch in snapshot.batches() for row in batch.to_pylist()):
            entry = ReplacementShard(
                row["id"], BuildVersion.parse(row["build"]), row["deploy_generation"], row["shard"]
            )
            diffs[entry] += row[DIFF]
        return snapshot.ts, tuple(entry for entry, diff in diffs.items() if diff)


def _rows(entries: Iterable[ReplacementShard]) -> pa.Table:
    return rows_table(SCHEMA, [(one.id, str(one.build), one.generation, one.shard) for one in entries])
