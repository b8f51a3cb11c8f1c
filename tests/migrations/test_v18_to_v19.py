"""v18_to_v19: comments on items and their columns move to a collection of their own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from catalog.generated import objects_v18_pb2 as v18
from catalog.migrations import v18_to_v19
from tests.migrations.generated_stores import stores
from tests.migrations.oracles import oracle_v18_to_v19
from tests.migrations.plain import Plain, Store, store_of
from tests.migrations.steps import run

OLD, NEW = 18, 19
OWNER = {"user": 1000}
GRANTED: list[Plain] = [{"grantee": {"public": {}}, "grantor": OWNER, "acl_mode": 0}, {"acl_mode": 1}]


def item(**comments: Any) -> Plain:  # noqa: ANN401
    rest = {"schema_id": 0, "name": "i", "kind": 99, "create_sql": "", "owner_id": OWNER, "privileges": GRANTED}
    return rest | comments


@given(stores(OLD, "item"))
@settings(deadline=None)
def test_every_collection_becomes_what_the_oracle_says(store: Store) -> None:
    """Through the stored bytes of both versions."""
    assert run(OLD, store) == oracle_v18_to_v19(store)


def test_each_comment_becomes_a_row_and_the_item_keeps_the_rest() -> None:
    """An empty comment is a comment, column 0 a column, and an item without any makes no row."""
    largest = 2**64 - 1
    old = [
        ({"id": 1}, item(comment="mine", column_comments=[{"position": 2, "comment": "b"}])),
        ({"id": 2}, item(column_comments=[])),
        ({"id": 3}, item(comment="", column_comments=[])),
        ({"id": largest}, item(column_comments=[{"position": n, "comment": ""} for n in (2**32 - 1, 0)])),
    ]
    comments = [
        ({"item_id": 1}, {"comment": "mine"}),
        ({"item_id": 1, "column": 2}, {"comment": "b"}),
        ({"item_id": 3}, {"comment": ""}),
        ({"item_id": largest, "column": 2**32 - 1}, {"comment": ""}),
        ({"item_id": largest, "column": 0}, {"comment": ""}),
    ]
    assert run(OLD, store_of(OLD, {"item": old})) == store_of(
        NEW, {"item": [(key, item()) for key, _ in old], "comment": comments}
    )


def test_two_comments_on_one_column_stop_the_step() -> None:
    """Which of them is right is not known."""
    comments = [v18.ColumnComment(position=7, comment="a"), v18.ColumnComment(position=7, comment="a")]
    value = v18.ItemValue(column_comments=comments)
    with pytest.raises(ValueError, match="item 5: two comments on column 7"):
        list(v18_to_v19.move_comments(v18.ItemKey(id=5), value))
    store = store_of(OLD, {"item": [({"id": 5}, item(column_comments=[{"position": 7, "comment": ""}] * 2))]})
    with pytest.raises(ValueError, match=r'comment: two rows with the key \{"column": 7, "item_id": 5\}'):
        oracle_v18_to_v19(store)


def test_the_old_row_is_not_changed() -> None:
    """What was read is compared with what is stored, after the migration as well as before."""
    value = v18.ItemValue(comment="mine", column_comments=[v18.ColumnComment(position=1)])
    before = value.SerializeToString()
    list(v18_to_v19.move_comments(v18.ItemKey(id=5), value))
    assert value.SerializeToString() == before
