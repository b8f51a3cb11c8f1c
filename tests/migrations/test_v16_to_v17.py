"""v16_to_v17: a role id says which kind of role it is."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.migrations import v16_to_v17
from tests.migrations.generated_stores import stores
from tests.migrations.oracles import oracle_v16_to_v17
from tests.migrations.plain import Plain, store_of, stored
from tests.migrations.steps import decoded, run

OLD, NEW = 16, 17
NUMBERS: list[tuple[int, Plain]] = [
    (1, {"public": {}}),
    (2, {"system": 2}),
    (999, {"system": 999}),
    (1000, {"user": 1000}),
    (2**64 - 1, {"user": 2**64 - 1}),
]
MEMBERS: dict[str, Plain] = {
    "database": {"name": "d"},
    "schema": {"name": "s"},
    "item": {"schema_id": 0, "name": "i", "kind": 0, "create_sql": "", "column_comments": []},
    "cluster": {"name": "c", "master": "", "spark_conf": [], "replicas": []},
}


@pytest.mark.parametrize("collection", [*MEMBERS, "role", "default_privilege", "system_privilege"])
@given(data=st.data())
@settings(deadline=None)
def test_every_collection_becomes_what_the_oracle_says(collection: str, data: st.DataObject) -> None:
    """Through the stored bytes of both versions."""
    store = data.draw(stores(OLD, collection))
    assert run(OLD, store) == oracle_v16_to_v17(store)


@pytest.mark.parametrize("collection", MEMBERS)
def test_the_number_of_an_owner_decides_its_kind(collection: str) -> None:
    """1 is public, 2 to 999 are system, 1000 and above are user."""
    members = MEMBERS[collection]
    old = [({"id": place}, {**members, "owner_id": number}) for place, (number, _) in enumerate(NUMBERS)]
    new = [({"id": place}, {**members, "owner_id": role}) for place, (_, role) in enumerate(NUMBERS)]
    assert run(OLD, store_of(OLD, {collection: old})) == store_of(NEW, {collection: new})


def test_a_role_and_its_memberships_change_together() -> None:
    """In their order; an empty list stays empty."""
    numbers, roles = [number for number, _ in NUMBERS], [role for _, role in NUMBERS]
    value = {"name": "r", "permissions": 7}
    lists = [slice(0), slice(5), slice(1), slice(0), slice(3, 1, -1)]
    old = [({"id": n}, {**value, "member_of": numbers[part]}) for n, part in zip(numbers, lists, strict=True)]
    new = [({"id": r}, {**value, "member_of": roles[part]}) for r, part in zip(roles, lists, strict=True)]
    assert run(OLD, store_of(OLD, {"role": old})) == store_of(NEW, {"role": new})


def test_both_roles_of_a_privilege_change() -> None:
    """Absent places stay absent, and those that are 0 stay 0."""
    place = {"database_id": 0, "schema_id": 2**64 - 1, "object_type": 99}
    old = {
        "default_privilege": [
            ({"role_id": 1, "grantee_id": 1000, "object_type": 1}, {"acl_mode": 1}),
            ({"role_id": 1000, "grantee_id": 1, **place}, {"acl_mode": 0}),
        ],
        "system_privilege": [({"grantee_id": 1, "grantor_id": 2}, {"acl_mode": 2**64 - 1})],
    }
    public, system, user = (role for number, role in NUMBERS if number in {1, 2, 1000})
    assert run(OLD, store_of(OLD, old)) == store_of(
        NEW,
        {
            "default_privilege": [
                ({"role_id": public, "grantee_id": user, "object_type": 1}, {"acl_mode": 1}),
                ({"role_id": user, "grantee_id": public, **place}, {"acl_mode": 0}),
            ],
            "system_privilege": [({"grantee_id": public, "grantor_id": system}, {"acl_mode": 2**64 - 1})],
        },
    )


def role(id_: int, *member_of: int) -> tuple[Plain, Plain]:
    return {"id": id_}, {"name": "", "permissions": 0, "member_of": list(member_of)}


@pytest.mark.parametrize(
    ("collection", "rows", "message"),
    [
        ("role", [role(0), role(1)], "row 0: id is 0, which is no role's id"),
        ("role", [role(2, 3, 4), role(3), role(5, 1000, 0)], "row 2: member_of is 0, which is no role's id"),
        *(
            (name, [({"id": n}, {**members, "owner_id": 2 - n}) for n in range(3)], "row 2: owner_id is 0")
            for name, members in MEMBERS.items()
        ),
        (
            "default_privilege",
            [({"role_id": 2, "grantee_id": 0, "object_type": 1}, {"acl_mode": 1})],
            "row 0: grantee_id is 0",
        ),
        ("system_privilege", [({"grantee_id": 2, "grantor_id": 0}, {"acl_mode": 1})], "row 0: grantor_id is 0"),
    ],
)
def test_0_is_no_role(collection: str, rows: list[tuple[Plain, Plain]], message: str) -> None:
    """Wherever it stands it stops the step, and the row is named."""
    store = store_of(OLD, {collection: rows})
    batch = decoded(OLD, collection, stored(OLD, store)[collection])
    actions: list[Any] = v16_to_v17.upgrade()
    (change,) = [action.change for action in actions if action.collection == collection]
    with pytest.raises(ValueError, match=re.escape(message)):
        change(batch)
    with pytest.raises(ValueError, match="no role's id"):
        oracle_v16_to_v17(store)


def test_a_row_is_named_by_its_place_in_the_batch_that_was_given() -> None:
    """Also where that batch is a part of another."""
    store = store_of(OLD, {"role": [role(2, 3, 4), role(3, 2), role(5, 1000, 0)]})
    batch = decoded(OLD, "role", stored(OLD, store)["role"])
    with pytest.raises(ValueError, match="row 1: member_of is 0"):
        v16_to_v17.retype_role(batch.slice(1))
