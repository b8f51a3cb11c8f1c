"""Branches: two that made the same version, and what one cannot know of another."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from build_tools.project_tree import GateError
from build_tools.verbs.new_version import create, renumber
from tests.gate.project_copy import (
    AMEND,
    HASHES,
    MERGE_ADVICE,
    NEXT_SNAPSHOT,
    NEXT_STEP,
    NEXT_TEST,
    OBJECTS,
    RENUMBER,
    ROLE_FIELD,
    SNAPSHOT,
    UPGRADE,
    VERSION,
    WRITTEN_TEST,
    Copy,
    function,
    migration,
)

DATABASE_FIELD = "optional uint32 oid = 5;"
STUB = "    raise NotImplementedError\n"


@pytest.fixture(scope="session")
def ours_template(released_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("ours") / "project"
    shutil.copytree(released_template, target)
    both_make_v23(Copy(target))
    return target


@pytest.fixture
def ours(ours_template: Path, tmp_path: Path) -> Copy:
    """On the branch `ours`, which made v23, as did `main`: both finished, committed and clean by themselves."""
    return Copy(Path(shutil.copytree(ours_template, tmp_path / "project")))


def both_make_v23(tree: Copy) -> None:
    tree.git("checkout", "--quiet", "-b", "ours")
    tree.edit(OBJECTS, ROLE_FIELD, f"{ROLE_FIELD}\n  string colour = 9;")
    create(tree.tree, "roles have a colour")
    tree.edit(NEXT_STEP, 'undecided("role")', 'per_row("role", migrate_role)')
    tree.edit(NEXT_STEP, "import Action, undecided", "import Action, per_row")
    tree.edit(NEXT_STEP, STUB, "    return v23.RoleKey(id=key.id), v23.RoleValue(name=value.name)\n")
    body = "    from catalog.migrations import v22_to_v23\n\n    assert v22_to_v23.__name__.endswith('v22_to_v23')\n"
    tree.edit(NEXT_TEST, STUB, body)
    tree.amend()
    tree.assert_clean()
    tree.commit("roles have a colour")
    tree.git("checkout", "--quiet", "main")
    tree.edit(OBJECTS, DATABASE_FIELD, f"{DATABASE_FIELD}\n  string flavour = 6;")
    tree.next_version('wire_compatible("database")', why="databases have a flavour")
    tree.assert_clean()
    tree.commit("databases have a flavour")
    tree.git("checkout", "--quiet", "ours")


def begin_rebase(tree: Copy) -> list[str]:
    """Rebase onto main as far as it goes; answer the files in conflict."""
    tree.git("rebase", "main", ok=False)
    return tree.git("diff", "--name-only", "--diff-filter=U").split()


def keep_own_side(tree: Copy, files: list[str]) -> None:
    tree.git("checkout", "--theirs", "--", *[file for file in files if file != OBJECTS])
    tree.git("add", "--all")


def assert_moved_behind_main(tree: Copy) -> None:
    """v23 is main's, byte for byte; v24 is ours, with every number in it moved."""
    for path in (NEXT_SNAPSHOT, NEXT_STEP, NEXT_TEST):
        assert tree.read(path) == tree.git("show", f"main:{path}")
    assert tree.read("proto/old/objects_v24.proto") == tree.read(OBJECTS)
    assert "string colour = 9;" in tree.read(OBJECTS)
    assert "string flavour = 6;" in tree.read(OBJECTS)
    moved = tree.read("catalog/migrations/v23_to_v24.py")
    assert "def migrate_role(key: v23.RoleKey, value: v23.RoleValue) -> tuple[v24.RoleKey, v24.RoleValue]:" in moved
    assert "from catalog.generated import objects_v24_pb2 as v24\n" in moved
    assert "v22" not in moved
    assert "assert v23_to_v24.__name__.endswith('v23_to_v24')" in tree.read("tests/migrations/test_v23_to_v24.py")
    assert "STASH_VERSION: Final = 24" in tree.read(VERSION)
    assert "case 24:\n            return None" in tree.read(UPGRADE)
    tree.assert_clean()


def test_two_branches_that_made_the_same_version_are_told_so_before_they_meet(ours: Copy) -> None:
    """The branch that comes second moves; the finding names the branch that took the number, and what to do."""
    finding = ours.only("V403", NEXT_STEP)
    assert finding.what == "v23 already exists on main, with another content"
    assert finding.fix == f"git rebase main, unless a rebase is in progress\n{MERGE_ADVICE}"


def test_the_branch_that_took_the_number_is_named_as_git_knows_it(ours: Copy, tmp_path: Path) -> None:
    """In a clone the base is what origin/HEAD stands for."""
    ours.git("checkout", "--quiet", "main")
    ours.git("clone", "--quiet", str(ours.root), str(tmp_path / "clone"))
    clone = Copy(tmp_path / "clone")
    clone.git("checkout", "--quiet", "ours")
    finding = clone.only("V403", NEXT_STEP)
    assert finding.what == "v23 already exists on origin/main, with another content"
    assert finding.fix.startswith("git rebase origin/main, unless a rebase is in progress\n")


def test_what_a_merge_under_way_looks_like_is_not_reported_apart(ours: Copy) -> None:
    """Types that are merged already differ from the snapshot and seem to use a number again; renumbering ends that."""
    ours.edit(OBJECTS, "string colour = 9;", "uint32 shade = 9;")
    ours.only("V403", NEXT_STEP)
    ours.only("V403", NEXT_STEP, base="main")
    ours.git("branch", "--move", "main", "trunk")
    ours.expect("S201", "T110")
    ours.write("catalog/roles.py", "<<<<<<< HEAD\n=======\n>>>>>>> ours\n")
    assert ours.only("V404", "catalog/roles.py").fix == MERGE_ADVICE


def test_a_version_that_the_base_has_is_not_offered_to_be_amended(ours: Copy) -> None:
    """Others have it already, so a change of the types is a new version."""
    ours.git("checkout", "--quiet", "-b", "later", "main")
    ours.git("commit", "--quiet", "--allow-empty", "--message", "nothing")
    ours.edit(OBJECTS, ROLE_FIELD, f"{ROLE_FIELD}\n  string colour = 9;")
    assert ours.only("S201", OBJECTS).fix == SNAPSHOT
    ours.git("branch", "--move", "main", "trunk")
    assert ours.only("S201", OBJECTS).fix == f"{SNAPSHOT}\nor, as v23 is not released: {AMEND}"


def test_the_other_branch_can_be_named(ours: Copy) -> None:
    """Where the base is not found by its usual name."""
    ours.git("branch", "--move", "main", "trunk")
    ours.assert_clean()
    ours.only("V403", NEXT_STEP, base="trunk")


def test_renumbering_after_the_rebase_moves_our_version_behind_theirs(ours: Copy) -> None:
    """Rebased as told, the branch is still told to renumber; then nothing is left to do."""
    conflicts = begin_rebase(ours)
    assert {HASHES, NEXT_STEP} <= set(conflicts)
    keep_own_side(ours, conflicts)
    ours.git("rebase", "--continue")
    taken = [finding for finding in ours.check().findings if finding.code == "V403"]
    assert [finding.path for finding in taken] == [NEXT_STEP]
    made = renumber(ours.tree)
    assert made.summary == "moved v23 to v24; v23 is now that of main"
    assert_moved_behind_main(ours)
    ours.commit("roles have a colour")
    ours.assert_clean()


def test_renumbering_works_in_the_middle_of_the_rebase(ours: Copy) -> None:
    """The conflict itself says so, and that is when people run it."""
    conflicts = begin_rebase(ours)
    marked = [finding for finding in ours.check().findings if finding.code == "V404"]
    assert HASHES in [finding.path for finding in marked]
    assert all(RENUMBER in finding.fix for finding in marked)
    keep_own_side(ours, conflicts)
    renumber(ours.tree)
    assert_moved_behind_main(ours)
    ours.git("add", "--all")
    ours.git("rebase", "--continue")
    ours.assert_clean()


def test_renumbering_works_in_the_middle_of_a_merge(ours: Copy) -> None:
    """Merging instead of rebasing is fine; there, our own side is called ours."""
    ours.git("merge", "main", ok=False)
    conflicts = ours.git("diff", "--name-only", "--diff-filter=U").split()
    ours.git("checkout", "--ours", "--", *conflicts)
    renumber(ours.tree)
    assert_moved_behind_main(ours)


def test_renumbering_skips_every_version_that_the_base_has_made(ours: Copy) -> None:
    """Two versions on main, and ours becomes the third."""
    ours.git("checkout", "--quiet", "main")
    ours.edit(OBJECTS, "uint32 cores = 2;", "uint64 cores = 2;")
    create(ours.tree, "more cores")
    ours.write("catalog/migrations/v23_to_v24.py", migration('wire_compatible("cluster_replica")'))
    ours.write("tests/migrations/test_v23_to_v24.py", WRITTEN_TEST)
    ours.amend()
    ours.commit("more cores")
    ours.git("checkout", "--quiet", "ours")
    conflicts = begin_rebase(ours)
    keep_own_side(ours, conflicts)
    ours.git("rebase", "--continue")
    made = renumber(ours.tree)
    assert made.version == 25
    assert ours.path("catalog/migrations/v24_to_v25.py").is_file()
    assert ours.read("catalog/migrations/v23_to_v24.py") == ours.git("show", "main:catalog/migrations/v23_to_v24.py")
    ours.assert_clean()


def test_renumbering_without_a_reason_is_refused(released: Copy) -> None:
    """On the base itself, or where nothing was made twice, there is nothing to move."""
    before = released.digest()
    with pytest.raises(GateError, match="there is no other branch to compare with") as refused:
        renumber(released.tree)
    assert refused.value.fix == "name the branch that took the number: --base REF"
    released.git("checkout", "--quiet", "-b", "ours")
    released.git("commit", "--quiet", "--allow-empty", "--message", "nothing")
    with pytest.raises(GateError, match="made both here and on main: no version"):
        renumber(released.tree)
    with pytest.raises(GateError, match="there is no other branch") as refused:
        renumber(released.tree, "nowhere")
    assert refused.value.why == "there is no nowhere to compare with"
    assert released.digest() == before


def test_renumbering_without_git_is_refused(tree: Copy) -> None:
    """Where there are no branches there is nothing to move."""
    with pytest.raises(GateError, match="there is no other branch") as refused:
        renumber(tree.tree)
    assert refused.value.why == "this is not a git repository, or git may not read it"


def test_two_versions_on_one_branch_are_moved_by_hand(ours: Copy) -> None:
    """Only the newest can be moved, and it is not the one that was taken."""
    create(ours.tree, "and nothing more", same_types=True)
    before = ours.digest()
    with pytest.raises(GateError, match="made both here and on main: v22_to_v23") as refused:
        renumber(ours.tree)
    assert "make them again one by one on the base" in refused.value.fix
    assert ours.digest() == before


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (HASHES, 2),
        (VERSION, 1),
        (UPGRADE, 1),
        (OBJECTS, 1),
        (NEXT_SNAPSHOT, 1),
        (NEXT_STEP, 1),
        (NEXT_TEST, 1),
        ("catalog/roles.py", 1),
    ],
)
def test_conflict_markers_are_told_apart_from_other_damage(tree: Copy, path: str, line: int) -> None:
    """A file with markers is neither branch's version; the finding says how to resolve and renumber."""
    tree.edit(OBJECTS, ROLE_FIELD, f"{ROLE_FIELD}\n  string colour = 9;")
    tree.next_version('wire_compatible("role")')
    tree.write("catalog/roles.py", '"""Roles."""\n')
    lines = tree.read(path).splitlines(keepends=True)
    lines.insert(line - 1, "<<<<<<< HEAD\n=======\n>>>>>>> ours\n")
    tree.write(path, "".join(lines))
    finding = tree.only("V404", path)
    assert finding.line == line
    assert finding.fix == MERGE_ADVICE


def test_a_branch_that_made_nothing_is_clean_while_its_base_goes_on(ours: Copy) -> None:
    """Neither new versions nor new releases on main are this branch's to know."""
    ours.git("checkout", "--quiet", "main")
    ours.release("0.2.0")
    ours.git("checkout", "--quiet", "-b", "late", "v0.1.0")
    ours.write("README.md", "Work.\n")
    ours.commit("something else")
    ours.assert_clean()


def test_an_older_release_can_still_be_checked_out_and_built(ours: Copy) -> None:
    """Tags of later releases do not accuse it."""
    ours.git("checkout", "--quiet", "main")
    ours.release("0.2.0")
    ours.git("checkout", "--quiet", "v0.1.0")
    assert ours.check(require_history=True).ok


def test_what_two_branches_released_differently_is_refused(ours: Copy) -> None:
    """A version that main released, released here with other content, is a contradiction wherever it is seen."""
    ours.git("checkout", "--quiet", "main")
    ours.release("0.2.0")
    ours.git("checkout", "--quiet", "ours")
    ours.record_snapshot(23, replace(ours.hashes.snapshots[23], released="0.2.0"))
    _, finding = ours.expect("V403", "H303")
    assert finding.path == HASHES
    assert finding.what.startswith("objects_v23, released in 0.2.0, was sha256:")


def test_a_branch_of_several_commits_is_moved_too(ours: Copy) -> None:
    """Each commit of it may conflict; kept on our own side, the last one is what moves."""
    ours.append(NEXT_STEP, function("helper"))
    ours.amend()
    ours.commit("a helper")
    conflicts = begin_rebase(ours)
    while conflicts:
        keep_own_side(ours, conflicts)
        ours.git("rebase", "--continue", ok=False)
        conflicts = ours.git("diff", "--name-only", "--diff-filter=U").split()
    renumber(ours.tree)
    assert "def helper(" in ours.read("catalog/migrations/v23_to_v24.py")
    ours.assert_clean()
