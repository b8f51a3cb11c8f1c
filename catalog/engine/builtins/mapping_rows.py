"""The rows of a stash about builtins: `builtin_mapping`, `storage_metadata`, `unfinalized_shard`, `config`.

They are read and changed within a transaction, which its owner commits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from catalog.engine.base.project import BuildVersion
from catalog.engine.builtins.declaration import BuiltinName, Declaration
from catalog.engine.builtins.plan import StoredBuiltin, StoredBuiltins
from catalog.engine.stash.engine_rows import ID_MAX, STORAGE
from catalog.engine.stash.transaction import Transaction
from catalog.errors import IdsExhaustedError

COLLECTIONS = ("builtin_mapping", STORAGE, "unfinalized_shard", "config")
"""The collections that hold these rows."""
ALLOCATOR = "item"
"""Items and builtins share one allocator of ids."""


class ConfigKey(StrEnum):
    """A row of `config`."""

    VERSION = "builtin_version"
    """The build to which the builtins were last migrated; written at the end of the migration."""
    BEGUN = "builtin_begun"
    """The newest build that began a migration; written before it changes anything that an older build uses."""
    CLEARED = "builtin_entries_cleared"
    """The build, the deploy generation and the ts of the migration shard for which a leader left no entry to clear."""


@dataclass(frozen=True, slots=True)
class MappingRows:
    """The rows about builtins, within a transaction."""

    tx: Transaction

    def stored(self, declared: Declaration) -> StoredBuiltins:
        """Return the stored builtins that a build knows; leave others out."""
        known = {*(one.name for one in declared.builtins), *(one.name for one in declared.instructions)}
        found: dict[BuiltinName, StoredBuiltin] = {}
        named: dict[BuiltinName, int] = {}
        for key, value in self._rows("builtin_mapping"):
            name = BuiltinName(key.schema_name, key.object_type, key.object_name)
            if name in known:
                shard = self.shard_of(value.id)
                if shard is None:
                    named[name] = value.id
                else:
                    found[name] = StoredBuiltin(value.id, value.fingerprint, shard)
        return StoredBuiltins(self._fact(ConfigKey.VERSION), self._fact(ConfigKey.BEGUN), found, named)

    def shard_of(self, id_: int) -> str | None:
        """Return the shard of an object; none if it has none."""
        found: Any = self.tx.get(self._key(STORAGE, id=id_))
        return None if found is None else str(found.shard)

    def shards(self) -> frozenset[str]:
        """Return every shard that an object uses."""
        return frozenset(str(value.shard) for _, value in self._rows(STORAGE))

    def name(self, names: Iterable[BuiltinName]) -> None:
        """Give new builtins their ids, in the same commit as the allocator; they have no data yet."""
        new = tuple(names)
        if not new:
            return
        allocator = self._key("id_alloc", name=ALLOCATOR)
        row: Any = self.tx.get(allocator)
        first = 1 if row is None else int(row.next_id)
        if first + len(new) > ID_MAX:
            raise IdsExhaustedError(ALLOCATOR, first, len(new))
        self.tx.upsert(allocator, self._value("id_alloc", next_id=first + len(new)))
        for id_, name in enumerate(new, start=first):
            self.tx.insert(self._mapping_key(name), self._value("builtin_mapping", id=id_))

    def map(self, name: BuiltinName, mapped: StoredBuiltin) -> None:
        """Record where the data of a builtin are, and with which schema."""
        row = self._value("builtin_mapping", id=mapped.id, fingerprint=mapped.fingerprint)
        self.tx.upsert(self._mapping_key(name), row)
        self.tx.upsert(self._key(STORAGE, id=mapped.id), self._value(STORAGE, shard=mapped.shard))

    def unmap(self, name: BuiltinName) -> str | None:
        """Delete a builtin; return the shard that it used."""
        key = self._mapping_key(name)
        found: Any = self.tx.get(key)
        shard = self.shard_of(found.id)
        self.tx.delete(key)
        if shard is not None:
            self.tx.delete(self._key(STORAGE, id=found.id))
        return shard

    def unfinalized(self) -> tuple[str, ...]:
        """Return the shards to be finalised; none of them is ever used again."""
        return tuple(key.shard for key, _ in self._rows("unfinalized_shard"))

    def condemn(self, shards: Mapping[str, str]) -> None:
        """Mark shards to be finalised, each with a reason."""
        for shard, reason in shards.items():
            self.tx.upsert(self._key("unfinalized_shard", shard=shard), self._value("unfinalized_shard", reason=reason))

    def forget(self, shards: Iterable[str]) -> None:
        """Delete the rows of shards that were finalised."""
        for shard in shards:
            key = self._key("unfinalized_shard", shard=shard)
            if self.tx.get(key) is not None:
                self.tx.delete(key)

    def set_fact(self, fact: ConfigKey, build: BuildVersion) -> None:
        self.tx.upsert(self._key("config", name=str(fact)), self._value("config", text=str(build)))

    def cleared(self) -> str | None:
        """Return the mark that the last leader left when no entry of the migration shard was to be cleared."""
        found: Any = self.tx.get(self._key("config", name=str(ConfigKey.CLEARED)))
        return None if found is None else str(found.text)

    def set_cleared(self, mark: str) -> None:
        self.tx.upsert(self._key("config", name=str(ConfigKey.CLEARED)), self._value("config", text=mark))

    def _fact(self, fact: ConfigKey) -> BuildVersion | None:
        found: Any = self.tx.get(self._key("config", name=str(fact)))
        return None if found is None else BuildVersion.parse(found.text)

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
