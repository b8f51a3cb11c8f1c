"""A store whose builtins are migrated, and short words for what is in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from catalog.builtin.declared import Declared
from catalog.builtin.entries import Entries, Entry
from catalog.builtin.plan import Stored
from catalog.builtin.records import Records
from catalog.builtin.run import Outcome, Process, run_leader, run_read_only
from catalog.constraints import CONSTRAINTS
from catalog.generated import objects_pb2 as types
from catalog.log.protocol import Fence, Reached, pass_on
from catalog.project import Build
from catalog.shard.shard import Shard, shard_uri
from catalog.stash.collections import Registry
from catalog.stash.stash import Stash
from catalog.stash.transaction import Transaction
from tests.builtin.releases import name
from tests.contract.places import DeltaPlace, MemoryPlace, Place

REGISTRY = Registry.of(types)
FENCE = Fence(9, 9)


@dataclass
class Store:
    uri: str | None
    """A folder; none: in memory."""
    places: dict[str, Place] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.place("stash").open().create("made")

    def place(self, text: str) -> Place:
        if text not in self.places:
            uri = self.uri
            own = (
                MemoryPlace()
                if uri is None
                else DeltaPlace(f"{uri}/stash" if text == "stash" else shard_uri(uri, text))
            )
            self.places[text] = own
        return self.places[text]

    def process(self, declared: Declared, generation: int = 1, reached: Reached = pass_on) -> Process:
        stash = Stash.open(self.place("stash").open(reached), REGISTRY, CONSTRAINTS)
        return Process(declared, stash, lambda shard: self.place(shard).open(reached), generation)

    def lead(self, declared: Declared, generation: int = 1, reached: Reached = pass_on) -> Outcome:
        process = self.process(declared, generation, reached)
        process.stash.take_over(generation, "test")
        return run_leader(process)

    def read(self, declared: Declared, generation: int = 1, reached: Reached = pass_on) -> Outcome:
        return run_read_only(self.process(declared, generation, reached))

    def stored(self, declared: Declared) -> Stored:
        return self.records().stored(declared)

    def records(self) -> Records:
        stash = Stash.open(self.place("stash").open(), REGISTRY, CONSTRAINTS)
        return Records(Transaction(REGISTRY, stash.view()))

    def version(self, declared: Declared) -> Build | None:
        return self.stored(declared).version

    def entries(self) -> set[Entry]:
        return set(Entries(lambda shard: self.place(shard).open(), FENCE).read())

    def shard(self, text: str) -> Shard:
        return Shard.open(self.place(text).open(), FENCE)

    def write(self, outcome: Outcome, text: str, row: Mapping[str, Any]) -> None:
        """Add a row to a builtin, as the process of an outcome does."""
        used = outcome.used[name(text)]
        assert used.shard is not None
        fields = [pa.field(column.name, column.type, column.nullable) for column in used.schema.columns]
        self.shard(used.shard).append(used.schema, pa.Table.from_pylist([dict(row)], schema=pa.schema(fields)))

    def rows(self, outcome: Outcome, text: str) -> list[dict[str, Any]]:
        used = outcome.used[name(text)]
        assert used.shard is not None
        found = self.shard(used.shard).reader(used.schema).snapshot().table().drop_columns(["_diff"])
        return list(found.to_pylist())

    def ts(self) -> int:
        """How far the stash is: whoever writes nothing to it leaves that as it is."""
        return self.place("stash").open().verify()
