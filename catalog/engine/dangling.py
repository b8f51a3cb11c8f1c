"""Which row would refer to nothing if some collections were given back as they were; on the driver, without Spark."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from catalog.codec import bounded_batches
from catalog.engine.judging import shown
from catalog.engine.prints import referred_bytes
from catalog.engine.types import Columns
from catalog.stash.collections import Registry
from catalog.stash.constraints import Constraints, Reference, referred_keys
from catalog.stash.view import View


@dataclass(frozen=True, slots=True)
class Return:
    """What is to be there afterwards, and in what it differs from what every reference was checked with."""

    view: View
    registry: Registry
    constraints: Constraints
    restored: Collection[str]
    """Collections that are as they were before."""
    later: Mapping[str, frozenset[bytes]]
    """Of the others, the rows that were written or deleted since."""
    gone: Mapping[str, frozenset[bytes]]
    """Rows of the view that are taken away."""

    def dangling(self) -> str | None:
        """The first row that would refer to nothing, and to what."""
        return next(self._dangling(), None)

    def _dangling(self) -> Iterator[str]:
        for reference in self.constraints.references:
            if reference.collection in self.restored and reference.target in self.later:
                yield from self._from_earlier(reference)
            if reference.collection in self.later and (
                reference.target in self.restored or reference.target in self.gone
            ):
                yield from self._from_later(reference, self.later[reference.collection])

    def _from_earlier(self, reference: Reference) -> Iterator[str]:
        deleted = [key for key in self.later[reference.target] if not self._is_there(reference.target, key)]
        if not deleted:
            return
        columns = Columns(self.registry.named(reference.collection))
        for table in self.view.tables(reference.collection):
            for batch in bounded_batches(table):
                referred = referred_bytes(reference, self.registry, *columns.decode(batch["key"], batch["value"]))
                if pc.any(pc.is_in(referred, value_set=pa.array(deleted, pa.binary()))).as_py():
                    yield from self._from_later(reference, batch["key"].to_pylist())

    def _from_later(self, reference: Reference, keys: Collection[bytes]) -> Iterator[str]:
        own, target = self.registry.named(reference.collection), self.registry.named(reference.target)
        for key in keys:
            value = self.view.get(own.name, key)
            if value is None or key in self.gone.get(own.name, ()):
                continue
            for referred in referred_keys(reference, self.registry, *own.decode(key, value)):
                if not self._is_there(target.name, referred):
                    yield f"{own.name} {{{shown(own, key)}}} refers to {target.name} {{{shown(target, referred)}}}"

    def _is_there(self, collection: str, key: bytes) -> bool:
        return key not in self.gone.get(collection, ()) and self.view.get(collection, key) is not None
