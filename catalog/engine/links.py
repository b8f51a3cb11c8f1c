"""What refers to what at a version, whatever its rows are; followed from rows that are set aside to those left without.

References are followed that the rows have, also before the version from which on they must hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import DecodeError

from catalog.codec import bounded_batches
from catalog.engine.made import Keys, add_keys
from catalog.engine.prints import referred_bytes
from catalog.engine.types import Columns, LegacyRows, RowType, registry_of, row_types
from catalog.errors import UndecodableRowError
from catalog.project import Project
from catalog.stash.arrays import binary_column
from catalog.stash.collections import Collection, Registry
from catalog.stash.constraints import Reference, referred_keys
from catalog.stash.view import View


@dataclass(slots=True)
class Links:
    project: Project
    version: int
    types: Mapping[str, RowType] = field(init=False)
    references: Mapping[str, list[Reference]] = field(init=False)
    """By the collection that refers."""

    def __post_init__(self) -> None:
        self.types = row_types(self.project, self.version)
        found: dict[str, list[Reference]] = {}
        for reference in self.project.constraints.references:
            if {reference.collection, reference.target} <= self.types.keys() and self._leads(reference):
                found.setdefault(reference.collection, []).append(reference)
        self.references = found

    def left_out(self, view: View, dead: Mapping[str, AbstractSet[bytes]]) -> Keys:
        """The rows that refer to dead ones that are not there again, and those that refer to them in turn."""
        left: Keys = {}
        absent = ((name, keys - _there(view, name, keys)) for name, keys in dead.items())
        fresh: Mapping[str, AbstractSet[bytes]] = {name: keys for name, keys in absent if keys}
        while fresh:
            found: Keys = {}
            for collection in self.references:
                known = dead.get(collection, set()) | left.get(collection, set())
                if new := self._referring(view, collection, fresh) - known:
                    found[collection] = new
            add_keys(left, found)
            fresh = found
        return left

    def _referring(self, view: View, collection: str, dead: Mapping[str, AbstractSet[bytes]]) -> set[bytes]:
        """The rows of a collection that refer to dead ones, be it through others of the same collection."""
        references = [own for own in self.references[collection] if own.target in dead or own.target == collection]
        if not any(own.target in dead for own in references):
            return set()
        sought = {name: binary_column(sorted(keys)).combine_chunks() for name, keys in dead.items()}
        found: set[bytes] = set()
        followers: dict[bytes, list[bytes]] = {}
        for table in view.tables(collection):
            for batch in bounded_batches(table):
                if not any(self._may_refer(own, batch, sought) for own in references):
                    continue
                for key, referred in self._edges(references, batch):
                    if any(target in dead.get(own.target, ()) for own, target in referred):
                        found.add(key)
                    for own, target in referred:
                        if own.target == collection:
                            followers.setdefault(target, []).append(key)
        waiting = list(found)
        while waiting:
            new = [key for key in followers.get(waiting.pop(), ()) if key not in found]
            found.update(new)
            waiting += new
        return found

    def _may_refer(self, reference: Reference, batch: pa.RecordBatch, sought: Mapping[str, pa.Array]) -> bool:
        kind = self.types[reference.collection]
        if reference.target == reference.collection or not isinstance(kind, Collection):
            return True
        try:
            referred = referred_bytes(reference, self._registry, *Columns(kind).decode(batch["key"], batch["value"]))
        except UndecodableRowError:
            return True
        return bool(pc.any(pc.is_in(referred, value_set=sought[reference.target])).as_py())

    def _edges(
        self, references: list[Reference], batch: pa.RecordBatch
    ) -> Iterator[tuple[bytes, list[tuple[Reference, bytes]]]]:
        kind = self.types[references[0].collection]
        for key, value in zip(batch["key"].to_pylist(), batch["value"].to_pylist(), strict=True):
            try:
                decoded = kind.decode(key, value)
            except (DecodeError, ValueError):
                continue  # a fault of its own
            yield key, [(own, referred) for own in references for referred in self._referred(own, *decoded)]

    def _referred(self, reference: Reference, key: object, value: object) -> Iterator[bytes]:
        target = self.types[reference.target]
        if isinstance(target, LegacyRows):
            side, *names = reference.path.split(".")
            for found in _members(key if side == "key" else value, names):
                yield target.module.encode(target.key_type(id=found))
        else:
            yield from referred_keys(reference, self._registry, key, value)  # type: ignore[arg-type]

    def _leads(self, reference: Reference) -> bool:
        """Whether rows of this version have such a reference."""
        own, target = self.types[reference.collection], self.types[reference.target]
        if not isinstance(own, Collection) or not isinstance(target, Collection):
            return True  # looked for in each row
        side, *names = reference.path.split(".")
        message: Any = (own.key_type if side == "key" else own.value_type).DESCRIPTOR
        for name in names:
            if message is None or name not in message.fields_by_name:
                return False
            message = message.fields_by_name[name].message_type
        identity = target.key_type.DESCRIPTOR.fields_by_name.get("id")
        return identity is not None and message is identity.message_type

    @property
    def _registry(self) -> Registry:
        return registry_of(self.project, self.version)


def _there(view: View, collection: str, keys: AbstractSet[bytes]) -> set[bytes]:
    """Those keys of which there is a row."""
    sought = binary_column(sorted(keys)).combine_chunks()
    tables = view.tables(collection)
    return {key for rows in tables for key in rows["key"].filter(pc.is_in(rows["key"], value_set=sought)).to_pylist()}


def _members(found: object, names: list[str]) -> Iterator[object]:
    """What a path leads to in a legacy row: through each element of a list, and nowhere where something is absent."""
    if found is None:
        return
    if isinstance(found, tuple | list):
        for element in found:
            yield from _members(element, names)
    elif names:
        yield from _members(getattr(found, names[0], None), names[1:])
    else:
        yield found
