"""Rows as JSON and back: nothing lost, nothing guessed."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog.engine.stash.json_rows import from_json, key_from_json, row_to_json, to_json
from catalog.engine.stash.registry import Registry, encode
from catalog.errors import UndecodableRowError, UnfitJsonError
from catalog.objects import CommentKey, ItemKey, ItemValue, RoleId, RoleKey, RoleValue
from catalog.upgrade import PROJECT
from tests.gate.wire_messages import draw_messages, seeded
from tests.gate.wire_schemas import compile_proto, draw_schema

REGISTRY = Registry.of(PROJECT.current_types)
slow = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
EVERY_KIND = """
enum Colour { NONE = 0; RED = 1; GREEN = 2; }
message Empty {}
message Inner { oneof either { uint64 number = 1; string text = 2; Empty empty = 3; } }
message Every {
  int64 signed = 1; uint64 unsigned = 2; bytes raw = 3; Colour colour = 4; optional uint64 maybe = 5; Inner inner = 6;
  repeated Inner inners = 7; map<int64, Inner> by_number = 8; map<bool, bytes> by_truth = 9; double real = 10;
  float small = 11; repeated Colour colours = 12; repeated fixed64 fixed = 13; bool yes = 14; Empty empty = 15;
}
"""
EVERY: Any = GetMessageClass(compile_proto(EVERY_KIND).message_types_by_name["Every"])


def through_text(message: Message) -> bytes:
    """The bytes of a message that went through JSON text."""
    return encode(from_json(type(message), json.loads(json.dumps(to_json(message)))))


@pytest.mark.parametrize("version", range(15, 23))
def test_every_message_of_every_version_comes_back_byte_for_byte(version: int) -> None:
    """Made of boundary values, present and absent, in every oneof."""
    types = import_module(f"catalog.generated.objects_v{version}_pb2")
    for number, name in enumerate(types.DESCRIPTOR.message_types_by_name):
        for message in draw_messages(getattr(types, name), seed=number, count=40):
            assert through_text(message) == encode(message), message


@slow
@given(st.integers(0, 2**32))
def test_a_message_of_any_type_comes_back_byte_for_byte(seed: int) -> None:
    """Whatever a proto may declare, and whatever is in the message."""
    for message in draw_messages(draw_schema(seeded(seed)).build(), seed):
        assert through_text(message) == encode(message), message


@slow
@given(st.integers(0, 2**32))
def test_a_message_with_every_kind_of_field_comes_back_byte_for_byte(seed: int) -> None:
    """Also maps, floats and bytes, which this project's own types may come to have."""
    for message in draw_messages(EVERY, seed, count=4):
        assert through_text(message) == encode(message), message


def test_a_row_is_shown_with_the_names_of_its_proto_and_all_that_cannot_be_absent() -> None:
    """So that whoever edits it sees every field that there is."""
    key, value = RoleKey(id=RoleId(user=2**63)), RoleValue(name="ann")
    shown = row_to_json(REGISTRY.named("role"), encode(key), encode(value))
    assert shown["key"] == {"id": {"user": 2**63}}
    assert shown["value"]["name"] == "ann"
    plain = {field.name for field in RoleValue.DESCRIPTOR.fields if not field.has_presence}
    assert plain <= shown["value"].keys()


def test_conventions_of_json_are_kept() -> None:
    """Enums by name, bytes as base64, 64-bit integers as numbers, what is empty apart from what is absent."""
    message = EVERY(signed=-(2**63), unsigned=2**64 - 1, raw=b"\xff\0", colour=2, maybe=0, colours=[1, 7])
    message.inner.empty.SetInParent()
    message.by_number[-3].text = ""
    message.by_truth[True] = b"x"
    shown = to_json(message)
    assert {name: shown[name] for name in ("signed", "unsigned", "raw", "colour", "maybe", "colours")} == {
        "signed": -(2**63),
        "unsigned": 2**64 - 1,
        "raw": "/wA=",
        "colour": "GREEN",
        "maybe": 0,
        "colours": ["RED", 7],
    }
    assert (shown["inner"], shown["by_number"], shown["by_truth"]) == (
        {"empty": {}},
        {"-3": {"text": ""}},
        {"true": "eA=="},
    )
    assert "empty" not in shown


def test_64_bit_integers_are_taken_as_numbers_or_text() -> None:
    """As other writers of this JSON have them."""
    assert from_json(EVERY, {"unsigned": "18446744073709551615"}) == from_json(EVERY, {"unsigned": 2**64 - 1})


def test_what_is_left_out_or_null_is_absent() -> None:
    """Of a value that is given as a whole."""
    assert from_json(EVERY, {"maybe": None, "inner": None}) == from_json(EVERY, {}) == EVERY()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (
            {"signd": 1},
            r"is no Every: there is no field signd; did you mean signed\?\n(.|\n)*of Every are signed, ",
        ),
        ({"byNumber": {}}, "there is no field byNumber; did you mean by_number"),
        ({"inner": {"nmber": 1}}, r"is no Inner at inner: there is no field nmber(.|\n)*are number, text, empty"),
        ({"inners": [{}, {"no": 1}]}, r"Inner at inners\[1\]: there is no field no"),
        ({"by_number": {"3": {"no": 1}}}, r"Inner at by_number\[3\]: there is no field no"),
        ({"inner": {"number": 1, "text": "a"}}, "oneof"),
        ({"inner": 3}, "Inner at inner: an object is needed, and this is 3"),
        ({"inners": {}}, "inners"),
        ({"inners": [None]}, r"inners\[0\]: an object is needed, and this is None"),
        ({"unsigned": -1}, "unsigned"),
        ({"unsigned": 2**64}, "unsigned"),
        ({"unsigned": 1.5}, "unsigned"),
        ({"unsigned": True}, "unsigned"),
        ({"yes": "yes"}, "yes"),
        ({"raw": "a!b"}, "at raw: this is no base64"),
        ({"raw": "YQ"}, "at raw: this is no base64"),
        ({"raw": 3}, "raw"),
        ({"by_truth": {"true": "!"}}, r"by_truth\[true\]: this is no base64"),
        ({"colour": "BLUE"}, "BLUE"),
        ({"small": 1e300}, "small"),
        ([], "an object is needed"),
    ],
)
def test_json_that_says_something_else_is_refused_with_the_field(data: Any, words: str) -> None:  # noqa: ANN401
    """The error says which field it is, and which there are."""
    with pytest.raises(UnfitJsonError, match=words):
        from_json(EVERY, data)


def test_text_that_cannot_be_stored_is_refused() -> None:
    """Half a character is no text."""
    with pytest.raises(UnfitJsonError):
        from_json(RoleValue, {"name": "\ud800"})


def test_a_key_must_be_given_as_a_whole() -> None:
    """A field that is left out is not taken for zero: that would be another row."""
    with pytest.raises(UnfitJsonError, match="no ItemKey: id is missing\n"):
        key_from_json(ItemKey, {})
    assert key_from_json(ItemKey, {"id": 0}) == ItemKey()
    optional = {field.name for field in CommentKey.DESCRIPTOR.fields if field.has_presence}
    assert optional
    assert key_from_json(CommentKey, {"item_id": 3}) == CommentKey(item_id=3)


def test_bytes_that_are_no_message_are_told() -> None:
    """The row is damaged, and nothing is shown in its place."""
    with pytest.raises(UndecodableRowError, match=r"catalog\.objects\.ItemValue"):
        row_to_json(REGISTRY.named("item"), encode(ItemKey(id=1)), b"\xff" + encode(ItemValue(name="x")))
