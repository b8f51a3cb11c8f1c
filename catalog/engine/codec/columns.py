"""Columns of decoded messages: their types in Spark, conversion to a type, comparison, splitting.

No value changes silently: what does not fit is refused, by the name of its column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from catalog.errors import UnfitColumnError

BATCH_BYTES_MAX = 64 * 2**20
BATCH_ROWS_MAX = 65_536
ELEMENT = "element"
"""The name that Spark gives to the child of a list."""

_UINT64_IN_SPARK = pa.decimal128(20, 0)
"""The smallest type of Spark that holds 2⁶⁴-1."""
_SAME_IN_SPARK = frozenset(
    {pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(), _UINT64_IN_SPARK}
)


def spark_type(target: pa.DataType, *, nullable: bool = False) -> pa.DataType:
    """Return the type, exactly as Spark declares it, of the columns that `to_spark` makes of messages of a type.

    An enum stays a number, since a name would lose the numbers that have none. An empty message is true where it is
    present and null where it is not. Where a struct may be null, so may its members: Spark writes them so, and its own
    `toArrow` fails if they are declared otherwise.
    """
    if types.is_struct(target):
        return pa.struct([_spark_field(field, nullable=nullable) for field in target]) if list(target) else pa.bool_()
    if types.is_list(target):
        return pa.list_(_spark_field(target.value_field).with_name(ELEMENT))
    if types.is_map(target):
        return pa.map_(_spark_field(target.key_field), _spark_field(target.item_field))
    if types.is_uint32(target):
        return pa.int64()
    if types.is_uint64(target):
        return _UINT64_IN_SPARK
    if target in _SAME_IN_SPARK:
        return target
    raise TypeError(f"no field of a message is of type {target}")


def to_spark(messages: pa.Array) -> pa.Array:
    """Convert decoded messages to types that Spark has; nothing is lost."""
    return fit(messages, spark_type(messages.type))


def from_spark(array: pa.Array, target: pa.DataType, column: str = "value") -> pa.Array:
    """Convert columns back from Spark, where a query may have changed them."""
    return fit(array, target, column)


def fit(array: pa.Array, target: pa.DataType, column: str = "value") -> pa.Array:
    """Convert an array to exactly this type without changing a value, or refuse and name the column.

    Members of structs are found by name, in any order, and a map may be read as the list of its entries. Refused are
    members too few or too many, a null where the type has none, a number out of range, and every other difference of
    types but that of whole numbers.
    """
    if types.is_null(array.type):
        return pa.nulls(len(array), target)
    if types.is_struct(target):
        return _fit_struct(array, target, column)
    if types.is_list(target) and types.is_map(array.type):
        array = _entries(array)
    if types.is_list(target) and types.is_list(array.type):
        offsets, values = cut(array, array.values)
        values = _fit_child(values, target.value_field, f"{column}.{ELEMENT}")
        return pa.ListArray.from_arrays(offsets, values, type=target, mask=_null_mask(array))
    if types.is_map(target) and types.is_map(array.type):
        offsets, keys, items = cut(array, array.keys, array.items)
        keys = _fit_child(keys, target.key_field, f"{column}.key")
        items = _fit_child(items, target.item_field, f"{column}.value")
        return pa.MapArray.from_arrays(offsets, keys, items, target, mask=_null_mask(array))
    return array if array.type == target else _fit_plain(array, target, column)


def first_difference(original: pa.Array, reencoded: pa.Array) -> int | None:
    """Return the first row whose bytes differ; none if all are the same."""
    if len(original) != len(reencoded):
        raise ValueError(f"{len(original)} rows cannot be compared with {len(reencoded)}")
    if original.equals(reencoded):
        return None
    differs = pc.fill_null(pc.not_equal(original, reencoded), fill_value=True)
    return int(pc.index(differs, value=True).as_py())


def bounded_batches(
    table: pa.Table | pa.RecordBatch, *, bytes_max: int = BATCH_BYTES_MAX, rows_max: int | None = BATCH_ROWS_MAX
) -> Iterator[pa.RecordBatch]:
    """Split a table into batches as long as both bounds allow, so that no batch meets the limit of 32-bit offsets.

    A row that is larger than `bytes_max` by itself is a batch by itself.
    """
    rest = pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
    while rest.num_rows:
        # The longest prefix within the bounds: `fits` rows are, `probe` rows may be, `too_many` rows are not.
        probe = min(rest.num_rows, rows_max or rest.num_rows)
        fits, too_many = 1, probe + 1
        while too_many - fits > 1:
            if rest.slice(0, probe).nbytes <= bytes_max:
                fits = probe
            else:
                too_many = probe
            probe = (fits + too_many) // 2
        yield rest.slice(0, fits).combine_chunks().to_batches()[0]
        rest = rest.slice(fits)


def rebatch(parts: Iterable[pa.Table | pa.RecordBatch], bytes_max: int) -> Iterator[pa.RecordBatch]:
    """Join and split tables into batches that are as large as they may be."""
    held: list[pa.Table] = []
    for part in parts:
        held.append(pa.Table.from_batches([part]) if isinstance(part, pa.RecordBatch) else part)
        if sum(table.nbytes for table in held) >= bytes_max:
            *full, last = bounded_batches(pa.concat_tables(held), bytes_max=bytes_max, rows_max=None)
            yield from full
            held = [pa.Table.from_batches([last])]
    if held:
        yield from bounded_batches(pa.concat_tables(held), bytes_max=bytes_max, rows_max=None)


def cut(array: pa.Array, *children: pa.Array) -> tuple[pa.Array, ...]:
    """Return the offsets of a list or map, from 0, and the part of its children that they refer to."""
    if not len(array):
        # Some writers leave out the offsets of an empty array, and pyarrow dies of it.
        return pa.array([0], pa.int32()), *(child[:0] for child in children)
    start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
    return pc.subtract(array.offsets, start), *(child[start:end] for child in children)


def _spark_field(field: pa.Field, *, nullable: bool = False) -> pa.Field:
    nullable = nullable or field.nullable
    return field.with_type(spark_type(field.type, nullable=nullable)).with_nullable(nullable)


def _entries(array: pa.MapArray) -> pa.ListArray:
    """Return a map as it is on the wire: the list of its entries, in their order."""
    offsets, keys, items = cut(array, array.keys, array.items)
    entries = pa.StructArray.from_arrays([keys, items], names=["key", "value"])
    return pa.ListArray.from_arrays(offsets, entries, mask=_null_mask(array))


def _fit_struct(array: pa.Array, target: pa.DataType, column: str) -> pa.StructArray:
    if types.is_boolean(array.type) and not list(target):
        if pc.any(pc.invert(array)).as_py():
            raise UnfitColumnError(column, "false", "true (an empty message) or null (no message)")
        return pa.StructArray.from_arrays([], fields=[], mask=array.is_null())
    if not types.is_struct(array.type):
        raise UnfitColumnError(column, str(array.type), str(target))
    found, needed = [field.name for field in array.type], [field.name for field in target]
    if sorted(found) != sorted(needed):
        raise UnfitColumnError(column, f"the members {', '.join(found)}", ", ".join(needed))
    if not needed:
        return array
    # A flattened member is null wherever the struct is: it holds a null of its own if it has more of them.
    members = dict(zip(found, array.flatten(), strict=True))
    fitted = [
        _fit_child(members[field.name], field, f"{column}.{field.name}", nulls_max=array.null_count) for field in target
    ]
    return pa.StructArray.from_arrays(fitted, fields=list(target), mask=_null_mask(array))


def _fit_child(array: pa.Array, field: pa.Field, column: str, *, nulls_max: int = 0) -> pa.Array:
    if not field.nullable and array.null_count > nulls_max:
        raise UnfitColumnError(column, "null", str(field.type))
    fitted = fit(array, field.type, column)
    return fitted if field.nullable or not fitted.null_count else _unmasked(fitted)


def _unmasked(array: pa.Array) -> pa.Array:
    """Drop the nulls that a member has from the struct around it, which some readers take for the member's own."""
    if types.is_list(array.type):
        return pa.ListArray.from_arrays(*cut(array, array.values), type=array.type)
    if types.is_map(array.type):
        return pa.MapArray.from_arrays(*cut(array, array.keys, array.items), array.type)
    if types.is_struct(array.type):
        members = [array.field(number) for number in range(array.type.num_fields)]
        return pa.Array.from_buffers(array.type, len(array), [None], children=members)
    return pa.Array.from_buffers(array.type, len(array), [None, *array.buffers()[1:]], offset=array.offset)


def _fit_plain(array: pa.Array, target: pa.DataType, column: str) -> pa.Array:
    if types.is_boolean(target) and array.type == pa.struct([]):
        return pc.if_else(array.is_valid(), pa.scalar(value=True), pa.scalar(None, pa.bool_()))
    if not all(types.is_integer(kind) or types.is_decimal(kind) for kind in (array.type, target)):
        raise UnfitColumnError(column, str(array.type), str(target))
    try:
        return array.cast(target)
    except pa.ArrowInvalid as error:
        bounds = pc.min_max(array)
        raise UnfitColumnError(column, f"numbers from {bounds['min']} to {bounds['max']}", str(target)) from error


def _null_mask(array: pa.Array) -> pa.BooleanArray | None:
    return array.is_null() if array.null_count else None
