"""v21_to_v22: roles, databases, schemas and items may have an `oid`; no row is read or written."""

from __future__ import annotations

import pytest
from google.protobuf.message import Message

from catalog.actions import wire_compatible
from catalog.generated import objects_v21_pb2 as v21
from catalog.generated import objects_v22_pb2 as v22
from catalog.migrations import v21_to_v22

OWNER = v21.RoleId(user=1000)
ACL = v21.AclItem(grantee=v21.RoleId(public=v21.Empty()), grantor=OWNER, acl_mode=3)
ROWS: dict[str, tuple[Message, type[Message]]] = {
    "role": (v21.RoleValue(name="ann", permissions=5, member_of=[v21.RoleId(system=2)]), v22.RoleValue),
    "database": (v21.DatabaseValue(name="sales", owner_id=OWNER, privileges=[ACL]), v22.DatabaseValue),
    "schema": (v21.SchemaValue(database_id=1, name="public", owner_id=OWNER, privileges=[ACL]), v22.SchemaValue),
    "item": (
        v21.ItemValue(
            schema_id=3,
            name="orders",
            kind=v21.ITEM_KIND_TABLE,
            create_sql="CREATE TABLE orders (id BIGINT)",
            owner_id=OWNER,
            privileges=[ACL],
        ),
        v22.ItemValue,
    ),
}


def test_every_collection_that_gains_an_oid_keeps_its_rows_as_they_are() -> None:
    """The step declares exactly the four collections, and that their bytes stay."""
    expected = [wire_compatible(collection) for collection in ("role", "database", "schema", "item")]
    assert sorted(v21_to_v22.upgrade(), key=repr) == sorted(expected, key=repr)


@pytest.mark.parametrize("collection", ROWS)
def test_old_rows_read_as_new_ones_without_an_oid_and_write_the_same_bytes(collection: str) -> None:
    """A row written at v21 means the same at v22, byte for byte."""
    old, new_type = ROWS[collection]
    stored = old.SerializeToString(deterministic=True)
    new = new_type.FromString(stored)
    assert not new.HasField("oid")
    assert new.SerializeToString(deterministic=True) == stored
