"""The encoding of version 14: one for each row, and nothing else is read."""

import json
import pickle
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.migrations import legacy_json_objects as legacy

ITEM = legacy.ItemValue(
    schema_id=3,
    name="träume",
    kind=legacy.ItemKind.MATERIALIZED_VIEW,
    create_sql='CREATE MATERIALIZED VIEW "träume" AS\nSELECT 1',
    owner_id=1000,
    comment="",
    column_comments=(legacy.ColumnComment(position=1, comment="the one"),),
)
ITEM_BYTES = (
    '{"column_comments":[{"comment":"the one","position":1}],"comment":"",'
    '"create_sql":"CREATE MATERIALIZED VIEW \\"träume\\" AS\\nSELECT 1","kind":"materialized_view",'
    '"name":"träume","owner_id":1000,"schema_id":3}'
).encode()

U32 = st.integers(0, 2**32 - 1)
U64 = st.integers(0, 2**64 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SIZES = st.builds(legacy.ReplicaSize, executors=U32, cores=U32, memory_mib=U64)
REPLICAS = st.builds(legacy.Replica, name=TEXT, size=SIZES)
COLUMN_COMMENTS = st.builds(legacy.ColumnComment, position=U32, comment=TEXT)
OBJECT_TYPES = st.sampled_from(legacy.ObjectType)
MEMBERS: dict[str, st.SearchStrategy[Any]] = {
    "acl_mode": U64,
    "column_comments": st.lists(COLUMN_COMMENTS, max_size=3).map(tuple),
    "comment": st.none() | TEXT,
    "create_cluster": st.booleans(),
    "create_db": st.booleans(),
    "create_role": st.booleans(),
    "database_id": st.none() | U64,
    "event_type": st.sampled_from(legacy.AuditEventType),
    "grantee_id": U64,
    "grantor_id": U64,
    "id": U64,
    "kind": st.sampled_from(legacy.ItemKind),
    "member_of": st.lists(U64, max_size=3).map(tuple),
    "next_id": U64,
    "object_type": OBJECT_TYPES,
    "occurred_at_ms": st.none() | U64,
    "owner_id": U64,
    "replicas": st.lists(REPLICAS, max_size=3).map(tuple),
    "role_id": U64,
    "schema_id": U64,
    "spark_conf": st.dictionaries(TEXT, TEXT, max_size=3),
    "ts": U64,
}
ROW_TYPES = [kind for collection in legacy.COLLECTIONS.values() for kind in collection]


def rows(kind: type) -> st.SearchStrategy[Any]:
    """Generate messages of a type: every member of it that is not in MEMBERS is a text."""
    return st.builds(kind, **{name: MEMBERS.get(name, TEXT) for name in get_type_hints(kind)})


@given(st.data())
@pytest.mark.parametrize("kind", ROW_TYPES)
def test_every_row_comes_back_as_it_was(kind: type, data: st.DataObject) -> None:
    """What is encoded decodes to an equal message, and that encodes to the same bytes."""
    row = data.draw(rows(kind))
    encoded = legacy.encode(row)
    assert legacy.decode(kind, encoded) == row
    assert legacy.encode(legacy.decode(kind, encoded)) == encoded


@given(st.sampled_from(ROW_TYPES), st.binary() | TEXT.map(str.encode))
def test_arbitrary_bytes_are_refused_with_a_value_error(kind: type, data: bytes) -> None:
    """Whatever the bytes are, no other exception comes out."""
    with pytest.raises(ValueError, match=kind.__name__):
        legacy.decode(kind, data)


def test_the_encoding_is_written_out() -> None:
    """Sorted members, no spaces, UTF-8 unescaped, enums by name: stored bytes do not move."""
    assert legacy.encode(ITEM) == ITEM_BYTES
    assert legacy.decode(legacy.ItemValue, ITEM_BYTES) == ITEM


def test_an_absent_member_is_left_out_and_an_empty_one_is_not() -> None:
    """A system schema has no database_id; a role with no memberships has an empty list."""
    assert legacy.encode(legacy.SchemaValue(name="s", owner_id=2)) == b'{"name":"s","owner_id":2}'
    role = legacy.RoleValue(name="", create_db=False, create_role=True, create_cluster=False, member_of=())
    assert legacy.encode(role) == (
        b'{"create_cluster":false,"create_db":false,"create_role":true,"member_of":[],"name":""}'
    )


def test_the_largest_integer_keeps_every_digit() -> None:
    """64 bits survive, where readers that take numbers for doubles would round them."""
    encoded = legacy.encode(legacy.RoleKey(id=2**64 - 1))
    assert encoded == b'{"id":18446744073709551615}'
    assert legacy.decode(legacy.RoleKey, encoded).id == 2**64 - 1


def test_map_members_are_sorted_by_code_point() -> None:
    """The order in which settings were added leaves no trace."""
    settings = {"z": "1", "é": "2", "Z": "3", "\U0001f600": "4", "\uffff": "5"}
    cluster = legacy.ClusterValue(name="c", owner_id=2, master="", spark_conf=settings, replicas=())
    encoded = legacy.encode(cluster)
    assert list(json.loads(encoded)["spark_conf"]) == ["Z", "z", "é", "\uffff", "\U0001f600"]


@pytest.mark.parametrize(
    ("kind", "data", "message"),
    [
        (legacy.RoleKey, b"", "RoleKey: unreadable: Expecting value"),
        (legacy.RoleKey, b'{"id":1', "RoleKey: unreadable: "),
        (legacy.RoleKey, b'{"id":1}x', "RoleKey: unreadable: Extra data"),
        (legacy.RoleKey, b'{"id":1,"id":1}', "RoleKey: unreadable: member 'id' occurs twice"),
        (legacy.RoleKey, b'\xef\xbb\xbf{"id":1}', "RoleKey: unreadable: .*BOM"),
        (legacy.RoleKey, b"[" * 100_000, "RoleKey: unreadable: "),
        (legacy.RoleKey, b'{"id":' + b"9" * 10_000 + b"}", "RoleKey: unreadable: "),
        (legacy.SettingKey, b'{"name":"\xff"}', "SettingKey: not UTF-8 at byte 9"),
        (legacy.SettingKey, b'{"name":"\xed\xa0\x80"}', "SettingKey: not UTF-8 at byte 9"),
        (legacy.SettingKey, b'{"name":"\\ud800"}', "SettingKey: a text has a surrogate"),
        (legacy.RoleKey, b"{}", "RoleKey: missing member 'id'"),
        (legacy.RoleKey, b'{"id":1,"oid":2}', "RoleKey: unknown member 'oid'"),
        (legacy.RoleKey, b"[1]", "RoleKey: expected dict, found list"),
        (legacy.RoleKey, b'{"id":"1"}', "RoleKey.id: expected int, found str"),
        (legacy.RoleKey, b'{"id":true}', "RoleKey.id: expected int, found bool"),
        (legacy.RoleKey, b'{"id":1.0}', "RoleKey.id: expected int, found float"),
        (legacy.RoleKey, b'{"id":NaN}', "RoleKey.id: expected int, found float"),
        (legacy.RoleKey, b'{"id":-1}', "RoleKey.id: -1 is not an unsigned integer of 64 bits"),
        (legacy.RoleKey, b'{"id":18446744073709551616}', "RoleKey.id: .* of 64 bits"),
        (
            legacy.SchemaValue,
            b'{"database_id":null,"name":"s","owner_id":2}',
            "SchemaValue.database_id: expected int, found NoneType",
        ),
        (
            legacy.ItemValue,
            ITEM_BYTES.replace(b'"position":1', b'"position":4294967296'),
            r"ItemValue.column_comments\[0\].position: 4294967296 is not an unsigned integer of 32 bits",
        ),
        (
            legacy.ItemValue,
            ITEM_BYTES.replace(b'"materialized_view"', b'"index"'),
            "ItemValue.kind: 'index' is not one of table, view, materialized_view, source, function",
        ),
        (
            legacy.ClusterValue,
            b'{"master":"","name":"c","owner_id":2,"replicas":[],"spark_conf":{"a":1}}',
            r"ClusterValue.spark_conf\['a'\]: expected str, found int",
        ),
        (legacy.RoleKey, b'{"id": 1}', "RoleKey: not canonical: .* from byte 6 on"),
        (legacy.RoleKey, b'{"id":1}\n', "RoleKey: not canonical: .* from byte 8 on"),
        (legacy.RoleKey, b'{"id":-0}', "RoleKey: not canonical: .* from byte 6 on"),
        (legacy.SettingKey, b'{"name":"\\u00e4"}', "SettingKey: not canonical: .* from byte 9 on"),
        (legacy.SettingKey, b'{"name":"\\/"}', "SettingKey: not canonical: .* from byte 9 on"),
        (legacy.SettingKey, b'{"name":"\\u001F"}', "SettingKey: not canonical: .* from byte 14 on"),
        (
            legacy.SystemPrivilegeKey,
            b'{"grantor_id":2,"grantee_id":1}',
            "SystemPrivilegeKey: not canonical: .* from byte 7 on",
        ),
    ],
)
def test_what_is_not_the_encoding_of_a_row_is_refused(kind: type, data: bytes, message: str) -> None:
    """The error names the type, the member and what is wrong with it."""
    with pytest.raises(ValueError, match=f"^{message}"):
        legacy.decode(kind, data)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (legacy.RoleKey(id=-1), "RoleKey.id: -1 is not an unsigned integer of 64 bits"),
        (legacy.RoleKey(id=True), "RoleKey.id: expected int, found bool"),
        (legacy.SettingKey(name="\ud800"), "SettingKey: a text has a surrogate"),
        (legacy.SettingKey(name=None), "SettingKey: missing member 'name'"),  # type: ignore[arg-type]
        (
            legacy.ClusterValue(
                name="c",
                owner_id=2,
                master="",
                spark_conf={1: "one"},  # type: ignore[dict-item]
                replicas=(),
            ),
            "ClusterValue.spark_conf: expected str, found int",
        ),
    ],
)
def test_a_row_that_could_not_be_read_back_is_not_written(row: object, message: str) -> None:
    """Encoding checks what decoding checks, so that a generated store is a readable one."""
    with pytest.raises(ValueError, match=f"^{message}"):
        legacy.encode(row)


def test_only_keys_and_values_are_rows() -> None:
    """A nested message has no encoding of its own."""
    with pytest.raises(TypeError, match="ReplicaSize is not a key or a value of version 14"):
        legacy.encode(legacy.ReplicaSize(executors=1, cores=1, memory_mib=1))
    with pytest.raises(TypeError, match="Replica is not a key or a value of version 14"):
        legacy.decode(legacy.Replica, b"{}")


def test_engine_collections_are_not_legacy() -> None:
    """They are protobuf at every version, so a JSON row of theirs cannot exist."""
    assert {"config", "fence_token", "migration_event"}.isdisjoint(legacy.COLLECTIONS)


@pytest.mark.parametrize(("name", "collection"), legacy.COLLECTIONS.items())
def test_collections_are_named_after_their_types(name: str, collection: legacy.Collection) -> None:
    """Collection x_y is XYKey and XYValue, as in the protos."""
    camel = name.title().replace("_", "")
    assert (collection.key.__name__, collection.value.__name__) == (f"{camel}Key", f"{camel}Value")


def test_keys_are_hashable_and_rows_can_be_pickled() -> None:
    """Rows travel between processes, keys are looked up."""
    assert hash(legacy.RoleKey(id=1)) == hash(legacy.RoleKey(id=1))
    assert pickle.loads(pickle.dumps(ITEM)) == ITEM  # noqa: S301 - its own bytes
