"""References that an undo would break: rows that would refer to a row that no longer exists.

It runs on the driver, without Spark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow.compute as pc

from catalog.engine.base.arrow import binary_column
from catalog.engine.codec import bounded_batches
from catalog.engine.migrate.row_errors import key_text
from catalog.engine.stash.constraint_columns import ConstraintColumns, referring_rows, row_referred_keys
from catalog.engine.stash.constraints import Constraints, Reference
from catalog.engine.stash.registry import Registry
from catalog.engine.stash.view import View


@dataclass(frozen=True, slots=True)
class RestoredRows:
    """Rows as the undo would leave them, and their difference from those whose references were checked."""

    view: View
    registry: Registry
    constraints: Constraints
    restored: Collection[str]
    """Collections that are given back as they were before the step."""
    later: Mapping[str, frozenset[bytes]]
    """Of the other collections, the keys of the rows that were written or deleted since."""
    gone: Mapping[str, frozenset[bytes]]
    """Keys of rows of the view that the undo removes."""

    def dangling(self) -> str | None:
        """Return a description of the first row that would refer to a missing one, if there is any."""
        return next(self._dangling(), None)

    def _dangling(self) -> Iterator[str]:
        for reference in self.constraints.references:
            if reference.collection in self.restored and reference.target in self.later:
                yield from self._from_earlier(reference)
            if reference.collection in self.later and (
                reference.target in self.restored or reference.target in self.gone
            ):
                yield from self._from_later(reference)

    def _from_earlier(self, reference: Reference) -> Iterator[str]:
        """Describe restored rows that refer to rows that were deleted since."""
        own = self.registry.named(reference.collection)
        deleted = [key for key in self.later[reference.target] if not self._exists(reference.target, key)]
        sought = binary_column(sorted(deleted)).combine_chunks()
        for table in self.view.tables(own.name) if deleted else ():
            for batch in bounded_batches(table):
                columns = ConstraintColumns.decode(own, batch["key"], batch["value"])
                for row, referred in referring_rows(
                    reference, self.registry, columns, partial(pc.is_in, value_set=sought)
                ):
                    if (key := batch["key"][row].as_py()) not in self.gone.get(own.name, ()):
                        yield self._text(reference, key, referred)

    def _from_later(self, reference: Reference) -> Iterator[str]:
        """Describe rows written since that refer to rows that the undo removes."""
        own = self.registry.named(reference.collection)
        for key in self.later[own.name]:
            value = self.view.get(own.name, key)
            if value is None or key in self.gone.get(own.name, ()):
                continue
            for referred in row_referred_keys(reference, self.registry, *own.decode(key, value)):
                if not self._exists(reference.target, referred):
                    yield self._text(reference, key, referred)

    def _exists(self, collection: str, key: bytes) -> bool:
        return key not in self.gone.get(collection, ()) and self.view.get(collection, key) is not None

    def _text(self, reference: Reference, key: bytes, referred: bytes) -> str:
        own, target = self.registry.named(reference.collection), self.registry.named(reference.target)
        return f"{own.name} {key_text(own, key)} refers to {target.name} {key_text(target, referred)}"
