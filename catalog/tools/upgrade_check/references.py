"""References between the rows of a version, followed backwards from rows that are set aside.

A reference is followed if the rows have it, also before the version from which on it must hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import DecodeError

from catalog.engine.base.arrow import binary_column
from catalog.engine.base.project import Project
from catalog.engine.codec import bounded_batches
from catalog.engine.migrate.row_errors import Keys, add_keys
from catalog.engine.migrate.row_types import LegacyRows, RowType, registry_of, row_types
from catalog.engine.stash.constraint_columns import ConstraintColumns, referring_rows, row_referred_keys, row_values
from catalog.engine.stash.constraints import Reference
from catalog.engine.stash.registry import Collection, Registry
from catalog.engine.stash.view import View
from catalog.errors import UndecodableRowError


@dataclass(slots=True)
class ReferenceGraph:
    """References that the rows of a version have."""

    project: Project
    version: int
    types: Mapping[str, RowType] = field(init=False)
    references: Mapping[str, list[Reference]] = field(init=False)
    """By the referring collection."""

    def __post_init__(self) -> None:
        self.types = row_types(self.project, self.version)
        found: dict[str, list[Reference]] = {}
        for reference in self.project.constraints.references:
            if {reference.collection, reference.target} <= self.types.keys() and self._leads(reference):
                found.setdefault(reference.collection, []).append(reference)
        self.references = found

    def left_out(self, view: View, dead: Mapping[str, AbstractSet[bytes]]) -> Keys:
        """Return the rows that refer to dead ones that do not exist again, and those that refer to them in turn."""
        left: Keys = {}
        absent = ((name, keys - _existing(view, name, keys)) for name, keys in dead.items())
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
        """Return the rows of a collection that refer to dead ones, directly or through others of the collection."""
        references = [own for own in self.references[collection] if own.target in dead or own.target == collection]
        if not any(own.target in dead for own in references):
            return set()
        sought = {name: binary_column(sorted(keys)).combine_chunks() for name, keys in dead.items()}
        found: set[bytes] = set()
        followers: dict[bytes, list[bytes]] = {}
        for table in view.tables(collection):
            for batch in bounded_batches(table):
                for key, own, referred in self._edges(references, batch, sought):
                    if referred in dead.get(own.target, ()):
                        found.add(key)
                    if own.target == collection:
                        followers.setdefault(referred, []).append(key)
        waiting = list(found)
        while waiting:
            new = [key for key in followers.get(waiting.pop(), ()) if key not in found]
            found.update(new)
            waiting += new
        return found

    def _edges(
        self, references: list[Reference], batch: pa.RecordBatch, sought: Mapping[str, pa.Array]
    ) -> Iterator[tuple[bytes, Reference, bytes]]:
        """Yield row, reference and target key: at least those that lead to sought keys or to the same collection."""
        own_type = self.types[references[0].collection]
        try:
            if isinstance(own_type, Collection):
                columns = ConstraintColumns.decode(own_type, batch["key"], batch["value"])
                for own in references:
                    is_sought = (
                        pc.is_valid if own.target == own.collection else partial(pc.is_in, value_set=sought[own.target])
                    )
                    for row, referred in referring_rows(own, self._registry, columns, is_sought):
                        yield batch["key"][row].as_py(), own, referred
                return
        except UndecodableRowError:
            pass  # read row by row, without those that cannot be decoded: that is a violation of its own
        for key, value in zip(batch["key"].to_pylist(), batch["value"].to_pylist(), strict=True):
            try:
                decoded = own_type.decode(key, value)
            except (DecodeError, ValueError):
                continue
            for own in references:
                yield from ((key, own, referred) for referred in self._referred(own, *decoded))

    def _referred(self, reference: Reference, key: Any, value: Any) -> Iterable[bytes]:  # noqa: ANN401 - rows of any version
        target = self.types[reference.target]
        if not isinstance(target, LegacyRows):
            return row_referred_keys(reference, self._registry, key, value)
        identities = row_values(reference.path, key, value)
        return [target.module.encode(target.key_type(id=identity)) for identity in identities]

    def _leads(self, reference: Reference) -> bool:
        """Tell if rows of this version have such a reference."""
        own, target = self.types[reference.collection], self.types[reference.target]
        if not isinstance(own, Collection) or not isinstance(target, Collection):
            return True  # each row tells
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


def _existing(view: View, collection: str, keys: AbstractSet[bytes]) -> set[bytes]:
    """Return the keys that have a row."""
    sought = binary_column(sorted(keys)).combine_chunks()
    tables = view.tables(collection)
    return {key for rows in tables for key in rows["key"].filter(pc.is_in(rows["key"], value_set=sought)).to_pylist()}
