"""The migration shard: which process keeps which replacement shards, `(id, build, deploy generation) → shard`.

A process uses the entries of its own build and generation, and none of others. Every append is made for the exact ts
that was read; whoever is overtaken reads again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from catalog.builtin.columns import rows_table
from catalog.errors import ConflictError, NoStoreError
from catalog.log.protocol import Fence, Log
from catalog.project import Build
from catalog.shard.schema import DIFF, Column, Schema
from catalog.shard.shard import Shard

MIGRATION_SHARD = "builtin_migrations"
"""Its id; the only shard that is known by a name."""

SCHEMA = Schema.of(
    Column(0, "id", pa.int64(), nullable=False),
    Column(1, "build", pa.string(), nullable=False),
    Column(2, "deploy_generation", pa.int64(), nullable=False),
    Column(3, "shard", pa.string(), nullable=False),
)

Logs = Callable[[str], Log]
"""The log of a shard of the store, by the shard's id; whether there is one yet or not."""


@dataclass(frozen=True, slots=True)
class Entry:
    id: int
    build: Build
    generation: int
    shard: str

    def is_earlier_than(self, build: Build, fence: Fence) -> bool:
        """Whether it is of a lower build, or of this one and a lower generation."""
        return (self.build, self.generation) < (build, fence.generation)


@dataclass(frozen=True, slots=True)
class Entries:
    logs: Logs
    fence: Fence

    def read(self) -> tuple[Entry, ...]:
        try:
            return self._at(Shard.open(self.logs(MIGRATION_SHARD), self.fence))[1]
        except NoStoreError:
            return ()

    def own(
        self, ids: Iterable[int], build: Build, condemned: frozenset[str], new_id: Callable[[], str]
    ) -> Mapping[int, str]:
        """The shard of each id for this build and generation; those that have none, or a condemned one, get one."""
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
            new = [Entry(id_, build, self.fence.generation, new_id()) for id_ in lacking]
            with suppress(ConflictError):
                shard.append(SCHEMA, _rows([*spent, *new]), [-1] * len(spent) + [1] * len(new), expected=ts)

    def delete(self, is_spent: Callable[[Entry], bool]) -> None:
        try:
            shard = Shard.open(self.logs(MIGRATION_SHARD), self.fence)
        except NoStoreError:
            return
        while True:
            ts, found = self._at(shard)
            spent = [one for one in found if is_spent(one)]
            if not spent:
                break
            with suppress(ConflictError):
                shard.append(SCHEMA, _rows(spent), [-1] * len(spent), expected=ts)
        if shard.due() is not None:
            shard.compact()

    def _made(self) -> Shard:
        """The migration shard, made if there is none. Its schema is the same in every build so far."""
        shard = Shard.create(self.logs(MIGRATION_SHARD), self.fence)
        shard.compare_and_evolve_schema(None, SCHEMA)
        return shard

    def _at(self, shard: Shard) -> tuple[int, tuple[Entry, ...]]:
        """What is there, and the ts at which it is."""
        snapshot = shard.reader(SCHEMA).snapshot()
        diffs: Counter[Entry] = Counter()
        for row in (row for batch in snapshot.batches() for row in batch.to_pylist()):
            entry = Entry(row["id"], Build.parse(row["build"]), row["deploy_generation"], row["shard"])
            diffs[entry] += row[DIFF]
        return snapshot.ts, tuple(entry for entry, diff in diffs.items() if diff)


def _rows(entries: Iterable[Entry]) -> pa.Table:
    return rows_table(SCHEMA, [(one.id, str(one.build), one.generation, one.shard) for one in entries])
