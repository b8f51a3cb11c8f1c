"""Tests of rows that people type."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.cli.row_filter import parse_filters
from catalog.engine.stash.registry import Registry
from catalog.errors import UsageError
from catalog.upgrade import PROJECT

ITEM = Registry.of(PROJECT.current_types).named("item")
KEY: dict[str, Any] = {"id": 7}
VALUE: dict[str, Any] = {
    "name": "orders",
    "schema_id": 3,
    "owner_id": {"user": 1000},
    "privileges": [{"grantee": {"public": True}, "acl_mode": 5}, {"grantee": {"user": 9}, "acl_mode": 1}],
}


@pytest.mark.parametrize(
    ("test", "passes"),
    [
        ("name=orders", True),
        ("name = orders", True),
        ("name!=orders", False),
        ("name~^ord", True),
        ("name~^ers", False),
        ("key.id>=7", True),
        ("id>7", False),
        ("id<10", True),
        ("schema_id<=3", True),
        ("value.owner_id.user=1000", True),
        ("owner_id.user!=1000", False),
        ("owner_id.system=1", False),
        ("owner_id.system!=1", True),
        ("privileges.grantee.user=9", True),
        ("privileges.acl_mode=2", False),
        ("privileges.grantee.public=true", True),
        ("name>a", True),
    ],
)
def test_a_row_passes_or_not(test: str, *, passes: bool) -> None:
    """Numbers as numbers, texts as texts, any of a list; what is absent equals nothing."""
    (found,) = parse_filters([test], ITEM)
    assert found(KEY, VALUE) is passes


@pytest.mark.parametrize(
    ("test", "told"),
    [
        ("nam=x", "did you mean name?"),
        ("schema_id>many", "schema_id is a number, and 'many' is not"),
        ("kind=TABLE", "did you mean ITEM_KIND_TABLE?"),
        ("name", "is not a test"),
        ("=x", "is not a test"),
        ("name~[", "is not a pattern"),
        ("key.name=x", "`item` has no field key.name"),
        ("owner_id.colour=1", "`item` has no field owner_id.colour"),
    ],
)
def test_a_test_that_can_never_pass_is_refused(test: str, told: str) -> None:
    """A mistyped field is said to be one, instead of showing no rows."""
    with pytest.raises(UsageError) as error:
        parse_filters([test], ITEM)
    assert told in str(error.value)
