"""Bad input: always a finding, a note or a clear error, never a traceback."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.gate.project_copy import (
    AMEND,
    HASHES,
    NEWEST_STEP,
    OBJECTS,
    UPGRADE,
    VERSION,
    Copy,
    snapshot,
)

GARBAGE = bytes(range(256)) * 4
DEEP = b"x = " + b"-" * 100_000 + b"1\n"
HASH = f"sha256:{'0' * 64}"
NO_HISTORY = "released hashes were not compared with history: "


def check(tree: Copy, *words: str, **environment: str) -> tuple[int, list[tuple[str, str]], list[str]]:
    """Run `check`; answer its exit status, the codes and paths of its findings, and its notes."""
    words = ("check", "--format", "json", *words)
    run = tree.run(*words, **environment) if environment else tree.call(*words)
    assert run.stderr == ""
    report = json.loads(run.stdout)
    return run.returncode, [(found["code"], found["path"]) for found in report["findings"]], report["notes"]


def _readable(value: object) -> str | None:
    """Shorten a content that would fill the screen as the name of a test."""
    return f"{value[:20]!r}..." if isinstance(value, bytes) and len(value) > 100 else None


def entry(**changed: object) -> str:
    value = {"hash": HASH, "released": None} | changed
    return json.dumps({"snapshots": {"15": value}, "migrations": {}})


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "Expecting value"),
        (b"{", "Expecting property name"),
        (b"not json", "Expecting value"),
        (GARBAGE, "codec can't decode"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[]", "the file must be an object"),
        (b"null", "the file must be an object"),
        (b"{}", "the file lacks migrations, snapshots"),
        (b'{"snapshots": [], "migrations": {}}', '"snapshots" must be an object'),
        (b'{"snapshots": {"x": 1}, "migrations": {}}', '"x" is not a number'),
        (b'{"snapshots": {"15": 1}, "migrations": {}}', "snapshot 15 must be an object"),
        (b'{"snapshots": {}, "migrations": {}, "more": 1}', "the file has unknown more"),
        (b'{"snapshots": {}, "migrations": {}, "retired_numbers": []}', '"retired_numbers" must be an object'),
        (b'{"snapshots": {}, "migrations": {}, "retired_numbers": {"A": [1]}}', '"A" must be an object'),
        (b'{"snapshots": {}, "migrations": {}, "snapshots": {}}', "snapshots occurs twice: two branches recorded it"),
        (entry(hash=1).encode(), 'snapshot 15: "hash" must be "sha256:" and 64 hex digits'),
        (entry(hash="sha256:0").encode(), 'snapshot 15: "hash" must be "sha256:" and 64 hex digits'),
        (entry(released=True).encode(), 'snapshot 15: "released" must be null or a release such as "0.1.0"'),
        (entry(released="soon").encode(), 'snapshot 15: "released" must be null or a release such as "0.1.0"'),
        (entry(restyled="no").encode(), 'snapshot 15: "restyled" must be a list of hashes'),
        (entry(id=7).encode(), 'snapshot 15: "id" must be a string'),
        (entry(more=7).encode(), "snapshot 15 has unknown more"),
    ],
    ids=_readable,
)
def test_hashes_that_cannot_be_read_are_a_finding(tree: Copy, content: bytes, what: str) -> None:
    """They are never guessed: git has them."""
    tree.write(HASHES, content)
    finding = tree.only("H300", HASHES)
    assert what in finding.what
    assert finding.fix == "git checkout HEAD -- proto/hashes.json, then python -m build_tools snapshot --amend"


@pytest.mark.parametrize(
    ("path", "content", "code"),
    [
        (OBJECTS, b"message Role {", "T101"),
        (OBJECTS, GARBAGE, "T101"),
        (snapshot(18), GARBAGE, "T101"),
        (HASHES, GARBAGE, "H300"),
        (VERSION, GARBAGE, "V400"),
        (VERSION, b"\xff\xfe", "V400"),
        (VERSION, DEEP, "V400"),
        (VERSION, b"", "V400"),
        (UPGRADE, GARBAGE, "D500"),
        (UPGRADE, b"def migration_from(): ...", "D500"),
        (NEWEST_STEP, GARBAGE, "M600"),
        (NEWEST_STEP, DEEP, "M600"),
        (NEWEST_STEP, b"# coding: nothing\n", "M600"),
        ("catalog/roles.py", GARBAGE, "I701"),
    ],
    ids=_readable,
)
def test_a_damaged_file_is_one_finding(tree: Copy, path: str, content: bytes, code: str) -> None:
    """The rules look only at what can be read, so nothing else is blamed."""
    tree.write(path, content)
    assert check(tree)[:2] == (1, [(code, path)])


@pytest.mark.parametrize(
    ("path", "findings"),
    [
        (HASHES, [("H300", HASHES)]),
        (OBJECTS, [("T100", OBJECTS)]),
        (VERSION, [("V400", VERSION)]),
        (UPGRADE, [("D500", UPGRADE)]),
        ("proto/old", [("S203", "proto/old")]),
        ("catalog/migrations", [("M601", f"catalog/migrations/v{v}_to_v{v + 1}.py") for v in range(14, 22)]),
        ("tests/migrations", [("M617", f"tests/migrations/test_v{v}_to_v{v + 1}.py") for v in range(14, 22)]),
        ("catalog", [("V400", VERSION), ("D500", UPGRADE)]),
        ("proto", [("S203", "proto/old"), ("H300", HASHES), ("T100", OBJECTS)]),
    ],
)
@pytest.mark.parametrize("instead", ["nothing", "the other kind"])
def test_what_is_missing_is_named(tree: Copy, path: str, findings: list[tuple[str, str]], instead: str) -> None:
    """A missing file or folder, or a folder where a file should be and the other way round."""
    was_folder = tree.path(path).is_dir()
    tree.remove(path)
    if instead == "the other kind":
        if was_folder:
            tree.write(path, "")
        else:
            tree.path(path).mkdir()
    report = tree.check()
    assert [(finding.code, finding.path) for finding in report.findings] == findings
    assert all("git checkout HEAD -- " in finding.fix or finding.code == "M617" for finding in report.findings)


def test_an_empty_proto_is_told_what_it_lacks(tree: Copy) -> None:
    """It compiles, and is still no set of types."""
    tree.write(OBJECTS, "")
    status, findings, _ = check(tree)
    assert status == 1
    assert {code for code, _ in findings} == {"S201", "T104", "T109"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "no catalog project at"),
        ("", "no catalog project at"),
        ("[tool.other]\n", "no catalog project at"),
        ("tool = 3\n", "no catalog project at"),
        ("[tool]\ncatalog = 3\n", "no catalog project at"),
        ("[tool.catalog\n", "is not valid TOML"),
        ("[tool.catalog]\n", "does not name the project"),
        ("[tool.catalog]\nproject = 3\n", "does not name the project"),
        ('[tool.catalog]\nproject = "../catalog"\n', "does not name the project"),
        ('[tool.catalog]\nproject = "catalog"\nunwritten = "all"\n', "is not a list of migrations"),
        ('[tool.catalog]\nproject = "catalog"\nunwritten = [1]\n', "is not a list of migrations"),
    ],
)
def test_a_project_that_cannot_be_found_is_a_usage_error(tree: Copy, content: str | None, said: str) -> None:
    """One message with the reason and the next step, and exit status 2."""
    if content is None:
        tree.remove("pyproject.toml")
    else:
        tree.write("pyproject.toml", content)
    assert_usage_error(tree.call("check"), said)


def test_a_root_that_is_no_folder_is_a_usage_error(tree: Copy) -> None:
    """A file, or nothing at all."""
    for root in (tree.path("pyproject.toml"), tree.path("nowhere")):
        assert_usage_error(Copy(root).run("check"), "no catalog project at")


def assert_usage_error(run: subprocess.CompletedProcess[str], said: str) -> None:
    assert (run.returncode, run.stdout) == (2, "")
    assert said in run.stderr.partition("\n")[0]
    assert [line[:6] for line in run.stderr.splitlines()[-2:]] == ["why:  ", "next: "]


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("frobnicate",),
        ("check", "--format", "xml"),
        ("check", "extra"),
        ("release",),
        ("retire", "all"),
        ("snapshot", "why", "--amend", "--renumber"),
    ],
)
def test_words_that_mean_nothing_are_a_usage_error(tree: Copy, words: tuple[str, ...]) -> None:
    """Exit status 2, and how it is used."""
    run = tree.call(*words)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("usage: python -m build_tools ")


@pytest.mark.parametrize(
    "words",
    [
        ("snapshot", "why"),
        ("snapshot", "--amend"),
        ("snapshot", "--renumber"),
        ("release", "1.0.0"),
        ("retire", "16"),
        ("restyle", "v21_to_v22"),
    ],
    ids=" ".join,
)
def test_no_command_works_on_hashes_that_cannot_be_read(tree: Copy, words: tuple[str, ...]) -> None:
    """Each says so and changes nothing."""
    tree.write(HASHES, "[]")
    before = tree.digest()
    assert_usage_error(tree.call(*words), "proto/hashes.json cannot be read: the file must be an object")
    assert tree.digest() == before


def test_code_is_not_generated_from_a_proto_that_does_not_compile(tree: Copy) -> None:
    """The line is named, and what was generated before stays."""
    tree.write(snapshot(18), 'syntax = "proto3";\nmessage Role {')
    assert_usage_error(tree.run("codegen"), "proto/old/objects_v18.proto:2: ")
    assert not tree.path("catalog/generated").exists()


def test_without_git_released_hashes_are_not_compared_and_a_note_says_so(tree: Copy, tmp_path: Path) -> None:
    """An sdist has no history; where it must be there, its absence is a finding."""
    (tmp_path / "empty").mkdir()
    path = str(tmp_path / "empty")
    assert check(tree, PATH=path) == (0, [], [f"{NO_HISTORY}git is not installed"])
    assert check(tree, "--require-history", PATH=path) == (1, [("H305", HASHES)], [])


def test_outside_a_repository_a_note_says_so(tree: Copy) -> None:
    """The same without a repository."""
    reason = "this is not a git repository, or git may not read it"
    assert check(tree) == (0, [], [NO_HISTORY + reason])
    (finding,) = tree.check(require_history=True).findings
    assert (finding.code, finding.path, finding.what) == ("H305", HASHES, reason)
    assert "git fetch --unshallow --tags" in finding.fix


def test_a_shallow_clone_is_told_to_fetch_the_rest(released: Copy, tmp_path: Path) -> None:
    """Earlier commits are not in it, so an edited hash would look like a true one."""
    released.git("clone", "--quiet", "--depth", "1", f"file://{released.root}", str(tmp_path / "shallow"))
    shallow = Copy(tmp_path / "shallow")
    reason = "this clone is shallow: it lacks earlier commits"
    assert check(shallow) == (0, [], [NO_HISTORY + reason])
    assert check(shallow, "--require-history")[:2] == (1, [("H305", HASHES)])
    shallow.git("fetch", "--quiet", "--unshallow", "--tags")
    assert check(shallow, "--require-history") == (0, [], [])


def test_a_repository_without_commits_has_nothing_to_compare(tree: Copy) -> None:
    """A new project is clean before its first commit."""
    tree.git("init", "--quiet", "--initial-branch=main")
    assert check(tree, "--require-history") == (0, [], [])


def test_a_base_that_does_not_exist_is_told(released: Copy) -> None:
    """Comparing with nothing is not comparing."""
    reason = "there is no nowhere to compare with"
    assert check(released, "--base", "nowhere") == (0, [], [NO_HISTORY + reason])
    assert check(released, "--base", "nowhere", "--require-history")[:2] == (1, [("H305", HASHES)])


def test_history_with_damaged_commits_in_it_is_compared_where_it_can_be(released: Copy) -> None:
    """A commit whose hashes were no JSON is passed over; the others still count."""
    good = released.read(HASHES)
    released.write(HASHES, "<<<<<<< nobody resolved this")
    released.commit("a bad day")
    released.write(HASHES, good.replace('"released": "0.1.0"', '"released": null', 1))
    finding = released.only("H304", HASHES)
    assert finding.what.startswith("objects_v15 was released in 0.1.0")


def test_damage_that_was_committed_is_mended_from_the_last_commit_that_can_be_read(released: Copy) -> None:
    """HEAD would bring back the damage itself."""
    # A commit of its own for each, whatever was committed before.
    released.write(VERSION, released.read(VERSION) + "\n# readable\n")
    released.write(HASHES, released.read(HASHES) + "\n")
    released.commit("a good day")
    good = released.git("rev-parse", "HEAD")[:10]
    for path in (HASHES, VERSION):
        released.write(path, "nobody can read this")
    released.commit("a bad day")
    version, hashes = released.expect("V400", "H300")
    assert version.fix == f"correct {VERSION}, or git checkout {good} -- {VERSION}"
    assert hashes.fix == f"git checkout {good} -- {HASHES}, then {AMEND}"


def test_a_project_in_a_folder_of_its_repository_is_compared_too(released: Copy, tmp_path: Path) -> None:
    """Paths in history are relative to the project, not to the repository."""
    outer = Copy(tmp_path / "outer")
    inner = Copy(outer.path("services/catalog"))
    shutil.copytree(released.root, inner.root, ignore=shutil.ignore_patterns(".git"))
    outer.git("init", "--quiet", "--initial-branch=main")
    outer.commit("begin")
    inner.assert_clean()
    inner.write(HASHES, inner.read(HASHES).replace('"released": "0.1.0"', '"released": null', 1))
    inner.only("H304", HASHES)
