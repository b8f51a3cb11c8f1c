"""Keyed 128-bit hashes that stand for values of any length.

A value of at most 15 bytes stands for itself, with its length in the last byte. A longer one is hashed with BLAKE2b,
and the highest bit of the last byte is set, so the two never coincide. The key is random and never stored: no one who
can write rows can make two values that have one hash.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from secrets import token_bytes

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Hashes = npt.NDArray[np.uint64]
"""Two numbers for each hash."""

_BYTES = 16
_HASHED = 0x80


def new_key() -> bytes:
    """Return a random key; hashes can be compared if they were made with the same one."""
    return token_bytes(_BYTES)


PROCESS_KEY = new_key()
"""The key of hashes that stay in this process."""


def hash_value(value: bytes, key: bytes = PROCESS_KEY) -> bytes:
    """Return the 16 bytes that stand for a value."""
    if len(value) < _BYTES:
        return value.ljust(_BYTES - 1, b"\0") + bytes((len(value),))
    digest = blake2b(value, digest_size=_BYTES, key=key).digest()
    return digest[:-1] + bytes((digest[-1] | _HASHED,))


def hash_values(column: pa.BinaryArray, key: bytes = PROCESS_KEY) -> Hashes:
    """Return `hash_value` of every element of a column without nulls."""
    made = np.zeros((len(column), _BYTES), np.uint8)
    lengths = pc.binary_length(column).to_numpy()
    short, long = np.flatnonzero(lengths < _BYTES), np.flatnonzero(lengths >= _BYTES)
    if len(short):
        made[short, -1] = lengths[short]
        _copy(column.take(pa.array(short)) if len(long) else column, short, made)
    if len(long):
        made[long] = np.frombuffer(b"".join(_digests(column.take(pa.array(long)), key)), np.uint8).reshape(-1, _BYTES)
        made[long, -1] |= _HASHED
    return made.view("<u8")


def unpack_hashes(packed: bytes) -> Hashes:
    """Return the hashes that were packed with `tobytes`."""
    return np.frombuffer(packed, "<u8").reshape(-1, 2)


def hash_list(hashes: Hashes) -> list[bytes]:
    """Return the hashes as `hash_value` returns them."""
    packed = hashes.tobytes()
    return [packed[start : start + _BYTES] for start in range(0, len(packed), _BYTES)]


def _digests(column: pa.BinaryArray, key: bytes) -> Iterator[bytes]:
    keyed = blake2b(digest_size=_BYTES, key=key)
    for value in column.to_pylist():
        copy = keyed.copy()  # saves hashing the key each time
        copy.update(value)
        yield copy.digest()


def _copy(column: pa.BinaryArray, rows: npt.NDArray[np.int64], made: npt.NDArray[np.uint8]) -> None:
    """Copy the bytes of every element to the beginning of its row."""
    _, offsets, data = column.buffers()
    if data is None:
        return
    ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    lengths = np.diff(ends)
    places = np.repeat(rows * _BYTES - (ends[:-1] - ends[0]), lengths) + np.arange(ends[-1] - ends[0])
    made.reshape(-1)[places] = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]
