"""Prints tell apart what differs, and find what is there twice or not at all."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.engine.prints import as_prints, doubled, missing, print_bytes, unique_bytes
from catalog.stash.constraints import Unique

SHORT = st.binary(max_size=15) | st.sampled_from([b"", b"\0", b"\0\0", b"a", b"a\0", b"\x0f" * 15])
LONG = st.binary(min_size=16, max_size=40)
NAMES = (
    st.none() | st.sampled_from(["", "~", "0:", "1|", "1:1", "|", "1|1:a", "a", "2", ":", "é"]) | st.text(max_size=3)
)
NUMBERS = st.none() | st.sampled_from([0, 1, 11, 2**64 - 1])


def column(values: list[bytes]) -> pa.BinaryArray:
    return pa.array(values, pa.binary())


@settings(deadline=None)
@given(st.lists(SHORT | LONG, max_size=30), st.integers(0, 3))
def test_a_print_stands_for_its_bytes(values: list[bytes], start: int) -> None:
    """The same for the same bytes wherever they are, and others for others."""
    prints = print_bytes(column(values))
    assert prints.shape == (len(values), 2)
    seen = [row.tobytes() for row in prints]
    assert len(set(seen)) == len(set(values))
    assert [row.tobytes() for row in print_bytes(column(values)[start:])] == seen[start:]
    assert as_prints(prints.tobytes()).tolist() == prints.tolist()


@settings(deadline=None)
@given(st.lists(SHORT | LONG, max_size=30), st.lists(SHORT | LONG, max_size=30))
def test_what_is_doubled_or_missing_is_found(first: list[bytes], second: list[bytes]) -> None:
    """Each of them once, as sets would tell."""
    needed, present = print_bytes(column(first)), print_bytes(column(second))
    known = dict(zip((row.tobytes() for row in needed), first, strict=True))
    twice = sorted(value for value, count in Counter(first).items() if count > 1)
    assert sorted(known[row.tobytes()] for row in doubled(needed)) == twice
    assert sorted(known[row.tobytes()] for row in missing(needed, present)) == sorted(set(first) - set(second))


@settings(deadline=None)
@given(st.lists(st.tuples(NUMBERS, NAMES, NAMES), min_size=1, max_size=20))
def test_fields_that_differ_are_not_alike(rows: list[tuple[int | None, str | None, str | None]]) -> None:
    """Absent is not empty, and no name can be mistaken for two."""
    value = pa.array(
        [{"number": number, "first": first, "second": second} for number, first, second in rows],
        pa.struct([("number", pa.uint64()), ("first", pa.string()), ("second", pa.string())]),
    )
    unique = Unique("x", ("value.number", "value.first", "value.second"))
    found = unique_bytes(unique, value, value).to_pylist()
    assert len(set(zip(found, rows, strict=True))) == len(set(found)) == len(set(rows))


def test_bytes_may_be_unique_too() -> None:
    """Also those that are no text."""
    value = pa.array([{"raw": raw} for raw in (b"\xff", b"\xfe", b"", None)], pa.struct([("raw", pa.binary())]))
    assert len(set(unique_bytes(Unique("x", ("value.raw",)), value, value).to_pylist())) == 4


def test_a_list_cannot_be_unique() -> None:
    """It says which."""
    value = pa.array([{"many": [1]}], pa.struct([("many", pa.list_(pa.int64()))]))
    with pytest.raises(TypeError, match=r"value\.many of x holds no single value"):
        unique_bytes(Unique("x", ("value.many",)), value, value)
