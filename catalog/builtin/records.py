"""The rows of a stash that are about builtins: `builtin_mapping`, `storage_metadata`, `unfinalized_shard`, `config`.

Reads and changes them within a transaction; when that is committed, and under which fence, is for its owner to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from catalog.builtin.declared import BuiltinName, Declared
from catalog.builtin.plan import Mapped, Stored
from catalog.project import Build
from catalog.stash.transaction import Transaction

STORAGE = "storage_metadata"
"""The collection that says which object uses which shard."""
ALLOCATOR = "item"
"""Items and builtins have their ids in common."""


class Fact(StrEnum):
    """A row of `config`."""

    VERSION = "builtin_version"
    """The build that the builtins were last migrated to; written when all of that is done."""
    BEGUN = "builtin_begun"
    """The newest build that has begun; written before it changes anything that a lower one uses."""


@dataclass(frozen=True, slots=True)
class Records:
    tx: Transaction

    def stored(self, declared: Declared) -> Stored:
        """What the store has of the builtins that a build knows; of others nothing is said."""
        known = {*(one.name for one in declared.builtins), *(one.name for one in declared.instructions)}
        found: dict[BuiltinName, Mapped] = {}
        named: dict[BuiltinName, int] = {}
        for key, value in self._rows("builtin_mapping"):
            name = BuiltinName(key.schema_name, key.object_type, key.object_name)
            if name in known:
                shard = self.shard_of(value.id)
                if shard is None:
                    named[name] = value.id
                else:
                    found[name] = Mapped(value.id, value.fingerprint, shard)
        return Stored(self._fact(Fact.VERSION), self._fact(Fact.BEGUN), found, named)

    def shard_of(self, id_: int) -> str | None:
        """The shard that an object uses; none if it has none."""
        found: Any = self.tx.get(self._key(STORAGE, id=id_))
        return None if found is None else str(found.shard)

    def shards(self) -> frozenset[str]:
        """Every shard that an object uses."""
        return frozenset(str(value.shard) for _, value in self._rows(STORAGE))

    def name(self, names: Iterable[BuiltinName]) -> None:
        """Give new builtins their ids, in the same commit as the allocator; they have no data yet."""
        new = tuple(names)
        if not new:
            return
        allocator = self._key("id_alloc", name=ALLOCATOR)
        row: Any = self.tx.get(allocator)
        first = 1 if row is None else int(row.next_id)
        self.tx.upsert(allocator, self._value("id_alloc", next_id=first + len(new)))
        for id_, name in enumerate(new, start=first):
            self.tx.insert(self._mapping_key(name), self._value("builtin_mapping", id=id_))

    def map(self, name: BuiltinName, mapped: Mapped) -> None:
        """Record where the data of a builtin are, and with which schema."""
        row = self._value("builtin_mapping", id=mapped.id, fingerprint=mapped.fingerprint)
        self.tx.upsert(self._mapping_key(name), row)
        self.tx.upsert(self._key(STORAGE, id=mapped.id), self._value(STORAGE, shard=mapped.shard))

    def unmap(self, name: BuiltinName) -> str | None:
        """Take a builtin out; answer the shard that it used."""
        key = self._mapping_key(name)
        found: Any = self.tx.get(key)
        shard = self.shard_of(found.id)
        self.tx.delete(key)
        if shard is not None:
            self.tx.delete(self._key(STORAGE, id=found.id))
        return shard

    def unfinalized(self) -> tuple[str, ...]:
        """The shards that are given up; none of them is ever used again."""
        return tuple(key.shard for key, _ in self._rows("unfinalized_shard"))

    def condemn(self, shards: Mapping[str, str]) -> None:
        """Give shards up, each for a reason."""
        for shard, reason in shards.items():
            self.tx.upsert(self._key("unfinalized_shard", shard=shard), self._value("unfinalized_shard", reason=reason))

    def forget(self, shards: Iterable[str]) -> None:
        """What was given up is finalised."""
        for shard in shards:
            key = self._key("unfinalized_shard", shard=shard)
            if self.tx.get(key) is not None:
                self.tx.delete(key)

    def set_fact(self, fact: Fact, build: Build) -> None:
        self.tx.upsert(self._key("config", name=str(fact)), self._value("config", text=str(build)))

    def _fact(self, fact: Fact) -> Build | None:
        found: Any = self.tx.get(self._key("config", name=str(fact)))
        return None if found is None else Build.parse(found.text)

    def _mapping_key(self, name: BuiltinName) -> Any:  # noqa: ANN401 - types come from the project
        return self._key(
            "builtin_mapping",
            schema_name=name.schema_name,
            object_type=name.object_type,
            object_name=name.object_name,
        )

    def _rows(self, collection: str) -> Iterable[tuple[Any, Any]]:
        return self.tx.rows(self.tx.registry.named(collection).key_type)

    def _key(self, collection: str, **fields: Any) -> Any:  # noqa: ANN401 - as above
        return self.tx.registry.named(collection).key_type(**fields)

    def _value(self, collection: str, **fields: Any) -> Any:  # noqa: ANN401 - as above
        return self.tx.registry.named(collection).value_type(**fields)
