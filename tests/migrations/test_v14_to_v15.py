"""v14_to_v15: every row changes from JSON to protobuf, and nothing else about it changes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.generated import objects_v15_pb2 as v15
from catalog.migrations import legacy_json_objects as legacy
from catalog.migrations import v14_to_v15
from tests.migrations.generated_stores import stores
from tests.migrations.oracles import oracle_v14_to_v15
from tests.migrations.plain import types
from tests.migrations.steps import run

OLD, NEW = 14, 15


@pytest.mark.parametrize("collection", types(OLD))
@given(data=st.data())
@settings(deadline=None)
def test_every_row_becomes_the_same_row_in_protobuf(collection: str, data: st.DataObject) -> None:
    """Through the stored bytes of both versions."""
    store = data.draw(stores(OLD, collection))
    assert run(OLD, store) == oracle_v14_to_v15(store)


def test_every_collection_of_the_old_version_is_one_of_the_new() -> None:
    """Nothing is created or retired, so an action for each is enough."""
    assert types(OLD).keys() == types(NEW).keys()
    assert len(v14_to_v15.upgrade()) == len(types(OLD))


def test_an_item_keeps_every_member() -> None:
    """The kind by its name, lists in their order."""
    comments = (legacy.ColumnComment(position=2, comment="b"), legacy.ColumnComment(position=1, comment=""))
    old = legacy.ItemValue(
        schema_id=3,
        name="träume",
        kind=legacy.ItemKind.MATERIALIZED_VIEW,
        create_sql="CREATE …",
        owner_id=2**64 - 1,
        comment="mine",
        column_comments=comments,
    )
    assert v14_to_v15.convert_item(legacy.ItemKey(id=2**64 - 1), old) == (
        v15.ItemKey(id=2**64 - 1),
        v15.ItemValue(
            schema_id=3,
            name="träume",
            kind=v15.ITEM_KIND_MATERIALIZED_VIEW,
            create_sql="CREATE …",
            owner_id=2**64 - 1,
            comment="mine",
            column_comments=[v15.ColumnComment(position=2, comment="b"), v15.ColumnComment(position=1)],
        ),
    )


def test_an_absent_member_stays_absent_and_a_zero_or_empty_one_stays() -> None:
    """For each of the five members that may be absent."""
    for number in (None, 0):
        schema = legacy.SchemaValue(database_id=number, name="s", owner_id=2)
        _, new_schema = v14_to_v15.convert_schema(legacy.SchemaKey(id=1), schema)
        assert new_schema.HasField("database_id") == (number is not None)
        key = legacy.DefaultPrivilegeKey(
            role_id=1, database_id=number, schema_id=number, object_type=legacy.ObjectType.TABLE, grantee_id=1
        )
        new_key, _ = v14_to_v15.convert_default_privilege(key, legacy.DefaultPrivilegeValue(acl_mode=0))
        assert new_key.HasField("database_id") == new_key.HasField("schema_id") == (number is not None)
        event = legacy.AuditLogValue(
            event_type=legacy.AuditEventType.DROP,
            object_type=legacy.ObjectType.SYSTEM,
            object_id="",
            object_name="",
            actor="",
            occurred_at_ms=number,
            reason="",
        )
        _, new_event = v14_to_v15.convert_audit_log(legacy.AuditLogKey(id=1), event)
        assert new_event.HasField("occurred_at_ms") == (number is not None)
    for comment in (None, ""):
        item = legacy.ItemValue(
            schema_id=1,
            name="",
            kind=legacy.ItemKind.TABLE,
            create_sql="",
            owner_id=2,
            comment=comment,
            column_comments=(),
        )
        _, new_item = v14_to_v15.convert_item(legacy.ItemKey(id=1), item)
        assert new_item.HasField("comment") == (comment is not None)


def test_spark_settings_are_in_the_order_of_their_names_by_code_point() -> None:
    """The order in which Python had them leaves no trace."""
    settings = {"z": "1", "é": "2", "Z": "3", "\U0001f600": "4", "\uffff": "5"}
    cluster = legacy.ClusterValue(name="c", owner_id=2, master="", spark_conf=settings, replicas=())
    _, new = v14_to_v15.convert_cluster(legacy.ClusterKey(id=1), cluster)
    assert [setting.name for setting in new.spark_conf] == ["Z", "z", "é", "\uffff", "\U0001f600"]


def test_every_name_of_an_enum_has_a_number() -> None:
    """None becomes the unspecified value, and no two become one."""
    assert [v15.ItemKind.Value(f"ITEM_KIND_{kind.name}") for kind in legacy.ItemKind] == [1, 2, 3, 4, 5]
    for kind in legacy.ObjectType:
        key = legacy.BuiltinMappingKey(schema_name="s", object_type=kind, object_name="o")
        new, _ = v14_to_v15.convert_builtin_mapping(key, legacy.BuiltinMappingValue(id=1, fingerprint="f"))
        assert v15.ObjectType.Name(new.object_type) == f"OBJECT_TYPE_{kind.name}"
