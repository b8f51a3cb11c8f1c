"""Mistakes in the types themselves: what a proto may hold, and which numbers and names may come back."""

from __future__ import annotations

from pathlib import Path

import grpc_tools
import pytest

from build_tools.protos import types
from build_tools.protos.engine_types import ENGINE_TYPES
from build_tools.protos.types import compile_proto, declared_type, run_protoc
from build_tools.rules import types as types_rule
from build_tools.sources.git_history import GitHistory
from build_tools.workspace import Workspace
from tests.gate.project_copy import (
    AMEND,
    NEWEST_SNAPSHOT,
    NEXT_STEP,
    OBJECTS,
    REPOSITORY,
    ROLE_FIELD,
    SNAPSHOT,
    Copy,
    function,
    snapshot,
)


def add_to_role(tree: Copy, field: str) -> None:
    tree.edit(OBJECTS, ROLE_FIELD, f"{ROLE_FIELD}\n  {field}")


def add_message(tree: Copy, message: str) -> None:
    tree.append(OBJECTS, f"\n{message}\n")


def test_types_that_changed_without_a_new_version_are_refused(tree: Copy) -> None:
    """Editing objects.proto alone says what changed, and which command makes a version of it."""
    add_to_role(tree, "string colour = 9;")
    finding = tree.only("S201", OBJECTS)
    assert finding.what == "since v22: RoleValue.colour (9) added"
    assert finding.fix == f"{SNAPSHOT}\nor, as v22 is not released: {AMEND}"


def test_types_that_changed_after_a_release_can_only_become_a_new_version(released: Copy) -> None:
    """A released version cannot be amended, so amending is not offered."""
    add_to_role(released, "string colour = 9;")
    assert released.only("S201", OBJECTS).fix == SNAPSHOT


def test_missing_types_are_refused(tree: Copy) -> None:
    """Without objects.proto there is nothing to build, and git has it."""
    tree.remove(OBJECTS)
    assert tree.only("T100", OBJECTS).fix == "git checkout HEAD -- proto/objects.proto"


def test_a_proto_that_does_not_compile_names_the_line(tree: Copy) -> None:
    """What protoc says is passed on with its line."""
    add_to_role(tree, "strin colour = 9;")
    finding = tree.only("T101", OBJECTS)
    line = tree.read(OBJECTS).splitlines()[finding.line - 1]
    assert "strin colour" in line
    assert '"strin" is not defined' in finding.what
    assert finding.fix == "correct the line that protoc names"


@pytest.mark.parametrize("imported", ["google/protobuf/timestamp.proto", "other.proto"])
def test_a_proto_that_imports_another_is_refused(tree: Copy, imported: str) -> None:
    """A snapshot holds all of its types, whatever is imported."""
    tree.edit(OBJECTS, "package objects;", f'package objects;\nimport "{imported}";')
    finding = tree.only("T102", OBJECTS)
    assert imported in finding.what
    assert "copy the messages you need into the file and remove the import" in finding.fix


def test_an_import_that_protoc_happens_to_find_is_refused(tree: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    """What protoc finds beside the interpreter depends on the machine."""
    protos = Path(grpc_tools.__file__).parent / "_proto"
    monkeypatch.setattr(types, "run_protoc", lambda words: run_protoc([f"-I{protos}", *words]))
    tree.edit(OBJECTS, "package objects;", 'package objects;\nimport "google/protobuf/any.proto";')
    finding = tree.only("T102", OBJECTS)
    assert finding.what == 'Import "google/protobuf/any.proto" is no part of the file.'
    assert tree.read(OBJECTS).splitlines()[finding.line - 1].startswith("import")


def test_a_custom_option_is_refused(tree: Copy) -> None:
    """An option that is defined elsewhere would not be in the snapshot."""
    add_to_role(tree, "string colour = 9 [(secret) = true];")
    finding = tree.only("T103", OBJECTS)
    assert "(secret)" in finding.what
    assert "remove the option" in finding.fix


@pytest.mark.parametrize(("first_line", "named"), [('syntax = "proto2";', "proto2"), ('edition = "2023";', "editions")])
def test_another_dialect_than_proto3_and_its_extensions_are_refused(tree: Copy, first_line: str, named: str) -> None:
    """The wire rules assume proto3, and an extension is no part of the message it extends."""
    label = "optional " if named == "proto2" else ""
    tree.write(OBJECTS, f"{first_line}\nmessage Open {{ extensions 9; }}\nextend Open {{ {label}string more = 9; }}\n")
    findings = [finding for finding in tree.check().findings if finding.code in {"T103", "T104"}]
    assert [(finding.code, finding.path, finding.what, finding.fix) for finding in findings] == [
        ("T103", OBJECTS, "it extends another message", "remove the `extend` block"),
        ("T104", OBJECTS, f"its syntax is {named}", 'begin the file with: syntax = "proto3";'),
    ]


@pytest.mark.parametrize(
    ("field", "code", "fix"),
    [
        ("map<string, string> tags = 9;", "T105", "use a repeated message with sorted, unique entries"),
        ("double weight = 9;", "T106", "use an integer in a smaller unit"),
        ("repeated float weights = 9;", "T106", "use an integer in a smaller unit"),
        ("Loop loop = 9;", "T107", "give the nesting a fixed depth, or refer to rows by id"),
    ],
)
def test_a_key_whose_bytes_are_not_its_identity_is_refused(tree: Copy, field: str, code: str, fix: str) -> None:
    """No maps, floats or recursion in a key, directly or in a message it holds."""
    add_message(tree, f"message ShelfKey {{ Place place = 1; }}\nmessage ShelfValue {{}}\nmessage Place {{ {field} }}")
    if "Loop" in field:
        add_message(tree, "message Loop { repeated Loop inner = 1; }")
    _, finding = tree.expect("S201", code)
    assert finding.path == OBJECTS
    assert "`shelf`" in finding.what
    assert fix in finding.fix


def test_a_value_that_can_contain_itself_is_refused(tree: Copy) -> None:
    """A value of unbounded depth has no columns; maps and floats are fine there."""
    add_to_role(tree, "Loop loop = 9;\n  map<string, double> weights = 10;")
    add_message(tree, "message Loop { Ring ring = 1; }\nmessage Ring { Loop loop = 1; }")
    _, first, second = tree.expect("S201", "T107", "T107")
    assert first.what == "Loop, in `role`, can contain itself"
    assert second.what == "Ring, in `role`, can contain itself"


@pytest.mark.parametrize("message", ["ShelfKey", "ShelfValue"])
def test_half_a_collection_is_refused(tree: Copy, message: str) -> None:
    """A collection is a pair of messages, found by name."""
    add_message(tree, f"message {message} {{}}")
    _, finding = tree.expect("S201", "T108")
    assert finding.path == OBJECTS
    assert finding.what == "`shelf` does not have both ShelfKey and ShelfValue"
    assert finding.fix == "add the missing message, or rename the other one"


@pytest.mark.parametrize("name", ["shelf", "Shelf_board"])
def test_a_collection_that_is_not_named_in_camel_case_is_refused(tree: Copy, name: str) -> None:
    """A pair of messages that no collection name leads to would be no collection at all."""
    add_message(tree, f"message {name}Key {{}}\nmessage {name}Value {{}}")
    _, finding = tree.expect("S201", "T108")
    assert finding.path == OBJECTS
    assert finding.what.startswith(f"`{name}` does not have both Shelf")
    assert finding.fix == "add the missing message, or rename the other one"


def test_a_missing_engine_collection_is_refused(tree: Copy) -> None:
    """The store's version, fence and events are kept in every project."""
    text = tree.read(OBJECTS)
    start, end = text.index("message FenceTokenKey"), text.index("// migration_event:")
    tree.write(OBJECTS, text[:start] + text[end:])
    _, finding = tree.expect("S201", "T109")
    assert finding.path == OBJECTS
    assert finding.what == "the collection `fence_token` is missing"
    assert finding.fix == "restore its messages: git checkout HEAD -- proto/objects.proto"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("  string holder = 3;\n", "", "is deleted"),
        ("  string holder = 3;\n", "  uint64 holder = 3;\n", "string became uint64"),
        ("  uint64 epoch = 2;\n  // Who", "  uint32 epoch = 2;\n  // Who", "uint64 became uint32"),
    ],
)
def test_an_engine_collection_that_changes_incompatibly_is_refused(tree: Copy, old: str, new: str, reason: str) -> None:
    """Every build reads it at every version, before any migration has run."""
    tree.edit(OBJECTS, old, new)
    _, finding = tree.expect("S201", "T111")
    assert finding.path == OBJECTS
    assert finding.what.startswith("`fence_token`: FenceTokenValue.")
    assert reason in finding.what
    assert finding.fix == f"only add optional fields with new numbers there; restore the rest, then {AMEND}"


@pytest.mark.parametrize(
    ("edits", "what", "fix"),
    [
        (
            [("MIGRATED = 2;", "SWAP = 2;"), ("ERROR = 3;", "MIGRATED = 3;"), ("SWAP = 2;", "ERROR = 2;")],
            "MigrationState: number 2 is MIGRATION_STATE_ERROR, and the engine knows it as MIGRATION_STATE_MIGRATED",
            "name it MIGRATION_STATE_MIGRATED again",
        ),
        (
            [("string holder = 3;", "string owner = 3;")],
            "FenceTokenValue: number 3 is owner, and the engine knows it as holder",
            "name it holder again",
        ),
        (
            [("MigrationState state", "StepState state"), ("enum MigrationState", "enum StepState")],
            "MigrationState, a type that the engine uses, is missing",
            "declare MigrationState again",
        ),
    ],
)
def test_an_engine_collection_keeps_its_names(tree: Copy, edits: list[tuple[str, str]], what: str, fix: str) -> None:
    """The engine uses fields and enum values by name: two that swap their names swap their meaning."""
    for old, new in edits:
        tree.edit(OBJECTS, old, new)
    findings = [found for found in tree.check().findings if found.code == "T112"]
    assert (findings[0].path, findings[0].what, findings[0].fix) == (OBJECTS, what, fix)


def test_the_first_version_has_what_the_engine_uses(tree: Copy) -> None:
    """A project that has no earlier version to compare with cannot change the engine's types either."""
    tree.edit(OBJECTS, "  uint64 number = 1;\n", "")
    tree.edit(OBJECTS, "MIGRATION_STATE_ERROR = 3;", "MIGRATION_STATE_FAILED = 3;")
    tree.edit(OBJECTS, "  string checksum = 4;\n", "  bytes checksum = 4;\n")
    workspace = Workspace(tree.tree, GitHistory(tree.tree), current=compile_proto(tree.path(OBJECTS).read_bytes()))
    types_rule.check(workspace)
    assert [(found.code, found.what, found.fix) for found in workspace.findings] == [
        (
            "T112",
            "MigrationState: number 3 is MIGRATION_STATE_FAILED, and the engine knows it as MIGRATION_STATE_ERROR",
            "name it MIGRATION_STATE_ERROR again",
        ),
        (
            "T112",
            "ConfigValue.number, which the engine uses, is missing",
            "declare `uint64 number = 1;` in the oneof value",
        ),
        (
            "T112",
            "MigrationEventValue.checksum, which the engine uses, is bytes",
            "declare `string checksum = 4;`",
        ),
    ]


def test_the_engine_types_of_the_gate_are_those_of_the_current_types() -> None:
    """The gate compares with what the engine of this repository uses, and with nothing else."""
    shapes = compile_proto((REPOSITORY / OBJECTS).read_bytes()).shapes
    own = {part: {m["number"]: (m["name"], declared_type(m)) for m in shapes[part]["members"]} for part in ENGINE_TYPES}
    assert own == ENGINE_TYPES


@pytest.mark.parametrize(
    ("old", "new", "what", "fix"),
    [
        (
            f"  {ROLE_FIELD}\n",
            "",
            "RoleValue.oid = 8 is deleted, and RoleValue does not reserve its number",
            "write `reserved 8;` in RoleValue",
        ),
        (
            "  ITEM_KIND_FUNCTION = 5;\n",
            "",
            "ItemKind.ITEM_KIND_FUNCTION = 5 is deleted, and ItemKind does not reserve its number",
            "write `reserved 5;` in ItemKind",
        ),
        ("reserved 6, 7;", "reserved 7;", "ItemValue no longer reserves 6", "write `reserved 6;` in ItemValue"),
    ],
)
def test_a_deleted_number_stays_reserved(tree: Copy, old: str, new: str, what: str, fix: str) -> None:
    """The header of the proto promises it; a frozen version that a release has is left as it is."""
    tree.edit(OBJECTS, old, new)
    _, finding = tree.expect("S201", "T113")
    assert (finding.path, finding.what, finding.fix) == (OBJECTS, what, fix)


def test_an_edited_snapshot_is_the_only_finding(tree: Copy) -> None:
    """What follows from an edit of a frozen file is not reported as mistakes of the versions after it."""
    tree.edit(snapshot(20), "string create_sql = 4;", "bytes statement = 4;")
    tree.only("S202", snapshot(20))


def test_a_renamed_field_is_told_with_both_names(tree: Copy) -> None:
    """Its old name is what people know it by."""
    tree.edit(OBJECTS, ROLE_FIELD, "optional uint32 client_oid = 8;")
    assert tree.only("S201", OBJECTS).what == "since v22: RoleValue.oid (8) renamed to client_oid"
    tree.edit(OBJECTS, "uint32 client_oid = 8;", "uint64 client_oid = 8;")
    finding = next(found for found in tree.check().findings if found.code == "S201")
    assert finding.what == (
        "since v22: RoleValue.oid (8) renamed to client_oid, changed from optional uint32 to optional uint64"
    )


def test_an_engine_collection_may_gain_a_field_and_no_action_covers_it(tree: Copy) -> None:
    """What old builds can read is allowed, and the engine's rows are no migration's business."""
    tree.edit(OBJECTS, "string holder = 3;", "string holder = 3;\n  optional string host = 4;")
    tree.next_version('no_change("because the engine fills the new field in itself")')
    tree.assert_clean()


def test_a_field_number_that_was_given_up_three_versions_ago_is_refused(tree: Copy) -> None:
    """ItemValue.comment had number 6 until v18, so nothing has it again in v22, even where every row is rewritten."""
    tree.edit(OBJECTS, "reserved 6, 7;", "reserved 7;")
    tree.edit(OBJECTS, "optional uint32 oid = 10;", "optional uint32 oid = 10;\n  string colour = 6;")
    _, finding = tree.expect("S201", "T110")
    assert finding.path == OBJECTS
    assert finding.what == "ItemValue.colour = 6: `comment`, since deleted, had that number"
    assert finding.fix == "give the new one a number that was never used, and reserve the old one"
    tree.write(NEWEST_SNAPSHOT, tree.read(OBJECTS))
    _, frozen = tree.expect("S202", "T110")
    assert (frozen.path, frozen.what) == (OBJECTS, finding.what)


def test_a_number_that_gets_another_name_and_type_in_one_step_is_refused(tree: Copy) -> None:
    """That is deleting a field and using its number again, in one edit."""
    tree.edit(OBJECTS, ROLE_FIELD, "string colour = 8;")
    _, finding = tree.expect("S201", "T110")
    assert finding.path == OBJECTS
    assert finding.what == "RoleValue.colour = 8: it was `oid` (uint32) one version before"


def test_a_message_that_comes_back_means_the_same_by_its_numbers(tree: Copy) -> None:
    """ColumnComment ended with v18: the same field may return, another kind of field under its name may not."""
    add_message(tree, "message ColumnComment { uint32 position = 1; }")
    tree.only("S201", OBJECTS)
    tree.edit(OBJECTS, "uint32 position = 1;", "string position = 1;")
    _, finding = tree.expect("S201", "T110")
    assert finding.path == OBJECTS
    assert finding.what == "ColumnComment.position = 1: `position` of an earlier ColumnComment had that number"
    assert finding.fix == "give the new one a number that was never used, and reserve the old one"


def test_a_name_in_json_is_part_of_the_types(tree: Copy) -> None:
    """Dumps and queries use it; the name that a field has anyway changes nothing."""
    tree.edit(OBJECTS, ROLE_FIELD, 'optional uint32 oid = 8 [json_name = "oid"];')
    tree.assert_clean()
    tree.edit(OBJECTS, 'json_name = "oid"', 'json_name = "number"')
    assert tree.only("S201", OBJECTS).what == "since v22: RoleValue.oid (8) changed in its json_name"


def test_a_field_that_is_only_renamed_keeps_its_number(tree: Copy) -> None:
    """A new name for the same content is wire compatible."""
    tree.edit(OBJECTS, ROLE_FIELD, "optional uint32 client_oid = 8;")
    tree.next_version('wire_compatible("role")')
    tree.assert_clean()


def test_an_enum_number_that_was_given_up_is_refused(tree: Copy) -> None:
    """A stored number of a deleted enum value would get a new meaning."""
    tree.edit(OBJECTS, "  ITEM_KIND_FUNCTION = 5;\n", "  reserved 5;\n")
    tree.next_version('per_row("item", drop_functions)', function("drop_functions"))
    tree.assert_clean()
    text = tree.read(OBJECTS).replace("  reserved 5;\n}", "  ITEM_KIND_INDEX = 5;\n}")
    tree.write(OBJECTS, text)
    _, finding = tree.expect("S201", "T110")
    assert finding.path == OBJECTS
    assert finding.what == "ItemKind.ITEM_KIND_INDEX = 5: `ITEM_KIND_FUNCTION`, since deleted, had that number"


def test_a_field_name_that_comes_back_needs_rows_that_are_rewritten(tree: Copy) -> None:
    """RoleValue.create_db was number 2 in v15: its name may come back only where an action rewrites the collection."""
    add_to_role(tree, "bool create_db = 9;")
    tree.next_version('wire_compatible("role")')
    finding = tree.only("M618", NEXT_STEP)
    assert finding.what == "`role`: RoleValue.create_db = 9 was 2 in v15"
    assert 'per_row("role", …); or use a name that was never used' in finding.fix
    tree.write(
        NEXT_STEP,
        tree.read(NEXT_STEP)
        .replace('wire_compatible("role")', 'per_row("role", fill)')
        .replace("wire_compatible", "per_row")
        + function("fill"),
    )
    tree.amend()
    tree.assert_clean()


def test_types_of_an_older_snapshot_are_checked_too(tree: Copy) -> None:
    """What is wrong in a snapshot is found there, with its own path."""
    tree.edit(snapshot(18), "package objects;", 'package objects;\nimport "other.proto";')
    assert tree.only("T102", snapshot(18)).line > 0
