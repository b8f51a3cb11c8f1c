"""A store whose builtins are migrated, and short words for what is in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from catalog.constraints import CONSTRAINTS
from catalog.engine.base.fence import Fence
from catalog.engine.base.project import BuildVersion
from catalog.engine.builtins.declaration import Declaration
from catalog.engine.builtins.mapping_rows import MappingRows
from catalog.engine.builtins.migrate import BuiltinMigrationResult, BuiltinMigrator, run_leader, run_read_only
from catalog.engine.builtins.plan import StoredBuiltins
from catalog.engine.builtins.replacement_shards import ReplacementShard, ReplacementShards
from catalog.engine.log.protocol import FaultHook, no_fault
from catalog.engine.shard.shard import Shard
from catalog.engine.stash.registry import Registry
from catalog.engine.stash.stash import Stash
from catalog.engine.stash.transaction import Transaction
from catalog.engine.storage.layout import shard_uri
from catalog.generated import objects_pb2 as types
from tests.engine.builtins.releases import name
from tests.engine.log.places import DeltaPlace, MemoryPlace, Place

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

    def process(self, declared: Declaration, generation: int = 1, reached: FaultHook = no_fault) -> BuiltinMigrator:
        stash = Stash.open(self.place("stash").open(reached), REGISTRY, CONSTRAINTS)
        return BuiltinMigrator(declared, stash, lambda shard: self.place(shard).open(reached), generation)

    def lead(self, declared: Declaration, generation: int = 1, reached: FaultHook = no_fault) -> BuiltinMigrationResult:
        process = self.process(declared, generation, reached)
        process.stash.take_over(generation, "test")
        return run_leader(process)

    def read(self, declared: Declaration, generation: int = 1, reached: FaultHook = no_fault) -> BuiltinMigrationResult:
        return run_read_only(self.process(declared, generation, reached))

    def stored(self, declared: Declaration) -> StoredBuiltins:
        return self.records().stored(declared)

    def records(self) -> MappingRows:
        stash = Stash.open(self.place("stash").open(), REGISTRY, CONSTRAINTS)
        return MappingRows(Transaction(REGISTRY, stash.view()))

    def version(self, declared: Declaration) -> BuildVersion | None:
        return self.stored(declared).version

    def entries(self) -> set[ReplacementShard]:
        return set(ReplacementShards(lambda shard: self.place(shard).open(), FENCE).read())

    def shard(self, text: str) -> Shard:
        return Shard.open(self.place(text).open(), FENCE)

    def write(self, outcome: BuiltinMigrationResult, text: str, row: Mapping[str, Any]) -> None:
        """Add a row to a builtin, as the process of an outcome does."""
        used = outcome.used[name(text)]
        assert used.shard is not None
        fields = [pa.field(column.name, column.type, column.nullable) for column in used.schema.columns]
        self.shard(used.shard).append(used.schema, pa.Table.from_pylist([dict(row)], schema=pa.schema(fields)))

    def rows(self, outcome: BuiltinMigrationResult, text: str) -> list[dict[str, Any]]:
        used = outcome.used[name(text)]
        assert used.shard is not None
        found = self.shard(used.shard).reader(used.schema).snapshot().table().drop_columns(["_diff"])
        return list(found.to_pylist())

    def ts(self) -> int:
        """How far the stash is: whoever writes nothing to it leaves that as it is."""
        return self.place("stash").open().verify()
