"""Mistakes in what a migration declares: its list of actions, and whether they cover what changed."""

from __future__ import annotations

import pytest

from tests.gate.project_copy import (
    NEWEST_STEP,
    NEXT_STEP,
    OBJECTS,
    ROLE_FIELD,
    Copy,
    function,
    migration,
)

NAME = "v21_to_v22"
WIRE = 'wire_compatible("role")\nwire_compatible("database")\nwire_compatible("schema")\nwire_compatible("item")'
LITERAL = "return one literal list of actions over named collections"
COLOUR = f"{ROLE_FIELD}\n  string colour = 9;"
SHELF = "\nmessage ShelfKey { uint64 id = 1; }\nmessage ShelfValue { string name = 1; }\n"


def upgrade_with(tree: Copy, body: str, before: str = "", after: str = "") -> None:
    """Give v21_to_v22 an upgrade() with this body."""
    head = '"""What changes, and why."""\n\nfrom catalog.actions import Action, no_change, per_row, wire_compatible\n'
    text = f"{head}{before}\n\ndef upgrade() -> list[Action]:\n    {body}\n{after}"
    tree.write(NEWEST_STEP, text)
    tree.rerecord(NAME)


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (
            'return [wire_compatible(name) for name in ("role", "item")]',
            "upgrade() is not one `return [...]` of a literal list",
        ),
        (
            'actions = [wire_compatible("role")]\n    return actions',
            "upgrade() is not one `return [...]` of a literal list",
        ),
        (
            'return [wire_compatible("role")] + [wire_compatible("item")]',
            "upgrade() is not one `return [...]` of a literal list",
        ),
        ('return list((wire_compatible("role"),))', "upgrade() is not one `return [...]` of a literal list"),
        ('return (wire_compatible("role"),)', "upgrade() is not one `return [...]` of a literal list"),
        (
            'if True:\n        return [wire_compatible("role")]\n    return []',
            "upgrade() is not one `return [...]` of a literal list",
        ),
        ('yield wire_compatible("role")', "upgrade() is not one `return [...]` of a literal list"),
        ("return [*ACTIONS]", "`*ACTIONS` is not a call of an action"),
        ("return [ACTION]", "`ACTION` is not a call of an action"),
        ('return [wire_compatible("role") if True else None]', "is not a call of an action"),
        ("return [wire_compatible(*NAMES)]", "wire_compatible takes its arguments one by one, not by * or **"),
        ("return [wire_compatible(**NAMES)]", "wire_compatible takes its arguments one by one, not by * or **"),
        ("return [wire_compatible(NAME)]", "`NAME` is not a literal string"),
        ('return [wire_compatible("ro" + "le")]', "`'ro' + 'le'` is not a literal string"),
        ('return [wire_compatible(f"role{1}")]', "is not a literal string"),
        ("return [wire_compatible()]", "wire_compatible lacks its collection"),
        ('return [actions.wire_compatible("role")]', "`actions.wire_compatible` is not the plain name of an action"),
        ('return [per_row("role", lambda key, value: (key, value))]', "is not the name of a function of this module"),
        (
            'return [per_row("role", into=COLLECTIONS, change=upgrade)]',
            "`COLLECTIONS` is not a literal tuple of collections",
        ),
        ("return []", 'the list is empty: a step that does nothing declares no_change("because …")'),
        ('return [no_change("")]', 'no_change needs a reason: no_change("because …")'),
        ('return [no_change("nothing to do")]', 'no_change needs a reason: no_change("because …")'),
        ('return [no_change("because  ")]', 'no_change needs a reason: no_change("because …")'),
        ("return [no_change()]", "no_change lacks its reason"),
    ],
)
def test_a_computed_list_of_actions_is_refused(tree: Copy, body: str, what: str) -> None:
    """A plan is printed and checked without running anything, so everything in it stands there literally."""
    upgrade_with(tree, body)
    finding = tree.only("M605", NEWEST_STEP)
    assert what in finding.what
    assert finding.fix == LITERAL
    assert finding.line > 0


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        ("\n\n@cache", "", "upgrade() has a decorator"),
        ("", "\n\nupgrade = other\n", "`upgrade` is set a second time"),
        ("", "\n\ndef upgrade():\n    return []\n", "`upgrade` is set a second time"),
        (
            "",
            "\n\ndef wire_compatible(name):\n    return name\n",
            "`wire_compatible` is not the action of catalog.actions",
        ),
        ("", "\n\nwire_compatible = per_row\n", "`wire_compatible` is not the action of catalog.actions"),
        (
            "\nfrom catalog.actions import retire as wire_compatible",
            "",
            "`wire_compatible` is not the action of catalog.actions",
        ),
        (
            "\nfrom catalog.generated import objects_v22_pb2 as wire_compatible",
            "",
            "`wire_compatible` is not the action of catalog.actions",
        ),
    ],
)
def test_a_list_of_actions_in_disguise_is_refused(tree: Copy, before: str, after: str, what: str) -> None:
    """What runs is what is read: nothing stands in for upgrade() or for an action."""
    actions = WIRE.replace("\n", ", ")
    upgrade_with(tree, f"return [{actions}]", before, after)
    finding = next(finding for finding in tree.check().findings if finding.code == "M605")
    assert finding.path == NEWEST_STEP
    assert finding.what == what
    assert finding.fix == LITERAL


def test_an_action_that_names_no_function_of_its_module_is_refused(tree: Copy) -> None:
    """What an action runs is frozen with it."""
    tree.rewrite_step(f'{WIRE}\nper_row("comment", tidy)', "\n\ntidy = str\n")
    finding = tree.only("M605", NEWEST_STEP)
    assert finding.what == "per_row names tidy, which is not a function of this module"
    assert finding.fix == "define tidy in v21_to_v22.py"


def test_an_action_that_does_not_exist_is_refused(tree: Copy) -> None:
    """A migration declares what catalog.actions offers; all of it is listed."""
    tree.rewrite_step('update("role")')
    finding = tree.only("M606", NEWEST_STEP)
    assert finding.what == "there is no action `update`"
    assert finding.fix == (
        "use one of: columnar, create, delete, frame, insert, no_change, per_row, retire, undecided, wire_compatible"
    )


def test_an_action_that_is_not_imported_is_refused(tree: Copy) -> None:
    """By its plain name it would be no action at all when the step runs."""
    tree.write(NEWEST_STEP, migration(WIRE).replace("import Action, wire_compatible", "import Action"))
    tree.rerecord(NAME)
    finding = tree.only("M606", NEWEST_STEP)
    assert finding.what == "`wire_compatible` is used, but not imported"
    assert finding.fix == "from catalog.actions import Action, wire_compatible"


@pytest.mark.parametrize(
    "more",
    [
        'wire_compatible("role")',
        'per_row("role", change)',
        'columnar("role", change)',
        'frame(change, reads=("comment",), writes=("role",))',
    ],
)
def test_two_actions_over_the_same_rows_are_refused(tree: Copy, more: str) -> None:
    """Which of them would come first is nobody's guess."""
    tree.rewrite_step(f"{WIRE}\n{more}", function("change"))
    finding = tree.only("M605", NEWEST_STEP)
    assert finding.what == "2 actions cover the rows of `role`"
    assert finding.fix == "keep one of them; one function can do the work of both"


def test_some_rows_of_a_covered_collection_may_be_inserted_and_deleted(tree: Copy) -> None:
    """Those actions say nothing about the others."""
    tree.rewrite_step(f'{WIRE}\ndelete("role", change)\ninsert("role", change)', function("change"))
    tree.assert_clean()


@pytest.mark.parametrize(
    ("action", "what"),
    [
        ('wire_compatible("rolle")', "wire_compatible names `rolle`, which the old version does not have"),
        ('delete("rolle", change)', "delete names `rolle`, which the old version does not have"),
        ('insert("timestamp", change)', "insert names `timestamp`, which the new version does not have"),
        ('per_row("comment", change, into=("rolle",))', "per_row names `rolle`, which the new version does not have"),
        (
            'frame(change, reads=("rolle",), writes=("comment",))',
            "frame names `rolle`, which the old version does not have",
        ),
        ('delete("config", change)', "`config` belongs to the engine and is never migrated"),
        ('create("comment")', "create names `comment`, which the old version already has"),
        ('retire("comment")', "retire names `comment`, which the new version still has"),
    ],
)
def test_an_action_over_a_collection_that_it_cannot_mean_is_refused(tree: Copy, action: str, what: str) -> None:
    """It would do nothing, fail in production, or drop rows that the new version still reads."""
    tree.rewrite_step(f"{WIRE}\n{action}", function("change"))
    finding = tree.only("M607", NEWEST_STEP)
    assert finding.what == what
    assert finding.fix.startswith(
        ("did you mean `role`?", "there are: audit_log, builtin_mapping,", "remove the action")
    )


def test_a_changed_collection_that_no_action_covers_is_refused(tree: Copy) -> None:
    """Its rows would stay in the old form; whether they may is already worked out."""
    tree.edit(OBJECTS, ROLE_FIELD, COLOUR)
    tree.next_version('no_change("because nobody reads the colour")')
    finding = tree.only("M611", NEXT_STEP)
    assert finding.what == "`role` changed: RoleValue.colour (9) added"
    assert finding.fix == (
        'add wire_compatible("role") (verified: it holds), '
        'or rewrite the rows: columnar("role", …) or per_row("role", …)'
    )


def test_a_changed_message_touches_every_collection_that_holds_it(tree: Copy) -> None:
    """AclItem is part of databases, schemas and items, so each needs its action."""
    tree.edit(OBJECTS, "uint64 acl_mode = 3;", "uint64 acl_mode = 3;\n  string note = 4;")
    tree.next_version('wire_compatible("schema")')
    first, second = tree.expect("M611", "M611")
    assert first.what == "`database` changed: AclItem.note (4) added"
    assert second.what == "`item` changed: AclItem.note (4) added"


@pytest.mark.parametrize("action", ['delete("role", change)', 'insert("role", change)'])
def test_an_action_that_leaves_rows_as_they_are_covers_nothing(tree: Copy, action: str) -> None:
    """Deleting or inserting some rows says nothing about the others."""
    tree.edit(OBJECTS, ROLE_FIELD, COLOUR)
    tree.next_version(action, function("change"))
    assert tree.only("M611", NEXT_STEP).what == "`role` changed: RoleValue.colour (9) added"


@pytest.mark.parametrize(("wide", "narrow"), [("int64", "int32"), ("uint64", "uint32"), ("sint64", "sint32")])
def test_a_narrowed_type_needs_rows_that_are_rewritten(tree: Copy, wide: str, narrow: str) -> None:
    """Values that do not fit would be cut without a word; a rewriting action says what becomes of them."""
    tree.edit(OBJECTS, ROLE_FIELD, f"{ROLE_FIELD}\n  {wide} balance = 9;")
    tree.amend()
    tree.edit(OBJECTS, f"{wide} balance = 9;", f"{narrow} balance = 9;")
    tree.next_version('no_change("because balances are small")')
    uncovered, narrowed = tree.expect("M611", "M619")
    assert uncovered.path == narrowed.path == NEXT_STEP
    assert f"`role`: RoleValue.balance: {wide} became {narrow}: " in narrowed.what
    assert narrowed.fix == uncovered.fix == 'rewrite the rows: columnar("role", …) or per_row("role", …)'
    tree.write(NEXT_STEP, migration('per_row("role", fit)', function("fit")))
    tree.rerecord("v22_to_v23")
    tree.assert_clean()


def test_a_widened_type_is_wire_compatible(tree: Copy) -> None:
    """Every old value fits, and its bytes stay."""
    tree.edit(OBJECTS, "uint32 cores = 2;", "uint64 cores = 2;")
    tree.next_version('wire_compatible("cluster_replica")')
    tree.assert_clean()


@pytest.mark.parametrize(
    ("old", "new", "collection", "what"),
    [
        (
            f"  {ROLE_FIELD}",
            "  oneof number { uint32 oid = 8; string tag = 9; }",
            "role",
            "RoleValue.oid: field 8 moved into a oneof",
        ),
        (
            "  uint32 executors = 1;\n  // Of each executor; at least 1.\n  uint32 cores = 2;",
            "  oneof amount { uint32 executors = 1; uint32 cores = 2; }",
            "cluster_replica",
            "ClusterReplicaValue.size.cores: field 2 now shares a oneof with field 1",
        ),
        ("string master = 3;", "reserved 3;", "cluster", "ClusterValue.master: field 3 (string) is deleted"),
        (
            "message SettingValue {\n  string value = 1;",
            "message SettingValue {\n  repeated string value = 1;",
            "setting",
            "string became repeated string",
        ),
        ("  optional uint32 oid = 5;", "  uint32 oid = 5;", "database", "no longer records whether it was set"),
    ],
)
def test_a_wire_compatible_claim_that_does_not_hold_is_refused(
    tree: Copy, old: str, new: str, collection: str, what: str
) -> None:
    """Rows left as they are would lose or change content when read as the new type."""
    tree.edit(OBJECTS, old, new)
    tree.next_version(f'wire_compatible("{collection}")')
    finding, *others = tree.check().findings
    assert {finding.code, *(other.code for other in others)} == {"M612"}
    assert finding.path == NEXT_STEP
    assert finding.what.startswith(f"`{collection}`: ")
    assert what in finding.what
    assert finding.fix == f'rewrite the rows: columnar("{collection}", …) or per_row("{collection}", …)'
    assert "wire_compatible" in tree.read(NEXT_STEP).splitlines()[finding.line - 1]


def test_a_collection_that_vanishes_is_refused_until_it_is_retired(tree: Copy) -> None:
    """A stored collection that the new types do not know would never be read again."""
    text = tree.read(OBJECTS)
    start, end = text.index("message UnfinalizedShardKey"), text.index("// audit_log:")
    tree.write(OBJECTS, text[:start] + text[end:])
    tree.next_version('no_change("because nothing is left to finalise")')
    finding = tree.only("M613", NEXT_STEP)
    assert finding.what == "`unfinalized_shard` is not in v23, and no action retires it"
    assert finding.fix == 'add retire("unfinalized_shard")'
    tree.write(NEXT_STEP, migration('retire("unfinalized_shard")'))
    tree.rerecord("v22_to_v23")
    tree.assert_clean()


def test_a_new_collection_is_refused_until_it_is_created(tree: Copy) -> None:
    """A plan says where each collection comes from."""
    tree.append(OBJECTS, SHELF)
    tree.next_version('no_change("because shelves are filled later")')
    finding = tree.only("M614", NEXT_STEP)
    assert finding.what == "`shelf` is new in v23, and no action creates it"
    assert finding.fix == 'add create("shelf")'
    tree.write(NEXT_STEP, migration('create("shelf")'))
    tree.rerecord("v22_to_v23")
    tree.assert_clean()


def test_rows_that_move_to_a_new_collection_pass(tree: Copy) -> None:
    """A collection replaced by another: retired, its rows made into the new one."""
    text = tree.read(OBJECTS)
    start, end = text.index("message UnfinalizedShardKey"), text.index("// audit_log:")
    tree.write(OBJECTS, text[:start] + text[end:] + SHELF)
    actions = 'frame(move, reads=("unfinalized_shard",), writes=("shelf",))\nretire("unfinalized_shard")'
    tree.next_version(actions, "\n\ndef move(frames):\n    return frames\n")
    tree.assert_clean()


def test_rows_of_a_retired_collection_may_move_one_by_one(tree: Copy) -> None:
    """Each old row becomes rows of the new collection, and the old one ends."""
    text = tree.read(OBJECTS)
    start, end = text.index("message UnfinalizedShardKey"), text.index("// audit_log:")
    tree.write(OBJECTS, text[:start] + text[end:] + SHELF)
    moved = 'create("shelf")\nper_row("unfinalized_shard", move, into=("shelf",))'
    tree.next_version(f'{moved}\nretire("unfinalized_shard")', function("move"))
    tree.assert_clean()
    tree.write(NEXT_STEP, migration(moved, function("move")))
    tree.rerecord("v22_to_v23")
    unknown, vanished = tree.expect("M607", "M613")
    assert unknown.what == "per_row names `unfinalized_shard`, which the new version does not have"
    assert vanished.fix == 'add retire("unfinalized_shard")'


def test_an_undecided_action_is_refused(tree: Copy) -> None:
    """Nobody has said yet what happens to the rows; what fits is already worked out."""
    tree.edit(OBJECTS, "uint64 next_id = 1;", "uint32 next_id = 1;")
    tree.next_version('undecided("id_alloc")')
    undecided, narrowed = tree.expect("M615", "M619")
    assert undecided.path == narrowed.path == NEXT_STEP
    assert undecided.what == "`id_alloc` is undecided: IdAllocValue.next_id (1) changed from uint64 to uint32"
    assert undecided.fix == (
        'write instead: per_row("id_alloc", migrate_id_alloc) and write migrate_id_alloc, or columnar for speed'
    )
