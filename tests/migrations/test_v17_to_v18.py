"""v17_to_v18: databases, schemas and items say who may do what with them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.migrations.generated_stores import stores
from tests.migrations.oracles import oracle_v17_to_v18
from tests.migrations.plain import Plain, Row, store_of
from tests.migrations.steps import run

OLD, NEW = 17, 18
OWNERS: list[Plain] = [{"user": 1000}, {"user": 2**64 - 1}, {"system": 2}, {"public": {}}]


@pytest.mark.parametrize("collection", ["database", "schema", "item"])
@given(data=st.data())
@settings(deadline=None)
def test_every_collection_becomes_what_the_oracle_says(collection: str, data: st.DataObject) -> None:
    """Through the stored bytes of both versions; a row without an owner grants to nobody."""
    store = data.draw(stores(OLD, collection))
    assert run(OLD, store) == oracle_v17_to_v18(store)


@pytest.mark.parametrize("collection", ["database", "schema"])
def test_the_owner_may_use_a_database_or_schema_and_create_in_it(collection: str) -> None:
    """Usage 16 and create 32, granted by the owner to the owner."""
    old = [({"id": n}, {"name": "", "owner_id": owner}) for n, owner in enumerate(OWNERS)]
    new = [
        (key, {**value, "privileges": [{"grantee": value["owner_id"], "grantor": value["owner_id"], "acl_mode": 48}]})
        for key, value in old
    ]
    assert run(OLD, store_of(OLD, {collection: old})) == store_of(NEW, {collection: new})


def test_the_owner_of_an_item_may_do_what_its_kind_allows() -> None:
    """A kind that is unspecified or unknown allows nothing that could be said."""
    modes = {0: None, 1: 15, 2: 1, 3: 1, 4: 1, 5: 16, 6: None, 2**31 - 1: None, -(2**31): None}
    old, new = [], []
    for number, (kind, mode) in enumerate(modes.items()):
        owner = OWNERS[number % len(OWNERS)]
        value: Plain = {"schema_id": 1, "name": "", "kind": kind, "create_sql": "", "column_comments": []}
        value |= {"owner_id": owner, "comment": ""}
        old.append(({"id": number}, value))
        granted = [] if mode is None else [{"grantee": owner, "grantor": owner, "acl_mode": mode}]
        new.append(({"id": number}, {**value, "privileges": granted}))
    assert run(OLD, store_of(OLD, {"item": old})) == store_of(NEW, {"item": new})


def test_default_privileges_are_not_applied() -> None:
    """They speak of objects made later: nobody but the owner gains anything."""
    everyone = {"role_id": {"public": {}}, "grantee_id": {"public": {}}, "object_type": 7}
    rows: dict[str, list[Row]] = {
        "database": [({"id": 1}, {"name": "d", "owner_id": {"user": 1000}})],
        "default_privilege": [(everyone, {"acl_mode": 48})],
    }
    new = run(OLD, store_of(OLD, rows))
    ((_, database),) = new["database"].values()
    assert [entry["grantee"] for entry in database["privileges"]] == [{"user": 1000}]
    assert new["default_privilege"] == store_of(OLD, rows)["default_privilege"]
