"""The scan of a collection's rows: how many have each field set.

Rows are read in batches and counted as columns. A field is set if it is present, or, where the types do not tell an
absent value from zero, if it is not zero. Inside a list or a map, a row counts if one of its elements has the field.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, is_dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from pyarrow import types

from catalog.engine.base.descriptors import descriptor_of, inner_field
from catalog.engine.codec import bounded_batches
from catalog.engine.codec.columns import cut
from catalog.engine.migrate.row_types import LegacyRows, RowColumns, RowType
from catalog.engine.stash.registry import Collection

Rows = npt.NDArray[np.int64]
"""The row of each element, ascending."""


@dataclass(slots=True)
class FieldScan:
    rows: int = 0
    set_in: Counter[str] = field(default_factory=Counter)
    """The number of rows that have a field set, by path, such as `value.owner_id`."""

    def add(self, row_type: RowType, tables: Iterable[pa.Table]) -> None:
        """Count the rows of some tables with the columns key and value."""
        for table in tables:
            for batch in bounded_batches(table.select(["key", "value"])):
                self.rows += batch.num_rows
                if isinstance(row_type, Collection):
                    self._add_messages(row_type, batch)
                elif isinstance(row_type, LegacyRows):
                    for key, value in zip(batch["key"].to_pylist(), batch["value"].to_pylist(), strict=True):
                        for side, message in zip(("key", "value"), row_type.decode(key, value), strict=True):
                            self._add_legacy(side, message)

    def _add_messages(self, collection: Collection, batch: pa.RecordBatch) -> None:
        columns = RowColumns(collection).decode(batch["key"], batch["value"])
        rows = np.arange(batch.num_rows)
        for side, kind, column in zip(
            ("key", "value"), (collection.key_type, collection.value_type), columns, strict=True
        ):
            self._add_message(side, descriptor_of(kind), column, rows)

    def _add_message(self, path: str, message: Descriptor, column: pa.StructArray, rows: Rows) -> None:
        for member, array in zip(message.fields, column.flatten(), strict=True):
            own = f"{path}.{member.name}"
            self._add_set(own, rows[_is_set(member, array)])
            inner = inner_field(member)
            if inner.message_type is None:
                continue
            elements, of_rows = array, rows
            if types.is_list(array.type) or types.is_map(array.type):
                offsets, elements = cut(array, array.values if types.is_list(array.type) else array.items)
                of_rows = np.repeat(rows, np.diff(offsets.to_numpy(zero_copy_only=False)))
            self._add_message(own, inner.message_type, elements, of_rows)

    def _add_legacy(self, path: str, message: object) -> None:
        if is_dataclass(message):
            for member in fields(message):
                found = getattr(message, member.name)
                self.set_in[f"{path}.{member.name}"] += bool(found) or is_dataclass(found)

    def _add_set(self, path: str, rows: Rows) -> None:
        """Add the number of different rows; a path with none is counted too, so that it is known."""
        self.set_in[path] += int(np.count_nonzero(np.diff(rows, prepend=-1)))


def _is_set(member: FieldDescriptor, array: pa.Array) -> npt.NDArray[np.bool_]:
    if member.is_repeated:
        lengths: npt.NDArray[np.int32] = np.diff(cut(array)[0].to_numpy(zero_copy_only=False))
        return lengths > 0
    if member.has_presence:
        return _mask(array.is_valid())
    if types.is_boolean(array.type):
        return _mask(array)
    if types.is_string(array.type) or types.is_binary(array.type):
        return _mask(pc.greater(pc.binary_length(array), 0))
    return _mask(pc.not_equal(array, pa.scalar(0, array.type)))


def _mask(flags: pa.BooleanArray) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = pc.fill_null(flags, fill_value=False).to_numpy(zero_copy_only=False)
    return found
