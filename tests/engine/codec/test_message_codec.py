"""Messages as columns: bytes to Arrow to bytes, to Spark's types and back, and what must not be decoded."""

from __future__ import annotations

import pickle
import subprocess
import sys
from decimal import Decimal
from importlib import import_module
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from catalog.engine.codec import MessageCodec, codec_for, first_difference, from_spark, spark_type, to_spark
from catalog.errors import UndecodableRowError, UnfitColumnError, UnsupportedMessageError
from catalog.generated import objects_v22_pb2 as v22
from tests.gate.wire_messages import descriptor, draw_messages, seeded
from tests.gate.wire_schemas import compile_proto, draw_schema

VERSIONS = range(15, 23)
MESSAGES: dict[int, list[Descriptor]] = {
    version: list(import_module(f"catalog.generated.objects_v{version}_pb2").DESCRIPTOR.message_types_by_name.values())
    for version in VERSIONS
}
UINT64_MAX = 2**64 - 1
seeds = st.integers(0, 2**32)
slow = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
few = settings(slow, max_examples=8)
_WHOLE = {
    FieldDescriptor.TYPE_ENUM: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.TYPE_UINT64: (0, UINT64_MAX),
}


def a_field(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    if field.message_type:
        return a_message(field.message_type)
    if field.type == FieldDescriptor.TYPE_STRING:
        return st.text(max_size=20)
    if field.type == FieldDescriptor.TYPE_BOOL:
        return st.booleans()
    low, high = _WHOLE[field.type]
    return st.integers(low, high) | st.sampled_from((low, high, 0))


@st.composite
def a_message(draw: st.DrawFn, message: Descriptor) -> Message:
    """Draw any message of this project's types; of a oneof, one member."""
    drawn = {}
    for field in message.fields:
        if draw(st.booleans()):
            value = a_field(field)
            drawn[field.name] = draw(st.lists(value, max_size=3) if field.is_repeated else value)
    return GetMessageClass(message)(**drawn)


def serialise(*messages: Message) -> pa.BinaryArray:
    return pa.array([message.SerializeToString(deterministic=True) for message in messages], pa.binary())


def codec_of(kind: type[Message]) -> MessageCodec:
    return codec_for(descriptor(kind))


def check_round_trip(codec: MessageCodec, column: pa.BinaryArray) -> None:
    """Bytes, Arrow, Spark, Arrow, bytes: nothing changes on the way, whole or in slices."""
    decoded = codec.decode(column)
    decoded.validate(full=True)
    assert str(decoded.type) == str(codec.type)
    held = to_spark(decoded)
    held.validate(full=True)
    assert str(held.type) == str(spark_type(codec.type))
    back = from_spark(held, codec.type)
    assert str(back.type) == str(codec.type)
    for messages in (decoded, held, back):
        assert not hidden_nulls(messages, nullable=False)
    for start, end in ((0, None), (1, None), (0, -1), (1, -1), (2, 2)):
        for messages in (decoded, held, back, to_spark(decoded[start:end]), from_spark(held[start:end], codec.type)):
            part = messages[start:end] if len(messages) == len(column) else messages
            assert first_difference(column[start:end], codec.encode(part)) is None, codec.name


def hidden_nulls(array: pa.Array, *, nullable: bool) -> bool:
    """Say whether nulls stand where the type has none, be it below another null: pyarrow and Spark differ on these."""
    kind, children = array.type, []
    if pa.types.is_struct(kind):
        children = [(array.field(field.name), field) for field in kind]
    elif pa.types.is_map(kind):
        children = [(array.keys, kind.key_field), (array.items, kind.item_field)]
    elif pa.types.is_list(kind):
        children = [(array.values, kind.value_field)]
    inside = any(hidden_nulls(child, nullable=field.nullable) for child, field in children)
    return inside or (not nullable and array.null_count > 0)


@pytest.mark.parametrize("version", VERSIONS)
@few
@given(seeds)
def test_every_message_of_every_version_survives(version: int, seed: int) -> None:
    """What protobuf writes deterministically comes back to the byte, also through what Spark can hold."""
    for message in MESSAGES[version]:
        check_round_trip(codec_for(message), serialise(*draw_messages(GetMessageClass(message), seed, count=6)))


@slow
@given(st.data())
def test_any_values_survive(data: st.DataObject) -> None:
    """The same for values that nobody thought of, which Hypothesis can make smaller."""
    message = data.draw(st.sampled_from(MESSAGES[data.draw(st.sampled_from(VERSIONS))]))
    check_round_trip(codec_for(message), serialise(*data.draw(st.lists(a_message(message), max_size=4))))


@slow
@given(seeds)
def test_types_of_other_projects_survive_or_are_refused(seed: int) -> None:
    """Maps, floats, bytes and every kind of number as well; only recursion and `packed = false` are refused."""
    kind = draw_schema(seeded(seed)).build()
    if is_refused(descriptor(kind)):
        with pytest.raises(UnsupportedMessageError):
            codec_of(kind)
        return
    drawn = (message for message in draw_messages(kind, seed) if ": -0\n" not in str(message))
    check_round_trip(codec_of(kind), serialise(*drawn))


def is_refused(message: Descriptor, outer: tuple[Descriptor, ...] = ()) -> bool:
    repeated = [field for field in message.fields if field.is_repeated and not field.is_packed]
    inner = [field.message_type for field in message.fields if field.message_type]
    unpacked = any(field.type not in {9, 11, 12} for field in repeated)
    return message in outer or unpacked or any(is_refused(nested, (*outer, message)) for nested in inner)


CONFUSABLE: dict[str, list[dict[str, Any]]] = {
    "ConfigValue": [{}, {"number": 0}, {"number": UINT64_MAX}, {"text": ""}],
    "RoleKey": [{}, {"id": {}}, {"id": {"system": 0}}, {"id": {"user": 0}}, {"id": {"public": {}}}],
    "CommentKey": [{"column": 0}, {"item_id": 0}, {"role_id": {"user": 0}, "column": 2**32 - 1}],
    "MigrationEventValue": [{}, {"completed_ms": 0}, {"rows_after": UINT64_MAX}],
    "AuditLogValue": [{}, {"event_type": -1}, {"event_type": 2**31 - 1}, {"object_type": 77}],
    "DatabaseValue": [{}, {"privileges": [{}]}, {"privileges": [{}, {}]}, {"privileges": [{"grantee": {}}]}],
    "ClusterValue": [{"spark_conf": [{}]}, {"spark_conf": [{}, {"name": "é\0"}]}],
    "Empty": [{}],
}


@pytest.mark.parametrize("name", CONFUSABLE)
def test_what_is_easily_confused_stays_apart(name: str) -> None:
    """Absent and zero, absent and empty, the largest numbers, enum numbers without a name, no fields at all."""
    column = serialise(*(getattr(v22, name)(**fields) for fields in CONFUSABLE[name]))
    assert len(column.unique()) == len(column)
    check_round_trip(codec_of(getattr(v22, name)), column)


def test_columns_show_presence() -> None:
    """In Arrow null is absent and zero is zero; in Spark an empty message is true."""
    decoded = codec_of(v22.RoleKey).decode(
        serialise(v22.RoleKey(), v22.RoleKey(id=v22.RoleId(user=0)), v22.RoleKey(id=v22.RoleId(public=v22.Empty())))
    )
    assert decoded.to_pylist() == [
        {"id": None},
        {"id": {"system": None, "user": 0, "public": None}},
        {"id": {"system": None, "user": None, "public": {}}},
    ]
    assert to_spark(decoded).to_pylist() == [
        {"id": None},
        {"id": {"system": None, "user": Decimal(0), "public": None}},
        {"id": {"system": None, "user": None, "public": True}},
    ]


def test_a_codec_is_made_once() -> None:
    codec = codec_of(v22.RoleKey)
    assert (codec.name, codec.schema.names) == ("catalog.objects_v22.RoleKey", ["id"])
    assert codec is codec_of(v22.RoleKey)


def test_members_of_what_may_be_null_may_be_null_in_spark() -> None:
    """Else Spark's own `toArrow` fails; what has none in protobuf is checked on the way back."""
    assert str(spark_type(codec_of(v22.ReplicaSize).type)).count("not null") == 3
    assert "not null" not in str(spark_type(codec_of(v22.ReplicaSize).type, nullable=True))
    size = spark_type(codec_of(v22.ClusterReplicaValue).type).field("size")
    assert "not null" not in str(size)


@pytest.mark.parametrize("version", [*VERSIONS, "maps"])
def test_spark_declares_exactly_these_types(version: int | str) -> None:
    """Spark takes each schema and gives it back alike: names of list children and nullability included."""
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema  # noqa: PLC0415 - slow to import

    maps = compile_proto("message M { map<string, N> m = 1; message N { map<uint32, uint64> n = 1; } }")
    for message in MESSAGES[version] if isinstance(version, int) else maps.message_types_by_name.values():
        schema = pa.schema([pa.field("value", spark_type(codec_for(message).type), nullable=False)])
        declared = to_arrow_schema(from_arrow_schema(schema))
        assert exactly(declared.field(0)) == exactly(schema.field(0))


def exactly(field: pa.Field) -> object:
    """Describe a field to the last name and nullability, which the equality of types passes over."""
    kind = field.type
    children = [kind.field(index) for index in range(kind.num_fields)]
    return field.name, field.nullable, [exactly(child) for child in children] or kind


def test_unknown_fields_are_noticed() -> None:
    """A field of a newer version would be dropped; the comparison names the first such row."""
    column = pa.array([b"", b"\x0a\x01a", b"\x0a\x01b\x78\x01", b"\x78\x01"], pa.binary())
    codec = codec_of(v22.SettingValue)
    again = codec.encode(codec.decode(column))
    assert first_difference(column, again) == 2
    assert first_difference(column[:2], again[:2]) is None
    assert first_difference(column[3:], again[3:]) == 0
    assert first_difference(pa.array([b"a", None]), pa.array([b"a", b""])) == 1
    with pytest.raises(ValueError, match="4 rows cannot be compared with 3"):
        first_difference(column, again[1:])


GARBAGE = {
    "cut short": b"\x0a\x05ab",
    "no text": b"\x0a\x01\xff",
    "a length beyond all memory": b"\x0a" + b"\xff" * 9 + b"\x01",
    "a number without end": b"\xff" * 12,
    "field 0": b"\0\0\0\0",
    "groups deeper than the stack": b"\x4b" * 1_000_000,
    "long and cut short": b"\x0a\xff\xff\x7f" + b"a" * 10_000,
    "null": None,
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=list(GARBAGE))
@pytest.mark.parametrize(("count", "row"), [(1, 0), (2, 0), (2, 1), (1000, 0), (1000, 617), (1000, 999)])
def test_an_undecodable_row_is_named(garbage: bytes | None, count: int, row: int) -> None:
    """Not the batch but the first bad row, and how it begins; the process lives on."""
    rows: list[bytes | None] = [b"\x0a\x01a"] * count
    rows[row] = rows[-1] = garbage
    with pytest.raises(UndecodableRowError) as caught:
        codec_of(v22.SettingValue).decode(pa.array(rows, pa.binary()))
    error = caught.value
    assert (error.message, error.row, error.head) == (codec_of(v22.SettingValue).name, row, (garbage or b"")[:32].hex())
    assert f"row {row} is no catalog.objects_v22.SettingValue" in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301


@pytest.mark.parametrize(
    ("kind", "where"),
    [(v22.RoleId, ""), (v22.RoleKey, " in id"), (v22.DatabaseValue, " in grantor in privileges")],
)
def test_a_oneof_with_two_members_is_refused(kind: type[Message], where: str) -> None:
    """Protobuf would keep the last of them, ptars both: neither reading nor writing lets it pass."""
    wire = b"\x08\x00\x10\x00"
    if where:
        wire = b"\x12\x04" + wire
    if kind is v22.DatabaseValue:
        field = descriptor(v22.DatabaseValue).fields_by_name["privileges"].number
        wire = bytes([field << 3 | 2, len(wire)]) + wire
    with pytest.raises(UndecodableRowError, match=f"row 1 .*it holds more than one of system, user, public{where}\n"):
        codec_of(kind).decode(pa.array([b"", wire], pa.binary()))
    role = {"system": 1, "user": 1, "public": None}
    full: dict[type[Message], dict[str, Any]] = {
        v22.RoleId: role,
        v22.RoleKey: {"id": role},
        v22.DatabaseValue: {"name": "", "privileges": [{"grantor": role, "acl_mode": 0}]},
    }
    with pytest.raises(UnfitColumnError, match=f"more than one of system, user, public{where}; needed: one"):
        codec_of(kind).encode(pa.array([full[kind]], codec_of(kind).type))


@slow
@given(st.sampled_from([v22.MigrationEventValue, v22.ConfigValue, v22.DatabaseValue, v22.ClusterReplicaValue]), seeds)
@example(v22.ConfigValue, 0)
def test_a_row_that_passes_is_what_protobuf_writes(kind: type[Message], seed: int) -> None:
    """Damaged rows are refused or noticed; the others are read and written by protobuf alike."""
    random = seeded(seed)
    codec = codec_of(kind)
    for message in draw_messages(kind, seed):
        damaged = damage(message.SerializeToString(deterministic=True), random)
        column = pa.array([damaged], pa.binary())
        try:
            again = codec.encode(codec.decode(column))
        except UndecodableRowError:
            continue
        if first_difference(column, again) is None:
            assert kind.FromString(damaged).SerializeToString(deterministic=True) == damaged


def damage(wire: bytes, random: Random) -> bytes:
    """Flip, drop, repeat or add a few bytes."""
    changed = bytearray(wire)
    for _ in range(random.randint(1, 3)):
        start = random.randint(0, len(changed))
        end = min(len(changed), start + random.randint(0, 6))
        changed[start:end] = random.choice((random.randbytes(end - start), b"", changed[start:end] * 2, b"\x08\x00"))
    return bytes(changed)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("message M { M m = 1; }", "p.M cannot be stored: it contains itself"),
        ("message M { repeated N n = 1; } message N { map<int32, M> m = 1; }", "p.M cannot be stored"),
        ("message M { repeated int32 n = 1 [packed = false]; }", "p.M.n cannot be stored: it has packed"),
    ],
)
def test_a_message_that_would_not_survive_is_refused(body: str, message: str) -> None:
    with pytest.raises(UnsupportedMessageError, match=message) as caught:
        codec_for(compile_proto(body).message_types_by_name["M"])
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301


def test_the_codec_needs_no_spark_and_the_package_no_codec() -> None:
    """`import catalog` stays light, and the codec serves processes that have no Spark."""
    look = "import sys, {}; print(sorted({{'pyspark', 'pyarrow', 'ptars'}} & set(sys.modules)))"
    for module, loaded in (("catalog", "[]"), ("catalog.engine.codec", "['ptars', 'pyarrow']")):
        done = subprocess.run([sys.executable, "-c", look.format(module)], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == loaded
