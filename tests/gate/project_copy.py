"""Copies of this project on which tests make mistakes.

A copy is the project as it was at v22: whatever was made or released since is cut off, every migration is written and
has a test. So a new version of the real project changes no test here. Copies never touch the real project.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from build_tools.check import check
from build_tools.cli import main
from build_tools.project_tree import ProjectTree, find_tree
from build_tools.sources.hashes import HashEntry, Hashes, dump, parse, source_hash
from build_tools.sources.syntax_tree import assignments
from build_tools.sources.version_and_dispatch import read_dispatch, read_versions
from build_tools.verbs.file_edits import version_text
from build_tools.verbs.new_version import amend, create
from build_tools.verbs.release import release

if TYPE_CHECKING:
    from build_tools.findings import Finding, Report

REPOSITORY = Path(__file__).parents[2]
NEWEST = 22

OBJECTS = "proto/objects.proto"
HASHES = "proto/hashes.json"
DIGESTS = "tests/golden/digests.json"
VERSION = "catalog/version.py"
UPGRADE = "catalog/upgrade.py"
BUILTINS = "catalog/builtins.py"
FINGERPRINTS = "tests/golden/builtin_fingerprints.json"
NEWEST_SNAPSHOT = f"proto/old/objects_v{NEWEST}.proto"
NEWEST_STEP = f"catalog/migrations/v{NEWEST - 1}_to_v{NEWEST}.py"
NEXT_SNAPSHOT = f"proto/old/objects_v{NEWEST + 1}.proto"
NEXT_STEP = f"catalog/migrations/v{NEWEST}_to_v{NEWEST + 1}.py"
NEXT_TEST = f"tests/migrations/test_v{NEWEST}_to_v{NEWEST + 1}.py"

SNAPSHOT = 'python -m build_tools snapshot "why"'
AMEND = "python -m build_tools snapshot --amend"
RENUMBER = "python -m build_tools snapshot --renumber"
MERGE_ADVICE = (
    "merge proto/objects.proto and CHANGELOG.md by hand; of every other conflicted file under proto/, the package and\n"
    f"tests/migrations keep your own side (in a rebase: git checkout --theirs FILE); then {RENUMBER}"
)

ROLE_FIELD = "optional uint32 oid = 8;"
"""The last field of RoleValue: tests add theirs after it."""

WRITTEN_TEST = '''"""Old rows in, new rows out."""

from catalog.generated import objects_v22_pb2 as v22


def test_rows() -> None:
    """Nothing is lost."""
    stored = v22.SettingValue(value="x").SerializeToString()
    assert v22.SettingValue.FromString(stored).value == "x"
'''


def snapshot(version: int) -> str:
    return f"proto/old/objects_v{version}.proto"


def step(version: int) -> str:
    return f"catalog/migrations/v{version}_to_v{version + 1}.py"


@dataclass(frozen=True, slots=True)
class Copy:
    root: Path

    @property
    def tree(self) -> ProjectTree:
        return find_tree(self.root, search=False)

    # Files

    def path(self, relative: str) -> Path:
        return self.root / relative

    def read(self, relative: str) -> str:
        return self.path(relative).read_text(encoding="utf-8")

    def write(self, relative: str, content: str | bytes) -> None:
        path = self.path(relative)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def edit(self, relative: str, old: str, new: str) -> None:
        """Replace the one place where `old` stands."""
        text = self.read(relative)
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {relative}"
        self.write(relative, text.replace(old, new))

    def append(self, relative: str, text: str) -> None:
        self.write(relative, self.read(relative) + text)

    def remove(self, relative: str) -> None:
        path = self.path(relative)
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()

    def move(self, old: str, new: str) -> None:
        self.path(old).rename(self.path(new))

    def digest(self) -> dict[str, str]:
        """Every file with a digest of its bytes, generated code and git's own files aside."""
        return {
            path.relative_to(self.root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and not {".git", "generated", "__pycache__"} & set(path.relative_to(self.root).parts)
        }

    # The recorded hashes

    @property
    def hashes(self) -> Hashes:
        return parse(self.read(HASHES))

    def record_snapshot(self, version: int, entry: HashEntry) -> None:
        self.write(HASHES, dump(self.hashes.with_snapshot(version, entry)))

    def record_migration(self, name: str, entry: HashEntry) -> None:
        self.write(HASHES, dump(self.hashes.with_migration(name, entry)))

    # The gate

    def check(self, *, require_history: bool = False, base: str | None = None) -> Report:
        return check(self.tree, require_history=require_history, base=base)

    def expect(self, *codes: str, base: str | None = None) -> tuple[Finding, ...]:
        """The findings, which have exactly these codes."""
        findings = self.check(base=base).findings
        assert sorted(finding.code for finding in findings) == sorted(codes), "\n".join(map(str, findings[:20]))
        return findings

    def only(self, code: str, path: str, *, base: str | None = None) -> Finding:
        """The one finding there is, which has this code and points to this file."""
        (finding,) = self.expect(code, base=base)
        assert finding.path == path
        return finding

    def assert_clean(self) -> None:
        self.expect()

    def amend(self) -> None:
        amend(self.tree)

    def next_version(self, actions: str, functions: str = "", why: str = "a change") -> None:
        """Make v23 of the edited types, with these actions."""
        create(self.tree, why, same_types=True)
        self.write(NEXT_STEP, migration(actions, functions))
        self.write(NEXT_TEST, WRITTEN_TEST)
        self.rerecord(f"v{NEWEST}_to_v{NEWEST + 1}")

    def rewrite_step(self, actions: str, functions: str = "") -> None:
        """Let v21_to_v22 declare these actions instead of its own."""
        self.write(NEWEST_STEP, migration(actions, functions))
        self.rerecord(f"v{NEWEST - 1}_to_v{NEWEST}")

    def rerecord(self, name: str) -> None:
        """Record the hash of a migration as it is now, which is what --amend would do."""
        before = self.hashes.migrations.get(name, HashEntry(""))
        source = self.path(f"catalog/migrations/{name}.py").read_bytes()
        self.record_migration(name, replace(before, hash=source_hash(source)))

    def call(self, *words: str) -> subprocess.CompletedProcess[str]:
        """The gate's command line in this process, which is quicker; what it raises, a person would see."""
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            try:
                status = main(["--root", str(self.root), *words])
            except SystemExit as ended:
                status = int(ended.code or 0)
        return subprocess.CompletedProcess(words, status, out.getvalue(), err.getvalue())

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """The gate's command line in a process of its own, as a person runs it."""
        return subprocess.run(
            [sys.executable, "-m", "build_tools", "--root", str(self.root), *words],
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    # Builtins

    def instruct(self, *instructions: str) -> None:
        """Let `MIGRATIONS` be these and no others."""
        text = self.read(BUILTINS)
        value, _ = assignments(ast.parse(text))["MIGRATIONS"]
        lines = text.splitlines(keepends=True)
        assert value.end_lineno is not None
        first, last = lines[value.lineno - 1], lines[value.end_lineno - 1]
        body = "".join(f"    {instruction},\n" for instruction in instructions)
        listed = f"(\n{body})" if instructions else "()"
        lines[value.lineno - 1 : value.end_lineno] = [first[: value.col_offset], listed, last[value.end_col_offset :]]
        words = "from catalog.engine.builtins.declaration import Builtin, BuiltinName, Declared, Instruction, Mechanism"
        self.write(BUILTINS, re.sub(r"(?m)^from catalog\.builtin\.declared import .*$", words, "".join(lines)))

    def begin(self, number: str) -> None:
        """Let the coming build be this one."""
        self.write(VERSION, re.sub(r'(?m)^(BUILD\b[^=]*= *")[^"]*', rf"\g<1>{number}.dev0", self.read(VERSION)))

    # git

    def git(self, *words: str, ok: bool = True) -> str:
        """Run git here, as a fixed person, without anybody's configuration."""
        identity = ("-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")
        quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_EDITOR": "true"}
        run = subprocess.run(
            ["git", *identity, *words],
            cwd=self.root,
            env={**os.environ, **quiet},
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0 or not ok, run.stdout + run.stderr
        return run.stdout

    def init(self) -> None:
        """Make the copy a repository whose first commit holds all of it."""
        self.git("init", "--quiet", "--initial-branch=main", "--template=")
        self.write(".gitignore", "/catalog/generated/\n__pycache__/\n")
        self.commit("begin")

    def commit(self, message: str) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)

    def release(self, number: str) -> None:
        """Release, commit and tag, as told."""
        release(self.tree, number)
        self.commit(f"release {number}")
        self.git("tag", f"v{number}")


def migration(actions: str, functions: str = "", why: str = "What changes, and why.") -> str:
    """The source of a migration that declares these actions."""
    used = sorted({name for name in re.findall(r"\b([a-z_]+)\(", actions) if name not in {"tuple", "list"}})
    body = "".join(f"        {action},\n" for action in actions.split("\n"))
    return (
        f'"""{why}"""\n\nfrom catalog.actions import {", ".join(["Action", *used])}\n\n\n'
        f"def upgrade() -> list[Action]:\n    return [\n{body}    ]\n{functions}"
    )


def function(name: str) -> str:
    """The source of a function for an action to name."""
    return f"\n\ndef {name}(key, value):\n    return key, value\n"


def copy_repository(target: Path) -> None:
    """Copy what the gate looks at, as it is."""
    target.mkdir(parents=True)
    ignore = shutil.ignore_patterns("generated", "__pycache__")
    for name in ("pyproject.toml", "proto", "catalog", "tests/migrations"):
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=ignore)
        else:
            shutil.copy2(source, target / name)


def make_template(target: Path) -> None:
    """The project at v22 with nothing released, every migration written and tested.

    It holds no more than the gate looks at, because it is copied for each test: of the engine no packages, of the
    settings only the gate's own.
    """
    copy_repository(target)
    for package in [path.parent for path in target.glob("catalog/*/__init__.py") if path.parent.name != "migrations"]:
        shutil.rmtree(package)
    copy = Copy(target)
    cut_back(copy)
    copy.write("pyproject.toml", f'[tool.catalog]\nproject = "{copy.tree.project}"\nunwritten = []\n')
    for path in sorted(copy.tree.migrations.glob("v*_to_v*.py")):
        path.write_text(
            path.read_text(encoding="utf-8").replace("raise NotImplementedError", "return None"), encoding="utf-8"
        )
        test = copy.tree.migration_test(path.stem)
        if not test.is_file():
            copy.write(test.relative_to(target).as_posix(), WRITTEN_TEST)
    copy.amend()
    shutil.rmtree(copy.tree.generated)


def cut_back(copy: Copy) -> None:
    """Forget every version after v22, and every release."""
    versions = read_versions(copy.path(VERSION).read_bytes())
    lines = copy.read(UPGRADE).splitlines(keepends=True)
    arms = read_dispatch("".join(lines).encode()).arms
    first = next(arm for arm in arms if arm.version == NEWEST)
    indent = lines[first.line - 1].partition("case")[0]
    lines[first.line - 1 : arms[-1].end_line] = [f"{indent}case {NEWEST}:\n", f"{indent}    return None\n"]
    copy.write(UPGRADE, "".join(lines))
    copy.write(VERSION, version_text(copy.read(VERSION), minimum=versions.minimum, current=NEWEST))
    copy.write(OBJECTS, copy.read(NEWEST_SNAPSHOT))
    copy.instruct()
    for version in range(NEWEST + 1, versions.current + 1):
        copy.remove(snapshot(version))
        for name in [
            *copy.path("catalog/migrations").glob(f"*_to_v{version}*.py"),
            *copy.path("tests/migrations").glob(f"*_to_v{version}*.py"),
            *copy.path("tests/golden").glob(f"initial_v{version}.json"),
        ]:
            name.unlink()
    if copy.path(DIGESTS).is_file():
        digests = json.loads(copy.read(DIGESTS))
        own = {name: entry for name, entry in digests.items() if copy.tree.migration(name).is_file()}
        copy.write(DIGESTS, json.dumps(own, indent=2) + "\n")
    kept = copy.hashes
    copy.write(
        HASHES,
        dump(
            Hashes(
                {version: HashEntry(entry.hash) for version, entry in kept.snapshots.items() if version <= NEWEST},
                {
                    name: HashEntry(e.hash, id=e.id)
                    for name, e in kept.migrations.items()
                    if copy.tree.migration(name).is_file()
                },
                kept.retired_numbers,
            )
        ),
    )
