"""The wire judge, rule by rule: what it allows, what it refuses, and the words it uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from build_tools.protos.wire_compat import NARROWING, WireReason, WireRule, WireVerdict, wire_compatible
from tests.gate.wire_schemas import compile_proto

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

PROTO2 = 'syntax = "proto2"; package p;'


def message(body: str, more: str = "") -> Descriptor:
    """Compile `message RoleValue` with this body, and more types beside it."""
    return compile_proto(f"message RoleValue {{ {body} }} {more}").message_types_by_name["RoleValue"]


def judge(old: str, new: str, *earlier: str) -> WireVerdict:
    """Judge a step between two bodies of `message RoleValue`."""
    return wire_compatible(message(old), message(new), [message(body) for body in earlier])


ALLOWED = {
    "nothing changes": ("string name = 1;", "string name = 1;"),
    "a field is added": ("string name = 1;", "string name = 1; optional int32 age = 2;"),
    "a field is renamed": ("string name = 1;", "string title = 1;"),
    "a field moves in the file": ("string a = 1; int32 b = 2;", "int32 b = 2; string a = 1;"),
    "int32 to int64": ("int32 a = 1;", "int64 a = 1;"),
    "uint32 to uint64": ("uint32 a = 1;", "uint64 a = 1;"),
    "uint32 to int64": ("uint32 a = 1;", "int64 a = 1;"),
    "sint32 to sint64": ("sint32 a = 1;", "sint64 a = 1;"),
    "bool to uint32": ("bool a = 1;", "uint32 a = 1;"),
    "enum to int64": ("enum E { Z = 0; } E a = 1;", "int64 a = 1;"),
    "string to bytes": ("repeated string a = 1;", "repeated bytes a = 1;"),
    "a packed list is widened": ("repeated int32 a = 1;", "repeated int64 a = 1;"),
    "implicit presence to optional": ("int32 a = 1;", "optional int32 a = 1;"),
    "optional on a message": ("message M {} M a = 1;", "message M {} optional M a = 1;"),
    "a oneof is renamed and grows": (
        "oneof was { int32 a = 1; string b = 2; }",
        "oneof now { int32 a = 1; string b = 2; bool c = 3; }",
    ),
    "a message is renamed": ("message M { int32 i = 1; } M a = 1;", "message N { int32 i = 1; } N a = 1;"),
    "two types become one": (
        "message M { int32 i = 1; } message N { int32 i = 1; } M a = 1; N b = 2;",
        "message M { int32 i = 1; } M a = 1; M b = 2;",
    ),
    "an enum is renamed and grows": (
        "enum E { Z = 0; reserved 7; } E a = 1;",
        "enum F { ZERO = 0; ONE = 1; reserved 7; } F a = 1;",
    ),
    "the value of a map is widened": ("map<string, int32> a = 1;", "map<string, int64> a = 1;"),
    "a reservation grows": ("reserved 5; int32 a = 1;", "reserved 5 to 9; int32 a = 1;"),
    "a reservation is split": ("reserved 5 to 7;", "reserved 5, 6, 7;"),
    "a reserved name is dropped": ('reserved 5; reserved "gone";', "reserved 5;"),
}


@pytest.mark.parametrize(("old", "new"), ALLOWED.values(), ids=ALLOWED.keys())
def test_allows(old: str, new: str) -> None:
    assert judge(old, new) == WireVerdict(())


REFUSED = {
    "a field is deleted": (
        "string name = 1; int32 age = 2;",
        "string name = 1;",
        (WireRule.FIELD_DELETED, "RoleValue.age", "field 2 (int32) is deleted: stored values of it would be dropped"),
    ),
    "a field is deleted and reserved": (
        "repeated int32 ages = 2;",
        "reserved 2;",
        (WireRule.FIELD_DELETED, "RoleValue.ages", "field 2 (repeated int32) is deleted"),
    ),
    "a reserved number is used": (
        "reserved 5;",
        "int32 a = 5;",
        (WireRule.RESERVED_USED, "RoleValue.a", "the new field takes number 5, which is reserved"),
    ),
    "a reservation is dropped": (
        "reserved 2, 5 to 9;",
        "reserved 6; int32 a = 8;",
        (WireRule.RESERVED_USED, "RoleValue.a", "takes number 8"),
        (WireRule.RESERVED_DROPPED, "RoleValue", "message RoleValue no longer reserves number 2"),
        (WireRule.RESERVED_DROPPED, "RoleValue", "no longer reserves number 5"),
        (WireRule.RESERVED_DROPPED, "RoleValue", "no longer reserves number 7"),
        (WireRule.RESERVED_DROPPED, "RoleValue", "no longer reserves number 9"),
    ),
    "all further numbers are freed": (
        "reserved 1000 to max;",
        "",
        (WireRule.RESERVED_DROPPED, "RoleValue", "no longer reserves numbers 1000 to 536870911"),
    ),
    "int64 to int32": (
        "int64 a = 1;",
        "int32 a = 1;",
        (WireRule.INTEGER_NARROWED, "RoleValue.a", "int64 became int32: a number that needs more bits"),
    ),
    "int64 to uint32": (
        "int64 a = 1;",
        "uint32 a = 1;",
        (WireRule.INTEGER_NARROWED, "RoleValue.a", "would be truncated"),
    ),
    "sint64 to sint32": (
        "sint64 a = 1;",
        "sint32 a = 1;",
        (WireRule.INTEGER_NARROWED, "RoleValue.a", "would be truncated"),
    ),
    "int32 to bool": ("int32 a = 1;", "bool a = 1;", (WireRule.INTEGER_NARROWED, "RoleValue.a", "int32 became bool")),
    "uint64 to int64": (
        "uint64 a = 1;",
        "int64 a = 1;",
        (WireRule.SIGN_CHANGED, "RoleValue.a", "uint64 became int64: a negative number and a very large one"),
    ),
    "int32 to uint64": ("int32 a = 1;", "uint64 a = 1;", (WireRule.SIGN_CHANGED, "RoleValue.a", "share their bytes")),
    "fixed32 to sfixed32": (
        "fixed32 a = 1;",
        "sfixed32 a = 1;",
        (WireRule.SIGN_CHANGED, "RoleValue.a", "fixed32 became sfixed32"),
    ),
    "int32 to uint32": (
        "int32 a = 1;",
        "uint32 a = 1;",
        (WireRule.SIGN_CUT, "RoleValue.a", "int32 became uint32: a number that only one of the two types can hold"),
    ),
    "uint32 to int32": ("uint32 a = 1;", "int32 a = 1;", (WireRule.SIGN_CUT, "RoleValue.a", "uint32 became int32")),
    "int32 to enum": (
        "int32 a = 1;",
        "enum E { Z = 0; } E a = 1;",
        (
            WireRule.INTEGER_BECAME_ENUM,
            "RoleValue.a",
            "int32 became E: a stored number that is no value of the enum",
        ),
    ),
    "bytes to string": (
        "bytes a = 1;",
        "string a = 1;",
        (WireRule.TEXT_NARROWED, "RoleValue.a", "bytes became string: bytes that are not UTF-8"),
    ),
    "int32 to string": (
        "int32 a = 1;",
        "string a = 1;",
        (WireRule.KIND_CHANGED, "RoleValue.a", "int32 became string: the two types are encoded differently"),
    ),
    "int32 to sint32": ("int32 a = 1;", "sint32 a = 1;", (WireRule.KIND_CHANGED, "RoleValue.a", "int32 became sint32")),
    "int32 to fixed32": ("int32 a = 1;", "fixed32 a = 1;", (WireRule.KIND_CHANGED, "RoleValue.a", "became fixed32")),
    "float to double": ("float a = 1;", "double a = 1;", (WireRule.KIND_CHANGED, "RoleValue.a", "float became double")),
    "int64 to sint64": (
        "int64 a = 1;",
        "sint64 a = 1;",
        (WireRule.KIND_REREAD, "RoleValue.a", "int64 became sint64: the two types are encoded alike"),
    ),
    "fixed32 to float": ("fixed32 a = 1;", "float a = 1;", (WireRule.KIND_REREAD, "RoleValue.a", "became float")),
    "message to bytes": (
        "message M {} optional M a = 1;",
        "optional bytes a = 1;",
        (WireRule.KIND_REREAD, "RoleValue.a", "M became bytes"),
    ),
    "a packed list of doubles to floats": (
        "repeated double a = 1;",
        "repeated float a = 1;",
        (WireRule.KIND_REREAD, "RoleValue.a", "repeated double became repeated float"),
    ),
    "a packed list of int32 to fixed32": (
        "repeated int32 a = 1;",
        "repeated fixed32 a = 1;",
        (WireRule.KIND_CHANGED, "RoleValue.a", "repeated int32 became repeated fixed32"),
    ),
    "a packed list to strings": (
        "repeated bool a = 1;",
        "repeated string a = 1;",
        (WireRule.KIND_REREAD, "RoleValue.a", "repeated bool became repeated string"),
    ),
    "a number goes to another field": (
        "string password = 1;",
        "int64 created = 1;",
        (
            WireRule.KIND_CHANGED,
            "RoleValue.password",
            "number 1 is reused, 'password' by 'created', and string became int64",
        ),
    ),
    "repeated to singular": (
        "repeated string a = 1;",
        "string a = 1;",
        (WireRule.CARDINALITY_CHANGED, "RoleValue.a", "repeated string became string: one value, a list and a map"),
    ),
    "singular to packed": (
        "int32 a = 1;",
        "repeated int32 a = 1;",
        (WireRule.CARDINALITY_CHANGED, "RoleValue.a", "int32 became repeated int32"),
    ),
    "singular to repeated": (
        "optional string a = 1;",
        "repeated string a = 1;",
        (WireRule.CARDINALITY_REREAD, "RoleValue.a", "string became repeated string: the bytes may parse"),
    ),
    "map to repeated": (
        "map<string, int32> a = 1;",
        "message M { optional string key = 1; optional int32 value = 2; } repeated M a = 1;",
        (WireRule.CARDINALITY_REREAD, "RoleValue.a", "map<string, int32> became repeated M"),
    ),
    "repeated to map": (
        "message M { optional string key = 1; optional int32 value = 2; } repeated M a = 1;",
        "map<string, int32> a = 1;",
        (WireRule.CARDINALITY_CHANGED, "RoleValue.a", "repeated M became map<string, int32>"),
    ),
    "packed to unpacked": (
        "repeated int32 a = 1;",
        "repeated int32 a = 1 [packed = false];",
        (WireRule.PACKING_CHANGED, "RoleValue.a", "the list is now unpacked, and was packed: the elements"),
    ),
    "unpacked to packed": (
        "repeated int32 a = 1 [packed = false];",
        "repeated int64 a = 1;",
        (WireRule.PACKING_CHANGED, "RoleValue.a", "the list is now packed, and was not"),
    ),
    "optional to implicit presence": (
        "optional int32 a = 1;",
        "int32 a = 1;",
        (
            WireRule.PRESENCE_LOST,
            "RoleValue.a",
            "field 1 no longer records whether it was set: a value set to the default",
        ),
    ),
    "two fields join a oneof": (
        "optional int32 a = 1; optional int32 b = 2;",
        "oneof o { int32 a = 1; int32 b = 2; }",
        (WireRule.ONEOF_MERGED, "RoleValue.a", "field 1 now shares a oneof with field 2: a row may hold both"),
        (WireRule.ONEOF_MERGED, "RoleValue.b", "field 2 now shares a oneof with field 1"),
    ),
    "oneofs are merged": (
        "oneof o { int32 a = 1; int32 b = 2; } oneof p { int32 c = 3; }",
        "oneof o { int32 a = 1; int32 b = 2; int32 c = 3; }",
        (WireRule.ONEOF_MERGED, "RoleValue.a", "shares a oneof with field 3"),
        (WireRule.ONEOF_MERGED, "RoleValue.b", "shares a oneof with field 3"),
        (WireRule.ONEOF_MERGED, "RoleValue.c", "shares a oneof with fields 1, 2"),
    ),
    "a member of a oneof is deleted": (
        "oneof o { int32 a = 1; int32 b = 2; int32 c = 3; }",
        "oneof o { int32 a = 1; int32 b = 2; }",
        (WireRule.FIELD_DELETED, "RoleValue.c", "field 3 (int32) is deleted"),
    ),
    "a oneof is split": (
        "oneof o { int32 a = 1; int32 b = 2; }",
        "oneof o { int32 a = 1; } oneof p { int32 b = 2; }",
        (
            WireRule.ONEOF_CHANGED,
            "RoleValue.a",
            "field 1 no longer shares a oneof with field 2: the fields that exclude",
        ),
        (WireRule.ONEOF_CHANGED, "RoleValue.b", "field 2 no longer shares a oneof with field 1"),
    ),
    "a field moves into a oneof": (
        "int32 a = 1;",
        "oneof o { int32 a = 1; }",
        (WireRule.ONEOF_CHANGED, "RoleValue.a", "field 1 moved into a oneof"),
    ),
    "a field leaves its oneof": (
        "oneof o { int32 a = 1; }",
        "int32 a = 1;",
        (WireRule.PRESENCE_LOST, "RoleValue.a", "field 1 no longer records"),
        (WireRule.ONEOF_CHANGED, "RoleValue.a", "field 1 left its oneof"),
    ),
    "an enum value is deleted": (
        "enum E { Z = 0; ONE = 1; } E a = 1;",
        "enum E { Z = 0; reserved 1; } E a = 1;",
        (WireRule.ENUM_VALUE_DELETED, "RoleValue.a.ONE", "value 1 of enum E is deleted: a row that holds the value"),
    ),
    "a reserved enum number is used": (
        "enum E { Z = 0; reserved 1 to 3; } E a = 1;",
        "enum E { Z = 0; THREE = 3; reserved 2; } E a = 1;",
        (WireRule.RESERVED_USED, "RoleValue.a.THREE", "the new value of enum E takes number 3, which is reserved"),
        (WireRule.RESERVED_DROPPED, "RoleValue.a", "enum E no longer reserves number 1"),
    ),
    "the key of a map is widened": (
        "map<int32, string> a = 1;",
        "map<int64, string> a = 1;",
        (WireRule.MAP_KEY_CHANGED, "RoleValue.a.key", "the key of the map became int64, and was int32: entries"),
    ),
    "a map is narrowed": (
        "map<int64, bytes> a = 1;",
        "map<int32, string> a = 1;",
        (WireRule.INTEGER_NARROWED, "RoleValue.a.key", "the key of the map became int32, and was int64"),
        (WireRule.TEXT_NARROWED, "RoleValue.a.value", "the value of the map became string, and was bytes"),
    ),
}


@pytest.mark.parametrize(("old", "new", "expected"), [(o, n, e) for o, n, *e in REFUSED.values()], ids=REFUSED.keys())
def test_refuses(old: str, new: str, expected: list[tuple[WireRule, str, str]]) -> None:
    """Each reason has its rule, its path and words that say what changed."""
    reasons = judge(old, new).reasons
    assert [(reason.rule, reason.path) for reason in reasons] == [(rule, path) for rule, path, _ in expected]
    for reason, (_, _, words) in zip(reasons, expected, strict=True):
        assert words in reason.text
        assert reason.text.endswith(reason.rule.why)


def test_every_rule_has_a_case() -> None:
    """The two rules that need more than one step or another syntax have tests of their own."""
    covered = {reason[0] for _, _, *reasons in REFUSED.values() for reason in reasons}
    assert covered == set(WireRule) - {WireRule.NUMBER_REUSED, WireRule.NOT_PROTO3}


def test_reports_all_reasons_in_the_order_of_numbers() -> None:
    """A person who repairs a type sees everything at once, nested types in the place of their field."""
    verdict = judge(
        "message M { int64 i = 1; string s = 2; } int64 z = 3; M m = 2; bytes b = 1; reserved 9;",
        "message M { int32 i = 1; } int32 z = 3; M m = 2; string b = 1;",
    )
    assert [(reason.path, reason.rule) for reason in verdict.reasons] == [
        ("RoleValue.b", WireRule.TEXT_NARROWED),
        ("RoleValue.m.i", WireRule.INTEGER_NARROWED),
        ("RoleValue.m.s", WireRule.FIELD_DELETED),
        ("RoleValue.z", WireRule.INTEGER_NARROWED),
        ("RoleValue", WireRule.RESERVED_DROPPED),
    ]
    assert not verdict.compatible


@pytest.mark.parametrize(
    ("label", "path"),
    [("M m", "m.i"), ("repeated M m", "m.i"), ("map<string, M> m", "m.value.i")],
)
def test_looks_inside_messages_lists_and_maps(label: str, path: str) -> None:
    inner = "message M {{ {} i = 1; }} {} = 1;"
    verdict = judge(inner.format("int64", label), inner.format("int32", label))
    assert [reason.path for reason in verdict.reasons] == [f"RoleValue.{path}"]


def test_ends_on_recursive_messages() -> None:
    """A pair of types is judged once, at the first path that reaches it."""
    types = (
        "message Tree {{ {} weight = 1; repeated Tree left = 2; map<string, Tree> right = 3; }} Tree t = 1; Tree u = 2;"
    )
    assert judge(types.format("int32"), types.format("int64")).compatible
    verdict = judge(types.format("int64"), types.format("int32"))
    assert [reason.path for reason in verdict.reasons] == ["RoleValue.t.weight"]


def test_compares_a_type_with_each_type_that_takes_its_place() -> None:
    """One old message that becomes two is judged against both."""
    verdict = judge(
        "message M { int32 i = 1; } M a = 1; M b = 2;",
        "message M { int32 i = 1; } message N { bool i = 1; } M a = 1; N b = 2;",
    )
    assert [(reason.path, reason.rule) for reason in verdict.reasons] == [("RoleValue.b.i", WireRule.INTEGER_NARROWED)]


def test_a_number_of_an_earlier_version_is_never_used_again() -> None:
    """Not even for a field of the same name and kind."""
    verdict = judge("", "string password = 4;", "string password = 4;", "bytes secret = 4;", "")
    assert verdict.reasons == (
        WireReason(
            "RoleValue.password",
            WireRule.NUMBER_REUSED,
            "the new field takes number 4, which was 'secret' in an earlier version: "
            "a number belongs to one field for ever; otherwise rows of earlier versions are misread",
        ),
    )


def test_a_number_that_is_still_in_use_is_no_reuse() -> None:
    assert judge("string a = 4;", "string a = 4; int32 b = 5;", "string old_name = 4;").compatible


def test_a_number_of_an_earlier_nested_message_is_never_used_again() -> None:
    """Nested messages are found by their name, whatever package a version has."""

    def version(number: int, body: str, grantee: str) -> Descriptor:
        text = f"message RoleValue {{ message Grant {{ {body} }} Grant grant = 1; }} message Grantee {{ {grantee} }}"
        text = text.replace("Grant grant = 1;", "Grant grant = 1; map<string, Grantee> grantees = 2;")
        file = compile_proto(text, f'syntax = "proto3"; package objects_v{number};')
        return file.message_types_by_name["RoleValue"]

    earlier = [version(1, "int32 a = 1; int32 b = 2;", "int32 x = 7;"), version(2, "int32 a = 1;", "")]
    old, new = version(3, "int32 a = 1;", ""), version(4, "int32 a = 1; int32 c = 2;", "int32 y = 7;")
    verdict = wire_compatible(old, new, [*earlier, old])
    assert [(reason.path, reason.rule) for reason in verdict.reasons] == [
        ("RoleValue.grant.c", WireRule.NUMBER_REUSED),
        ("RoleValue.grantees.value.y", WireRule.NUMBER_REUSED),
    ]
    assert wire_compatible(old, new).compatible


def test_refuses_to_judge_proto2() -> None:
    """Closed enums, groups and defaults follow rules that are not known here."""
    old = compile_proto("message RoleValue { optional int32 a = 1; }", PROTO2).message_types_by_name["RoleValue"]
    verdict = wire_compatible(old, message("optional int32 a = 1;"))
    assert [(reason.path, reason.rule) for reason in verdict.reasons] == [("RoleValue", WireRule.NOT_PROTO3)]
    assert "not written in proto3" in verdict.reasons[0].text


def test_every_rule_says_why() -> None:
    assert len({rule.why for rule in WireRule}) == len(WireRule)
    for rule in WireRule:
        assert rule.why[0].islower()
        assert not rule.why.endswith(".")


def test_narrowing_is_about_values_that_no_longer_fit() -> None:
    """A deleted field or a changed encoding is refused as well, but is not a narrower type."""
    fits_no_longer = {WireRule.INTEGER_NARROWED, WireRule.SIGN_CHANGED, WireRule.SIGN_CUT, WireRule.TEXT_NARROWED}
    assert {*fits_no_longer, WireRule.INTEGER_BECAME_ENUM} == NARROWING
