"""Enum values that the types do not declare, found in columns of decoded messages.

Protobuf keeps any number in an enum. Columns are first compared with the bounds of the declared numbers, which costs
next to nothing; rows are looked at only where that is not enough.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor, EnumDescriptor
from pyarrow import types

from catalog.engine.base.descriptors import holds_enum, inner_field, may_hold_enum
from catalog.engine.codec.columns import cut

_Rows = npt.NDArray[np.int64]
"""The row of each element, ascending."""


@dataclass(slots=True)
class UndeclaredValue:
    """The rows with one enum value that the types do not declare."""

    enum: str
    key: bytes
    """Of the first of them."""
    rows: int = 0

    def told(self, path: str, value: int) -> str:
        count = f" ({self.rows:,} rows)" if self.rows > 1 else ""
        return f"{path} is {value}, which {self.enum} does not declare{count}"


@dataclass(slots=True)
class UndeclaredValues:
    """All such values of a collection."""

    found: dict[tuple[str, int], UndeclaredValue] = field(default_factory=dict)
    """By path, such as `value.kind`, and value."""

    def add(self, path: str, message: Descriptor, column: pa.StructArray, keys: pa.BinaryArray) -> None:
        """Add those of a column of messages; `keys` are the encoded keys of its rows."""
        if not _is_declared(message, column):
            self._add_message(path, message, column, np.arange(len(column)), keys)

    def merge(self, other: UndeclaredValues) -> None:
        for place, found in other.found.items():
            self.found.setdefault(place, UndeclaredValue(found.enum, found.key)).rows += found.rows

    def __bool__(self) -> bool:
        return bool(self.found)

    def _add_message(
        self, path: str, message: Descriptor, column: pa.StructArray, rows: _Rows, keys: pa.BinaryArray
    ) -> None:
        for member, array in zip(message.fields, column.flatten(), strict=True):
            inner, own = inner_field(member), f"{path}.{member.name}"
            if not may_hold_enum(inner):
                continue
            elements, of_rows = array, rows
            if types.is_list(array.type) or types.is_map(array.type):
                offsets, elements = cut(array, array.values if types.is_list(array.type) else array.items)
                of_rows = np.repeat(rows, np.diff(offsets.to_numpy(zero_copy_only=False)))
            if inner.message_type is not None:
                self._add_message(own, inner.message_type, elements, of_rows, keys)
            elif inner.enum_type is not None:
                self._add_values(own, inner.enum_type, elements, of_rows, keys)

    def _add_values(self, path: str, enum: EnumDescriptor, values: pa.Array, rows: _Rows, keys: pa.BinaryArray) -> None:
        wrong = pc.and_(values.is_valid(), pc.invert(pc.is_in(values, value_set=_declared(enum))))
        for value in pc.unique(values.filter(wrong)).to_pylist():
            found: npt.NDArray[np.bool_] = pc.fill_null(pc.equal(values, value), fill_value=False).to_numpy(
                zero_copy_only=False
            )
            of_rows = np.unique(rows[found])
            first = UndeclaredValue(enum.name, keys[int(of_rows[0])].as_py())
            self.found.setdefault((path, value), first).rows += len(of_rows)


def _is_declared(message: Descriptor, column: pa.StructArray) -> bool:
    """Tell if all enum values of a column are declared; a false alarm is possible, by values of absent messages."""
    if not holds_enum(message):
        return True
    for number, member in enumerate(message.fields):
        inner = inner_field(member)
        if not may_hold_enum(inner):
            continue
        array = column.field(number)
        if types.is_list(array.type):
            array = array.values
        elif types.is_map(array.type):
            array = array.items
        if inner.message_type is not None and not _is_declared(inner.message_type, array):
            return False
        if inner.enum_type is not None and not _are_declared(inner.enum_type, array):
            return False
    return True


def _are_declared(enum: EnumDescriptor, values: pa.Array) -> bool:
    numbers, bounds = enum.values_by_number, pc.min_max(values)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    if low is None:
        return True
    if low < min(numbers) or high > max(numbers):
        return False
    has_gaps = len(numbers) != max(numbers) - min(numbers) + 1
    return not has_gaps or bool(pc.all(pc.is_in(values.drop_null(), value_set=_declared(enum))).as_py())


@cache
def _declared(enum: EnumDescriptor) -> pa.Array:
    return pa.array(list(enum.values_by_number), pa.int32())
