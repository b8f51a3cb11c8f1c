"""The recipe: one command makes a version, the gate says what is left, and doing that is enough."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from build_tools.project_tree import GateError
from build_tools.verbs.new_version import amend, create
from tests.gate.project_copy import (
    AMEND,
    HASHES,
    NEWEST_SNAPSHOT,
    NEWEST_STEP,
    NEXT_SNAPSHOT,
    NEXT_STEP,
    NEXT_TEST,
    OBJECTS,
    ROLE_FIELD,
    SNAPSHOT,
    UPGRADE,
    VERSION,
    WRITTEN_TEST,
    Copy,
    snapshot,
)

WHY = "roles have a colour"
STUB = '''

def migrate_role(key: v22.RoleKey, value: v22.RoleValue) -> tuple[v23.RoleKey, v23.RoleValue]:
    """Make the new row of `role` from the old one."""
    raise NotImplementedError
'''
TYPES = "from catalog.generated import objects_v22_pb2 as v22\nfrom catalog.generated import objects_v23_pb2 as v23\n"


@pytest.fixture
def coloured(tree: Copy) -> Copy:
    """The project with a field added to RoleValue, and nothing else done yet."""
    tree.edit(OBJECTS, ROLE_FIELD, f"{ROLE_FIELD}\n  // What colour the role is shown in.\n  string colour = 9;")
    return tree


def test_create_writes_everything_that_a_version_is(coloured: Copy) -> None:
    """The snapshot, the version, the arm, the migration, its test and the hashes, and no other file."""
    before = coloured.digest()
    made = create(coloured.tree, WHY)
    after = coloured.digest()
    added, changed = after.keys() - before.keys(), {path for path in before if after[path] != before[path]}
    assert added == {NEXT_SNAPSHOT, NEXT_STEP, NEXT_TEST}
    assert changed == {VERSION, UPGRADE, HASHES}
    assert set(made.written) == added | changed
    assert made.version == 23
    assert made.summary == "made v23: roles have a colour"
    assert coloured.read(NEXT_SNAPSHOT) == coloured.read(OBJECTS)
    assert "\nSTASH_VERSION: Final = 23\n" in coloured.read(VERSION)
    assert "\nMIN_STASH_VERSION: Final = 14\n" in coloured.read(VERSION)
    assert "\nStashVersion = Literal[14, 15, 16, 17, 18, 19, 20, 21, 22, 23]\n" in coloured.read(VERSION)
    assert (
        "        case 22:\n            from catalog.migrations import v22_to_v23\n\n            return v22_to_v23\n"
        "        case 23:\n            return None\n        case _:\n"
    ) in coloured.read(UPGRADE)
    assert coloured.read(NEXT_STEP) == (
        '"""Roles have a colour.\n\n- RoleValue.colour (9) added\n"""\n\nfrom __future__ import annotations\n\n'
        f"from catalog.actions import Action, undecided\n{TYPES}\n\n"
        f'def upgrade() -> list[Action]:\n    return [\n        undecided("role"),\n    ]\n{STUB}'
    )
    assert coloured.hashes.snapshots[23].released is None
    assert coloured.hashes.migrations["v22_to_v23"].id
    assert coloured.path("catalog/generated/objects_v23_pb2.py").is_file()


def test_the_gate_says_exactly_what_is_left_and_doing_it_is_enough(coloured: Copy) -> None:
    """A decision, a function and a test are left; old rows may stay, so the cheapest decision needs no function."""
    create(coloured.tree, WHY)
    undecided, stub, test = coloured.expect("M615", "M616", "M616")
    assert (undecided.path, stub.path, test.path) == (NEXT_STEP, NEXT_STEP, NEXT_TEST)
    assert undecided.what == "`role` is undecided: RoleValue.colour (9) added"
    assert undecided.fix == (
        'if old rows may stay unchanged (verified: they can), import and write wire_compatible("role")\n'
        "instead, and delete migrate_role with its imports\n"
        'if old rows need new content, write per_row("role", migrate_role) and write migrate_role, '
        "or columnar for speed"
    )
    assert stub.fix == "write migrate_role, or delete it if no action names it"
    assert test.fix == "assert in the test which old rows become which new rows"

    coloured.edit(NEXT_STEP, 'undecided("role")', 'wire_compatible("role")')
    coloured.edit(NEXT_STEP, "Action, undecided", "Action, wire_compatible")
    coloured.edit(NEXT_STEP, STUB, "")
    coloured.edit(NEXT_STEP, TYPES, "")
    coloured.write(NEXT_TEST, WRITTEN_TEST)
    assert coloured.only("M610", NEXT_STEP).fix == AMEND
    coloured.amend()
    coloured.assert_clean()


def test_rows_that_need_new_content_are_made_by_the_stub(coloured: Copy) -> None:
    """The other way that the gate offers is enough, too."""
    create(coloured.tree, WHY)
    coloured.edit(NEXT_STEP, 'undecided("role")', 'per_row("role", migrate_role)')
    coloured.edit(NEXT_STEP, "Action, undecided", "Action, per_row")
    body = 'return v23.RoleKey(id=key.id), v23.RoleValue(name=value.name, colour="red")'
    coloured.edit(NEXT_STEP, "raise NotImplementedError", body)
    coloured.write(NEXT_TEST, WRITTEN_TEST)
    coloured.amend()
    coloured.assert_clean()


def test_the_command_says_what_it_did_and_what_is_left(coloured: Copy) -> None:
    """Its exit status is 0: it did what it was asked, and the rest is for a person."""
    run = coloured.run("snapshot", WHY)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith(f"made v23: {WHY}\n  {NEXT_SNAPSHOT}\n")
    assert [word for word in ("M615", "M616", "M617") if word in run.stdout] == ["M615", "M616"]
    assert "\nLeft to do:\n" in run.stdout
    assert "gate: 3 findings" in run.stdout
    assert run.stdout.endswith(f"when it is done: {AMEND}\n")


def test_the_command_that_amends_says_when_nothing_is_left(tree: Copy) -> None:
    """The last line of a finished version."""
    tree.append(NEWEST_STEP, "\n# A thought.\n")
    run = tree.run("snapshot", "--amend")
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith(f"recorded again: v21_to_v22\n  {NEWEST_SNAPSHOT}\n  {HASHES}\n")
    assert run.stdout.endswith("gate: clean\n")


def test_a_new_collection_and_a_retired_one_are_declared_already(tree: Copy) -> None:
    """What needs no decision is written down, so that only the tests are left."""
    text = tree.read(OBJECTS)
    start, end = text.index("message UnfinalizedShardKey"), text.index("// audit_log:")
    tree.write(OBJECTS, f"{text[:start]}{text[end:]}\nmessage ShelfKey {{}}\nmessage ShelfValue {{}}\n")
    create(tree.tree, "shelves instead of shards")
    for action in ('create("shelf")', 'retire("unfinalized_shard")'):
        assert f"        {action},\n" in tree.read(NEXT_STEP)
    assert tree.only("M616", NEXT_TEST).what == "test_shelf raises NotImplementedError"


def test_a_version_that_changes_rows_only_needs_the_same_types_on_purpose(tree: Copy) -> None:
    """Without the flag nothing has changed; with it, the step still has to say what it does."""
    before = tree.digest()
    with pytest.raises(GateError, match="holds the same types as v22") as refused:
        create(tree.tree, "sort the comments")
    assert refused.value.fix == "edit proto/objects.proto first; if only rows change, add --same-types"
    assert tree.digest() == before
    create(tree.tree, "sort the comments", same_types=True)
    assert "- no type changes, only rows" in tree.read(NEXT_STEP)
    empty, test = tree.expect("M605", "M616")
    assert "the list is empty" in empty.what
    assert (empty.path, test.path) == (NEXT_STEP, NEXT_TEST)
    tree.edit(NEXT_STEP, "return []", 'return [no_change("because the comments are sorted already")]')
    tree.edit(NEXT_STEP, "import Action", "import Action, no_change")
    tree.write(NEXT_TEST, WRITTEN_TEST)
    tree.amend()
    tree.assert_clean()


@pytest.mark.parametrize(
    ("why", "first_line"),
    [
        ('say "hello"', "Say 'hello'."),
        ('"', "'."),
        ('"""', "'''."),
        ("a back\\slash\\", "A back/slash/."),
        ("\\", "/."),
        ("one\n\n  line\tonly", "One line only."),
        ("{braces} and %s", "{braces} and %s."),
        ("ends itself!", "Ends itself!"),
        ("ümläuts — and “quotes”", "Ümläuts — and “quotes”."),
    ],
)
def test_any_reason_becomes_a_docstring(coloured: Copy, why: str, first_line: str) -> None:
    """Quotes, newlines and backslashes neither end the docstring nor get lost."""
    create(coloured.tree, why)
    for path, prefix in ((NEXT_STEP, ""), (NEXT_TEST, "v22_to_v23: ")):
        docstring = ast.get_docstring(ast.parse(coloured.read(path)))
        assert docstring is not None
        assert docstring.partition("\n")[0] == prefix + first_line
    coloured.expect("M615", "M616", "M616")


@pytest.mark.parametrize(
    ("why", "what"),
    [
        ("", "the reason is empty"),
        (" \n\t", "the reason is empty"),
        ("\x1b[31m", "is not printable text"),
        ("\udcff", "is not printable text"),
    ],
)
def test_a_reason_that_says_nothing_is_refused(coloured: Copy, why: str, what: str) -> None:
    """It becomes the first line of the migration, which someone reads in a year."""
    before = coloured.digest()
    with pytest.raises(GateError, match=what) as refused:
        create(coloured.tree, why)
    assert refused.value.fix == SNAPSHOT
    assert coloured.digest() == before


def test_amend_makes_an_unreleased_version_again(coloured: Copy) -> None:
    """Further edits of the types go into the same version until it is released."""
    coloured.next_version('wire_compatible("role")')
    identity = coloured.hashes.migrations["v22_to_v23"].id
    coloured.edit(OBJECTS, "string colour = 9;", "string colour = 9;\n  string shade = 10;")
    assert f"\nor, as v23 is not released: {AMEND}" in coloured.only("S201", OBJECTS).fix
    made = amend(coloured.tree)
    assert made.summary == "recorded again: v23"
    coloured.assert_clean()
    assert coloured.read(NEXT_SNAPSHOT) == coloured.read(OBJECTS)
    assert coloured.hashes.migrations["v22_to_v23"].id == identity


def test_amend_says_what_it_recorded(coloured: Copy) -> None:
    """Each entry that changed, or that none did."""
    coloured.next_version('wire_compatible("role")')
    assert amend(coloured.tree).summary == "nothing has changed since it was recorded"
    coloured.edit(OBJECTS, "string colour = 9;", "string colour = 9;\n  string shade = 10;")
    coloured.append(NEXT_STEP, "\n# A thought.\n")
    made = amend(coloured.tree)
    assert made.summary == "recorded again: v23, v22_to_v23"
    assert (made.written, made.removed) == ((NEXT_SNAPSHOT, HASHES), ())


@pytest.mark.parametrize("amending", [False, True])
def test_wrong_types_are_never_frozen(tree: Copy, *, amending: bool) -> None:
    """What is wrong with them is said before anything is made of them, and mended in objects.proto."""
    tree.edit(OBJECTS, "uint64 permissions = 6;", "string colour = 6;")
    before = tree.digest()
    with pytest.raises(GateError) as refused:
        amend(tree.tree) if amending else create(tree.tree, WHY)
    assert refused.value.what == (
        "T110 a field number is used again: RoleValue.colour = 6: it was `permissions` (uint64) one version before"
    )
    assert refused.value.why == "rows and backups that still contain the old field would be read as the new one"
    assert refused.value.fix == (
        "in proto/objects.proto: give the new one a number that was never used, and reserve the old one"
    )
    assert tree.digest() == before


def test_a_number_of_an_unreleased_version_may_be_amended(coloured: Copy) -> None:
    """What takes the place of a version is compared with the one before it, not with what it replaces."""
    coloured.next_version('wire_compatible("role")')
    coloured.edit(OBJECTS, "string colour = 9;", "uint32 shade = 9;")
    with pytest.raises(GateError, match=r"T110 a field number is used again: RoleValue\.shade = 9: it was `colour`"):
        create(coloured.tree, WHY)
    coloured.amend()
    coloured.assert_clean()


def test_amend_of_a_released_version_is_refused(released: Copy) -> None:
    """What is released never changes; the change goes into a new version."""
    released.edit(OBJECTS, ROLE_FIELD, f"{ROLE_FIELD}\n  string colour = 9;")
    before = released.digest()
    with pytest.raises(GateError, match=r"v22 was released in 0\.1\.0") as refused:
        amend(released.tree)
    assert refused.value.fix == SNAPSHOT
    assert released.digest() == before


def test_amend_leaves_released_entries_as_they_are(released: Copy) -> None:
    """It records what is open, and the gate still sees what is not."""
    released.append(NEWEST_STEP, "\nEXTRA = 1\n")
    entries = released.hashes
    released.amend()
    assert released.hashes == entries
    released.only("M609", NEWEST_STEP)


def spoil(tree: Copy, path: str, content: bytes | None) -> None:
    if content is None:
        tree.remove(path)
    else:
        tree.write(path, content)


@pytest.mark.parametrize(
    ("path", "content", "what"),
    [
        (OBJECTS, b"message {", r"(?s)T101 a proto does not compile: .*next: in proto/objects\.proto:1: correct "),
        (OBJECTS, None, r"T100 the types are missing: proto/objects\.proto is missing"),
        (NEWEST_SNAPSHOT, b'syntax = "proto3";', r"objects_v22\.proto does not match its recorded hash"),
        (NEWEST_SNAPSHOT, None, r"objects_v22\.proto cannot be read"),
        (snapshot(17), b"message {", r"proto/old/objects_v17\.proto:1: "),
        (HASHES, b"{", r"proto/hashes\.json cannot be read"),
        (HASHES, None, r"proto/hashes\.json cannot be read"),
        (VERSION, b"\x00\xff", r"catalog/version\.py cannot be read"),
        (VERSION, b"# nothing", r"catalog/version\.py cannot be read"),
        (UPGRADE, b"# nothing", "the dispatch cannot be read"),
        (UPGRADE, b"# \xff", r"catalog/upgrade\.py cannot be read"),
        (UPGRADE, None, r"catalog/upgrade\.py cannot be read"),
        (NEXT_SNAPSHOT, b"", r"proto/old/objects_v23\.proto already exists"),
        (NEXT_STEP, b"", r"catalog/migrations/v22_to_v23\.py already exists"),
        (NEXT_TEST, b"", r"tests/migrations/test_v22_to_v23\.py already exists"),
    ],
)
def test_create_refuses_what_it_cannot_finish_and_changes_nothing(
    coloured: Copy, path: str, content: bytes | None, what: str
) -> None:
    """Every byte of the project stays as it was."""
    spoil(coloured, path, content)
    before = coloured.digest()
    with pytest.raises(GateError, match=what):
        create(coloured.tree, WHY)
    assert coloured.digest() == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        case 22:\n            return None\n", ""),
        (
            "        case 22:\n            return None\n",
            "        case 22:\n            print()\n            return None\n",
        ),
    ],
)
def test_create_needs_the_last_arm_as_it_was_made(coloured: Copy, old: str, new: str) -> None:
    """The new arm takes the place of `case 22: return None`, and of nothing else."""
    coloured.edit(UPGRADE, old, new)
    before = coloured.digest()
    with pytest.raises(GateError, match="the dispatch has no `case 22: return None`") as refused:
        create(coloured.tree, WHY)
    assert refused.value.fix == "restore that arm first"
    assert coloured.digest() == before


@pytest.mark.parametrize("path", [OBJECTS, snapshot(17), HASHES, VERSION])
def test_amend_refuses_what_it_cannot_read_and_changes_nothing(tree: Copy, path: str) -> None:
    """Every byte of the project stays as it was."""
    tree.write(path, b"\xff message {")
    before = tree.digest()
    with pytest.raises(GateError):
        amend(tree.tree)
    assert tree.digest() == before


@pytest.mark.parametrize("moment", range(6))
def test_a_disk_that_fails_halfway_leaves_every_file_as_it_was(
    coloured: Copy, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    """All files of a version are written, or none."""
    before, moves, replace = coloured.digest(), iter(range(100)), Path.replace

    def fail(self: Path, target: Path) -> Path:
        if next(moves) == moment:
            raise OSError(28, "No space left on device")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="No space left"):
        create(coloured.tree, WHY)
    assert coloured.digest() == before
