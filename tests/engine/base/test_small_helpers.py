"""Splitting by size, files that are replaced as a whole, durations and free space."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.engine.base.arrow import binary_column
from catalog.engine.base.atomic_file import replace_file, staged_path
from catalog.engine.base.byte_budget import split_by_size
from catalog.engine.base.disk import free_bytes
from catalog.engine.base.duration import parse_seconds


@given(st.lists(st.integers(0, 12), max_size=30), st.integers(1, 20))
def test_parts_are_as_large_as_they_may_be(sizes: list[int], size_max: int) -> None:
    """Every item once and in order; a part is too large only by one item, and none could take the next part's first."""
    parts = list(split_by_size(sizes, lambda size: size, size_max))
    assert [size for part in parts for size in part] == sizes
    assert all(part and (sum(part) <= size_max or len(part) == 1) for part in parts)
    assert all(sum(part) + following[0] > size_max for part, following in pairwise(parts))


def test_a_column_of_nothing_is_a_column() -> None:
    assert binary_column([]).to_pylist() == []
    assert binary_column([b"a", b"", b"bc"]).to_pylist() == [b"a", b"", b"bc"]


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    """A failure leaves the text before and no other file."""
    path = tmp_path / "ready.json"
    replace_file(path, "first")
    with pytest.raises(UnicodeEncodeError):
        replace_file(path, "\ud800")
    assert (path.read_text(), list(tmp_path.iterdir())) == ("first", [path])


def test_what_is_left_of_an_unfinished_file_is_removed(tmp_path: Path) -> None:
    with staged_path(tmp_path / "ready.json") as staged:
        staged.write_text("half")
        assert list(tmp_path.glob("*.json")) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("500ms", 0.5), ("1.5 s", 1.5), ("2m", 120), ("2h", 7200), ("7d", 604_800)]
)
def test_a_duration_has_a_unit_or_is_in_seconds(text: str, seconds: float) -> None:
    assert parse_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "s", "-1s", "1 week", "1e3"])
def test_any_other_text_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="a number of seconds, or one with a unit"):
        parse_seconds(text)


def test_the_space_of_a_folder_that_is_yet_to_be_made_is_known(tmp_path: Path) -> None:
    assert free_bytes(tmp_path / "not" / "there") > 0
