"""Findings of one cause: one example, and how many there are."""

from __future__ import annotations

import pytest

from catalog.cli.text.causes import cause_of, grouped, more_like_it

ALIKE = [
    ("value.name is 'a' also in cluster {\"id\": 5}", "value.name is 'b c' also in cluster {\"id\": 6}"),
    ("KeyError: 'owner' (v1_to_v2.py, line 4)", "KeyError: 'name' (v1_to_v2.py, line 4)"),
    ("stash/item/base-0-1-4f0c.parquet", "stash/item/base-0-1-77aa.parquet"),
]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_texts_that_differ_by_their_row_or_file_have_one_cause(one: str, other: str) -> None:
    """Keys, values, numbers and names of files are what a finding says of one row."""
    assert cause_of(one) == cause_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('value.owner_id refers to role {"id": 1}', 'value.schema_id refers to schema {"id": 1}'),
        ("LookupError: no idea", "ValueError: no idea"),
    ],
)
def test_texts_that_differ_by_their_field_or_error_have_two(one: str, other: str) -> None:
    """None hides behind another."""
    assert cause_of(one) != cause_of(other)


def test_a_group_counts_those_that_are_not_listed_if_all_have_its_cause() -> None:
    """Of several causes nobody knows how the others are divided."""
    assert grouped(["a 1", "a 2"], cause_of, 50) == [("a 1", 50)]
    assert grouped(["a 1", "b 2", "a 3"], cause_of, 50) == [("a 1", 2), ("b 2", 1)]
    assert grouped([], cause_of, 50) == []
    assert (more_like_it(1), more_like_it(1200)) == ("", " (and 1,199 more like it)")
