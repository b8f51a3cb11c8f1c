"""Mistakes in `version.py` and in the dispatch of `upgrade.py`."""

from __future__ import annotations

import pytest

from tests.gate.project_copy import SNAPSHOT, UPGRADE, VERSION, WRITTEN_TEST, Copy

LAST_ARM = "        case 22:\n            return None\n"
NEVER_ARM = "        case _:\n            assert_never(version)\n"
GUARD = "        case 21 if build < BuildVersion(0, 1):\n"


def arm(version: int, target: str | None = None) -> str:
    name = target or f"v{version}_to_v{version + 1}"
    return f"        case {version}:\n            from catalog.migrations import {name}\n\n            return {name}\n"


def guarded_arm(target: str) -> str:
    return GUARD + arm(21, target).partition("\n")[2]


@pytest.mark.parametrize("version", [23, 24, 222])
def test_a_version_that_is_bumped_alone_is_refused(tree: Copy, version: int) -> None:
    """The number alone makes no version, however far it goes; the recipe does."""
    tree.edit(VERSION, "STASH_VERSION: Final = 22", f"STASH_VERSION: Final = {version}")
    finding = tree.only("V401", VERSION)
    assert finding.what == f"STASH_VERSION is {version}, but v{version} has no snapshot and no migration"
    assert finding.fix == f"set it and StashVersion back to 22, edit proto/objects.proto, then {SNAPSHOT}"
    assert tree.read(VERSION).splitlines()[finding.line - 1].startswith("STASH_VERSION")


@pytest.mark.parametrize("numbers", ["14, 15, 16, 17, 18, 19, 20, 21", "14, 16, 15, 17, 18, 19, 20, 21, 22", "22"])
def test_a_type_that_is_not_the_supported_versions_is_refused(tree: Copy, numbers: str) -> None:
    """Type checking proves the dispatch complete against StashVersion."""
    tree.edit(VERSION, "Literal[14, 15, 16, 17, 18, 19, 20, 21, 22]", f"Literal[{numbers}]")
    finding = tree.only("V402", VERSION)
    assert finding.what == f"it is Literal[{numbers}], the versions are 14..22"
    assert finding.fix == "StashVersion = Literal[14, 15, 16, 17, 18, 19, 20, 21, 22]"
    assert tree.read(VERSION).splitlines()[finding.line - 1].startswith("StashVersion")


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("STASH_VERSION: Final = 22", "STASH_VERSION: Final = 21 + 1", "STASH_VERSION is not a plain number"),
        ("MIN_STASH_VERSION: Final = 14", "MIN_STASH_VERSION: Final = True", "MIN_STASH_VERSION is not a plain number"),
        (
            "MIN_STASH_VERSION: Final = 14",
            "MIN_STASH_VERSION: Final = 23",
            "MIN_STASH_VERSION 23 is above STASH_VERSION 22",
        ),
        ("FIRST_PROTO_VERSION: Final = 15", "FIRST: Final = 15", "FIRST_PROTO_VERSION is not set"),
        ("StashVersion = Literal[14, ", 'StashVersion = Literal["a", ', "StashVersion is not a Literal of numbers"),
        ("StashVersion = Literal[", "StashVersion = int  # [", "StashVersion is not a Literal of numbers"),
    ],
)
def test_versions_that_cannot_be_read_are_refused(tree: Copy, old: str, new: str, what: str) -> None:
    """The gate reads the numbers from the syntax tree, so they stand there as numbers."""
    tree.edit(VERSION, f"\n{old}", f"\n{new}")
    finding = tree.only("V400", VERSION)
    assert finding.what == what
    assert finding.fix == "correct catalog/version.py, or git checkout HEAD -- catalog/version.py"


@pytest.mark.parametrize("version", [14, 18])
def test_a_missing_arm_is_refused(tree: Copy, version: int) -> None:
    """A store of that version could not be upgraded; the arm is given as it must be written."""
    tree.edit(UPGRADE, arm(version), "")
    finding = tree.only("D501", UPGRADE)
    name = f"v{version}_to_v{version + 1}"
    assert finding.what == f"there is no `case {version}:`"
    assert finding.fix == f"write: case {version}: from catalog.migrations import {name}; return {name}"


def test_a_missing_arm_of_the_current_version_is_refused(tree: Copy) -> None:
    """The newest version has nothing to run, and says so."""
    tree.edit(UPGRADE, LAST_ARM, "")
    assert tree.only("D501", UPGRADE).fix == "write: case 22: return None"


def test_an_arm_that_stands_twice_is_refused(tree: Copy) -> None:
    """The second could never run."""
    tree.edit(UPGRADE, arm(18), arm(18) + arm(18))
    finding = tree.only("D502", UPGRADE)
    assert finding.what == "case 18 occurs twice"
    assert finding.fix == "delete the second one"


def test_two_swapped_arms_are_refused(tree: Copy) -> None:
    """The arms ascend."""
    tree.edit(UPGRADE, arm(17) + arm(18), arm(18) + arm(17))
    finding = tree.only("D506", UPGRADE)
    assert finding.what == "case 17 comes after case 18"
    assert finding.fix == "keep the arms 14..22 in order"


def test_two_arms_with_swapped_migrations_are_refused(tree: Copy) -> None:
    """Each would read the rows with the wrong types."""
    tree.edit(UPGRADE, arm(17) + arm(18), arm(17, "v18_to_v19") + arm(18, "v17_to_v18"))
    first, second = tree.expect("D503", "D503")
    assert first.path == second.path == UPGRADE
    assert first.what == "case 17 returns v18_to_v19"
    assert first.fix == "write: case 17: from catalog.migrations import v17_to_v18; return v17_to_v18"
    assert second.what == "case 18 returns v17_to_v18"


@pytest.mark.parametrize(
    "body",
    [
        "            from catalog.migrations import v17_to_v18 as step\n\n            return step\n",
        "            from catalog.migrations import v17_to_v18, v18_to_v19\n\n            return v17_to_v18\n",
        "            from catalog.migrations import v17_to_v18\n            return v17_to_v18 or build\n",
        "            return v17_to_v18\n",
        "            from catalog.drafts import v17_to_v18\n\n            return v17_to_v18\n",
    ],
)
def test_an_arm_that_does_anything_but_import_and_return_its_migration_is_refused(tree: Copy, body: str) -> None:
    """What an arm runs is read from its syntax."""
    tree.edit(UPGRADE, arm(17), f"        case 17:\n{body}")
    finding = tree.only("D503", UPGRADE)
    assert finding.what.startswith("case 17 ")
    assert finding.fix == "write: case 17: from catalog.migrations import v17_to_v18; return v17_to_v18"


def test_an_old_version_that_is_not_upgraded_is_refused(tree: Copy) -> None:
    """Only the current version returns nothing."""
    tree.edit(UPGRADE, arm(17), "        case 17:\n            return None\n")
    assert tree.only("D503", UPGRADE).what == "case 17 returns None"


def test_an_arm_of_a_version_that_is_not_supported_is_refused(tree: Copy) -> None:
    """The arms are the supported versions and nothing else."""
    tree.edit(UPGRADE, arm(14), "        case 13:\n            return None\n" + arm(14))
    finding = tree.only("D506", UPGRADE)
    assert finding.what == "case 13 is not a supported version"


@pytest.mark.parametrize("plain_first", [False, True])
def test_a_guarded_arm_without_its_plain_one_after_it_is_refused(tree: Copy, *, plain_first: bool) -> None:
    """Builds outside the guard would find no migration, or the guard would never be asked."""
    guarded = guarded_arm("v21_to_v22")
    tree.edit(UPGRADE, arm(21), arm(21) + guarded if plain_first else guarded)
    findings = tree.expect("D504") if plain_first else tree.expect("D501", "D504")
    assert findings[-1].path == UPGRADE
    assert findings[-1].what == "no plain arm follows the guarded case 21"
    assert findings[-1].fix == "put a plain `case 21:` directly after it"


def test_a_guarded_arm_before_its_plain_one_passes(tree: Copy) -> None:
    """Another migration for some builds, with a name, a hash and a test of its own."""
    tree.write("catalog/migrations/v21_to_v22_early.py", tree.read("catalog/migrations/v21_to_v22.py"))
    tree.write("tests/migrations/test_v21_to_v22_early.py", WRITTEN_TEST)
    tree.edit(UPGRADE, arm(21), guarded_arm("v21_to_v22_early") + arm(21))
    tree.amend()
    tree.assert_clean()


def test_a_guarded_arm_must_lead_on_from_its_version_too(tree: Copy) -> None:
    """A guard is no way around the order of versions."""
    tree.edit(UPGRADE, arm(21), guarded_arm("v20_to_v21") + arm(21))
    assert tree.only("D503", UPGRADE).what == "case 21 returns v20_to_v21"


def test_a_plain_arm_may_not_run_a_variant(tree: Copy) -> None:
    """The plain case runs the plain migration; a variant needs its guard, or it does not belong."""
    tree.write("catalog/migrations/v21_to_v22_early.py", tree.read("catalog/migrations/v21_to_v22.py"))
    tree.write("tests/migrations/test_v21_to_v22_early.py", WRITTEN_TEST)
    tree.edit(UPGRADE, arm(21), arm(21, "v21_to_v22_early"))
    tree.amend()
    wrong, stray = tree.expect("D503", "M602")
    assert wrong.what == "case 21 returns v21_to_v22_early"
    assert stray.what == "no guarded arm runs v21_to_v22_early"
    assert stray.fix == "name it in a guarded arm, or delete it"


@pytest.mark.parametrize("last", ["", "        case _:\n            return None\n"])
def test_a_dispatch_that_does_not_end_in_assert_never_is_refused(tree: Copy, last: str) -> None:
    """Type checking could not see a missing arm."""
    tree.edit(UPGRADE, NEVER_ARM, last)
    if last:
        finding = tree.only("D500", UPGRADE)
        assert finding.what == "a case is not one literal version"
    else:
        finding = tree.only("D505", UPGRADE)
        assert finding.fix == "end it with: case _: assert_never(version)"


@pytest.mark.parametrize(
    "early",
    [
        "from catalog.migrations import v17_to_v18",
        "import catalog.migrations.v17_to_v18",
        "from catalog.migrations.v17_to_v18 import upgrade",
        "if STASH_VERSION > 17:\n    from catalog.migrations import v17_to_v18",
    ],
)
def test_a_migration_that_is_imported_too_early_is_refused(tree: Copy, early: str) -> None:
    """A start-up without upgrades loads no snapshot and no migration."""
    tree.append(UPGRADE, f"\n{early}\n")
    finding = tree.only("D507", UPGRADE)
    assert finding.fix == "import it inside its arm"
    assert "v17_to_v18" in tree.read(UPGRADE).splitlines()[finding.line - 1]


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("def migration_from(", "def another(", "there is not exactly one function migration_from(version, build)"),
        (
            "def migration_from(version: StashVersion, build: BuildVersion)",
            "def migration_from()",
            "migration_from does not match over its first argument",
        ),
        ("    match version:", "    match build:", "migration_from does not match over its first argument"),
        ("    match version:", "    print()\n    match version:", "migration_from is not one `match` over the version"),
        ("        case 14:", "        case 13 | 14:", "a case is not one literal version"),
        ("        case 14:", '        case "14":', "a case is not one literal version"),
    ],
)
def test_a_dispatch_that_cannot_be_read_is_refused(tree: Copy, old: str, new: str, what: str) -> None:
    """The gate proves from the syntax that every version has its migration."""
    tree.edit(UPGRADE, old, new)
    finding = tree.only("D500", UPGRADE)
    assert finding.what == what
    assert finding.fix == "correct catalog/upgrade.py, or git checkout HEAD -- catalog/upgrade.py"
