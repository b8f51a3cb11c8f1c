"""Hashes distinguish different values, and find duplicates and missing ones."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.engine.migrate.constraint_hashes import distinct, duplicates, missing
from catalog.engine.stash.keyed_hash import hash_list, hash_value, hash_values, unpack_hashes

SHORT = st.binary(max_size=15) | st.sampled_from([b"", b"\0", b"\0\0", b"a", b"a\0", b"\x0f" * 15])
LONG = st.binary(min_size=16, max_size=100) | st.sampled_from(
    [b"a" * 16, b"a" * 16 + b"\0", b"\xff" * 64, b"\xff" * 65]
)


def column(values: list[bytes]) -> pa.BinaryArray:
    return pa.array(values, pa.binary())


@settings(deadline=None)
@given(st.lists(SHORT | LONG, max_size=30), st.integers(0, 3))
def test_a_hash_stands_for_its_bytes(values: list[bytes], start: int) -> None:
    """The same for the same bytes wherever they are, and others for others."""
    hashes = hash_values(column(values))
    assert hashes.shape == (len(values), 2)
    seen = [row.tobytes() for row in hashes]
    assert len(set(seen)) == len(set(values))
    assert [row.tobytes() for row in hash_values(column(values)[start:])] == seen[start:]
    assert unpack_hashes(hashes.tobytes()).tolist() == hashes.tolist()
    assert seen == hash_list(hashes) == [hash_value(value) for value in values]


@settings(deadline=None)
@given(st.lists(SHORT | LONG, max_size=30), st.lists(SHORT | LONG, max_size=30))
def test_what_is_doubled_or_missing_is_found(first: list[bytes], second: list[bytes]) -> None:
    """Each of them once, as sets would tell."""
    needed, present = hash_values(column(first)), hash_values(column(second))
    known = dict(zip((row.tobytes() for row in needed), first, strict=True))
    twice = sorted(value for value, count in Counter(first).items() if count > 1)
    assert sorted(known[row.tobytes()] for row in duplicates(needed)) == twice
    assert sorted(known[row.tobytes()] for row in distinct(needed)) == sorted(set(first))
    assert sorted(known[row.tobytes()] for row in missing(needed, present)) == sorted(set(first) - set(second))


def test_short_values_are_their_own_hashes_and_long_ones_need_the_key() -> None:
    """No key makes two of them coincide, and no hash can be predicted without its key."""
    assert hash_value(b"abc", b"one") == hash_value(b"abc", b"two") == b"abc" + bytes(12) + b"\x03"
    assert len({hash_value(b"a" * 16, key) for key in (b"one", b"two")}) == 2
    assert hash_value(b"a" * 15, b"one")[-1] < 0x80 <= hash_value(b"a" * 16, b"one")[-1]
    assert hash_values(column([b"a" * 16]), b"one").tobytes() == hash_value(b"a" * 16, b"one")
