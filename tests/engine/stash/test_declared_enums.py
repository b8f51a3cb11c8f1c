"""Enum values that the types do not declare are never stored, in keys and in values, at every depth."""

from __future__ import annotations

import re
from typing import Any

import pytest
from google.protobuf import text_format
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st

from catalog.constraints import CONSTRAINTS
from catalog.engine.base.arrow import binary_column
from catalog.engine.migrate.row_types import RowColumns, undeclared_in
from catalog.engine.stash.declared_enums import undeclared_values
from catalog.engine.stash.registry import Collection, Registry, encode
from catalog.engine.stash.stash import Stash
from catalog.errors import UndeclaredEnumError
from catalog.generated import objects_pb2 as types
from tests.earlier_builds import store_row
from tests.engine.log.places import Place

ANN = types.RoleId(user=1000)
ITEM = types.ItemKey(id=1)
GRANT = types.DefaultPrivilegeKey(object_type=99, role_id=ANN, grantee_id=ANN)  # type: ignore[arg-type]

TYPES = """
name: "enums.proto" package: "enums" syntax: "proto3"
enum_type {
  name: "Colour"
  value { name: "NONE" number: 0 } value { name: "RED" number: 3 } value { name: "DARK" number: -2 }
}
message_type {
  name: "Part"
  field { name: "colour" number: 1 type: TYPE_ENUM type_name: ".enums.Colour" label: LABEL_OPTIONAL proto3_optional: true oneof_index: 0 }
  field { name: "name" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
  oneof_decl { name: "_colour" }
}
message_type { name: "ThingKey" field { name: "colour" number: 1 type: TYPE_ENUM type_name: ".enums.Colour" label: LABEL_OPTIONAL } }
message_type {
  name: "ThingValue"
  field { name: "one" number: 1 type: TYPE_MESSAGE type_name: ".enums.Part" label: LABEL_OPTIONAL }
  field { name: "many" number: 2 type: TYPE_MESSAGE type_name: ".enums.Part" label: LABEL_REPEATED }
  field { name: "colours" number: 3 type: TYPE_ENUM type_name: ".enums.Colour" label: LABEL_REPEATED }
  field { name: "by_name" number: 4 type: TYPE_MESSAGE type_name: ".enums.ThingValue.ByNameEntry" label: LABEL_REPEATED }
  nested_type {
    name: "ByNameEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type: TYPE_ENUM type_name: ".enums.Colour" label: LABEL_OPTIONAL }
  }
}
"""  # noqa: E501
POOL = DescriptorPool()
POOL.Add(text_format.Parse(TYPES, FileDescriptorProto()))
Part, ThingKey, ThingValue = (
    GetMessageClass(POOL.FindMessageTypeByName(f"enums.{name}")) for name in ("Part", "ThingKey", "ThingValue")
)
THINGS = Collection("thing", ThingKey, ThingValue)
NUMBERS = st.sampled_from([-2, 0, 3, 3, 3, 1, 4, -3, 2**31 - 1])
PARTS = st.builds(Part, colour=st.none() | NUMBERS)
VALUES = st.builds(
    ThingValue,
    one=st.none() | PARTS,
    many=st.lists(PARTS, max_size=3),
    colours=st.lists(NUMBERS, max_size=3),
    by_name=st.dictionaries(st.sampled_from("ab"), NUMBERS),
)
KEYS = st.builds(ThingKey, colour=NUMBERS)


@pytest.fixture
def stash(place: Place) -> Stash:
    log = place.open()
    log.create("made")
    stash = Stash.open(log, Registry.of(types), CONSTRAINTS)
    stash.take_over(1, "test")
    with stash.transaction() as tx:
        tx.insert(types.RoleKey(id=ANN), types.RoleValue(name="ann"))
        tx.insert(types.SchemaKey(id=1), types.SchemaValue(name="s", owner_id=ANN))
        tx.insert(ITEM, item(types.ITEM_KIND_TABLE))
    return stash


def item(kind: int) -> types.ItemValue:
    return types.ItemValue(schema_id=1, name="i", owner_id=ANN, kind=kind)  # type: ignore[arg-type]


@pytest.mark.parametrize("verb", ["insert", "update", "upsert"])
def test_an_enum_value_that_the_types_do_not_declare_is_refused(stash: Stash, verb: str) -> None:
    """In a value, with the names that can be used; nothing is written."""
    before, key = stash.ts, types.ItemKey(id=2) if verb == "insert" else ITEM
    with pytest.raises(UndeclaredEnumError) as caught, stash.transaction() as tx:
        getattr(tx, verb)(key, item(99))
    assert stash.refresh() == before
    assert str(caught.value).splitlines() == [
        f'value.kind of the row {{"id": {key.id}}} of `item` is 99, which ItemKind does not declare',
        "why:  no name stands for this number, so no reader knows what it means",
        f"next: use one of: {', '.join(types.ItemKind.keys())}; if a newer build made the message, run that build",
    ]


def test_a_key_with_an_undeclared_enum_value_is_refused(stash: Stash) -> None:
    """Nobody could name the row."""
    with pytest.raises(UndeclaredEnumError, match=r"key\.object_type of the row") as caught, stash.transaction() as tx:
        tx.insert(GRANT, types.DefaultPrivilegeValue(acl_mode=1))
    assert (caught.value.value, caught.value.enum) == (99, "ObjectType")


def test_a_row_that_an_earlier_build_stored_so_can_be_read_and_deleted(stash: Stash) -> None:
    """And be given a declared value; otherwise there would be no way out."""
    with stash.transaction() as tx:
        store_row(tx, ITEM, item(99))
    with stash.transaction() as tx:
        found: Any = tx.get(ITEM)
        assert found.kind == 99
        tx.update(ITEM, item(types.ITEM_KIND_VIEW))
    with stash.transaction() as tx:
        tx.delete(ITEM)


@given(rows=st.lists(st.tuples(KEYS, VALUES), max_size=6))
def test_columns_and_messages_tell_the_same_undeclared_values(rows: list[tuple[Message, Message]]) -> None:
    """In lists, maps, optional fields and nested messages, whatever gaps an enum has."""
    expected: dict[tuple[str, int], set[int]] = {}
    for number, row in enumerate(rows):
        for side, message in zip(("key", "value"), row, strict=True):
            for path, value, _ in undeclared_values(message, f"{side}."):
                expected.setdefault((re.sub(r"\[\w+\]", "", path), value), set()).add(number)
    keys, values = (binary_column([encode(row[i]) for row in rows]).combine_chunks() for i in range(2))
    found = undeclared_in(THINGS, keys, RowColumns(THINGS).decode(keys, values)).found
    assert {place: own.rows for place, own in found.items()} == {place: len(own) for place, own in expected.items()}
    for place, own in found.items():
        assert own.key == encode(rows[min(expected[place])][0])
