"""The new rows of a batch: what a rewriter returns, and the rows that a migration makes one by one.

While rows are made, each is only written and kept with the number of the stored row that it comes from. They become
columns some thousand at a time, so that few objects of Python are alive. All counts follow from these numbers, for the
whole batch at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import Message

from catalog.engine.base.descriptors import descriptor_of, holds_map
from catalog.engine.migrate.row_errors import RowError
from catalog.engine.migrate.row_verifier import Columns, EncodedRows
from catalog.engine.stash.registry import Collection, Registry, encode

Rows = npt.NDArray[np.int64]
"""Numbers of rows, ascending."""
Writer = tuple[
    type[Message],
    Callable[[Any], bytes],
    Callable[[Any], bytes],
    Callable[[bytes], None],
    Callable[[bytes], None],
    Callable[[int], None],
]
"""The type of a value, the functions that write a key and a value, and those that keep the bytes of both and the number
of their origin."""
_ARRAY_BYTES_MAX = 2**31 - 1


@dataclass(slots=True)
class RewrittenBatch:
    """The new rows of a batch, the stored rows that the migration refused, and the counts of what happened."""

    rows: dict[str, EncodedRows] = field(default_factory=dict)
    columns: dict[str, Columns] = field(default_factory=dict)
    """The columns that rows were encoded from, where the rewriter has them."""
    errors: list[RowError] = field(default_factory=list)
    changed: int = 0
    """Stored rows that stay in their collection with other bytes."""
    deleted: int = 0
    """Stored rows of which nothing stays in their collection."""
    inserted: Counter[str] = field(default_factory=Counter)
    """New rows beside the one that a stored row becomes, by collection."""
    ids: int = 0
    keys_changed: bool = False


@dataclass(slots=True)
class _MadeRows:
    """The new rows of one collection: the newest as objects, those before them as columns."""

    keys: list[bytes] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)
    origins: list[int] = field(default_factory=list)
    _columns: list[tuple[pa.BinaryArray, pa.BinaryArray, Rows]] = field(default_factory=list)

    def into_columns(self) -> None:
        """Make columns of the objects; the lists stay the same, because writers add to them."""
        if self.origins:
            self._columns.append((*map(_binary_array, (self.keys, self.values)), np.array(self.origins, np.int64)))
            for own in (self.keys, self.values, self.origins):
                own.clear()

    def columns(self) -> tuple[EncodedRows, Rows]:
        """Return all rows, and the numbers of the stored rows that they come from."""
        self.into_columns()
        if not self._columns:
            return EncodedRows.none(), np.empty(0, np.int64)
        keys, values, origins = zip(*self._columns, strict=True)
        return EncodedRows(pa.concat_arrays(keys), pa.concat_arrays(values)), np.concatenate(origins)


class NewRows:
    """The rows that the stored rows of a batch become, in the collection itself and in those that it may add to."""

    def __init__(self, registry: Registry, own: str, into: Iterable[str]) -> None:
        self.writers: dict[type, Writer] = {}
        """By the type of key, for values of one type; `writer_of` adds what is missing, and refuses other types."""
        self._registry, self._own, self._allowed = registry, own, {own, *into}
        self._made: dict[str, _MadeRows] = {}

    def writer_of(self, key: Message, value: Message) -> Writer:
        """Return the writer of a new row; raise if the migration must not make such a row."""
        collection = self._collection_of(key, value)
        made = self._made.setdefault(collection.name, _MadeRows())
        kind, value_kind = type(key), type(value)
        add = made.keys.append, made.values.append, made.origins.append
        writer = (value_kind, _encoder(kind), _encoder(value_kind), *add)
        self.writers[kind] = writer
        return writer

    def forget(self, origin: int) -> None:
        """Forget the rows that come from the newest stored row, which the migration refused after making them."""
        for made in self._made.values():
            while made.origins and made.origins[-1] == origin:
                del made.keys[-1], made.values[-1], made.origins[-1]

    def into_columns(self) -> None:
        """Keep the rows that were made so far as columns; none of them can be forgotten any more."""
        for made in self._made.values():
            made.into_columns()

    def into_batch(self, before: EncodedRows, batch: RewrittenBatch) -> None:
        """Add the rows to a batch, and count what happened to the stored ones that were not refused."""
        stored = len(before.keys) - len(batch.errors)
        batch.deleted, batch.keys_changed = stored, len(before.keys) > 0
        for name, made in self._made.items():
            after, origin = made.columns()
            batch.rows[name] = after
            batch.inserted[name] = len(origin)
            if name == self._own:
                staying = _distinct(origin)
                batch.deleted -= staying
                batch.inserted[name] -= staying
                batch.changed = staying - _distinct(origin[_are_equal(before, after, origin)])
                batch.keys_changed = not after.keys.equals(before.keys)

    def _collection_of(self, key: Message, value: Message) -> Collection:
        """Return the collection of a new row, which the key's type names; raise if the action must not make it."""
        collection = self._registry.of_key(key)
        if collection.name not in self._allowed:
            raise ValueError(f"it makes a row of {collection.name}, which `into` does not name")
        if value.DESCRIPTOR.full_name != collection.value_type.DESCRIPTOR.full_name:
            raise ValueError(f"it makes a row of {collection.name} whose value is a {value.DESCRIPTOR.name}")
        return collection


def _encoder(kind: type[Message]) -> Callable[[Any], bytes]:
    """Return `encode` for messages of one type. Without maps, protobuf has only one order to write fields in."""
    return encode if holds_map(descriptor_of(kind)) else kind.SerializeToString


def _binary_array(values: list[bytes]) -> pa.BinaryArray:
    """Return an array of bytes. `pa.array` would import pandas."""
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=offsets[1:])
    if offsets[-1] > _ARRAY_BYTES_MAX:
        raise ValueError(f"{len(values)} new rows have {offsets[-1]:,} bytes, more than an array holds")
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(pa.binary(), len(values), buffers)


def _distinct(origins: Rows) -> int:
    """Count the stored rows of which each has one or several new rows in a row."""
    return int(np.count_nonzero(np.diff(origins, prepend=-1)))


def _are_equal(before: EncodedRows, after: EncodedRows, origins: Rows) -> npt.NDArray[np.bool_]:
    """Tell for every new row if it is the stored row that it comes from."""
    if not np.array_equal(origins, np.arange(len(before.keys))):
        before = EncodedRows(*(column.take(pa.array(origins)) for column in before))
    same = pc.and_(pc.equal(before.keys, after.keys), pc.equal(before.values, after.values))
    equal: npt.NDArray[np.bool_] = same.to_numpy(zero_copy_only=False)
    return equal
