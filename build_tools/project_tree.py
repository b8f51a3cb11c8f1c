"""The paths of a project's files.

A project is a folder whose `pyproject.toml` has a `[tool.catalog]` table. All other files are found from there by
convention; no other module of the gate spells a path.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MIGRATION_NAME = re.compile(r"v(?P<old>[0-9]+)_to_v(?P<new>[0-9]+)(?:_[a-z][a-z0-9_]*)?")
SNAPSHOT_NAME = re.compile(r"objects_v(?P<version>[1-9][0-9]*)\.proto")
SNAPSHOT_MODULE = re.compile(r"objects_v[0-9]+_pb2")


class GateError(Exception):
    """A command that the gate refuses; nothing was changed."""

    def __init__(self, what: str, why: str, fix: str) -> None:
        super().__init__(f"{what}\nwhy:  {why}\nnext: {fix}")
        self.what = what
        self.why = why
        self.fix = fix

    def __reduce__(self) -> tuple[type[GateError], tuple[str, str, str]]:
        return type(self), (self.what, self.why, self.fix)


def command(words: str) -> str:
    """Return a command line of the gate in the form of the current run: by `./dev`, the wheel or the source tree."""
    verb, _, rest = words.partition(" ")
    if os.environ.get("GATE_RUN_BY") == "./dev":
        return {"check": "./dev check", "snapshot": f"./dev create {rest}"}.get(verb, f"./dev gate {words}")
    if verb == "snapshot" and __package__ == "catalog._gate":
        return f"catalog create {rest}"
    return f"python -m {__package__} {words}"


SNAPSHOT = command('snapshot "why"')
AMEND = command("snapshot --amend")
RENUMBER = command("snapshot --renumber")


@dataclass(frozen=True, slots=True)
class ProjectTree:
    root: Path
    project: str
    unwritten: tuple[str, ...] = ()
    """Migrations that are declared but not written yet: allowed until the next release."""

    @property
    def package(self) -> Path:
        return self.root / self.project

    @property
    def objects(self) -> Path:
        return self.root / "proto" / "objects.proto"

    @property
    def old(self) -> Path:
        return self.root / "proto" / "old"

    @property
    def hashes(self) -> Path:
        return self.root / "proto" / "hashes.json"

    @property
    def version(self) -> Path:
        return self.package / "version.py"

    @property
    def upgrade(self) -> Path:
        return self.package / "upgrade.py"

    @property
    def builtins(self) -> Path:
        """Return the module of builtins, which not every project has."""
        return self.package / "builtins.py"

    @property
    def constraints(self) -> Path:
        return self.package / "constraints.py"

    @property
    def privacy(self) -> Path:
        """Return the module of private texts, which not every project has."""
        return self.package / "privacy.py"

    @property
    def initialize(self) -> Path:
        return self.package / "initialize.py"

    @property
    def fingerprints(self) -> Path:
        """Return the file with the fingerprints of the builtins of the last release, which a test compares."""
        return self.root / "tests" / "golden" / "builtin_fingerprints.json"

    @property
    def migrations(self) -> Path:
        return self.package / "migrations"

    @property
    def generated(self) -> Path:
        return self.package / "generated"

    @property
    def migration_tests(self) -> Path:
        return self.root / "tests" / "migrations"

    def snapshot(self, version: int) -> Path:
        return self.old / f"objects_v{version}.proto"

    def migration(self, name: str) -> Path:
        return self.migrations / f"{name}.py"

    def migration_test(self, name: str) -> Path:
        return self.migration_tests / f"test_{name}.py"

    def relative(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


def step_name(old: int) -> str:
    return f"v{old}_to_v{old + 1}"


def tree_at(root: str | Path | None) -> ProjectTree:
    """Return the project at `root`; without one, the nearest project at or above the current folder."""
    return find_tree(Path.cwd()) if root is None else find_tree(Path(root), search=False)


@contextmanager
def translated_file_errors() -> Iterator[None]:
    """Raise errors of files as a `GateError`."""
    try:
        yield
    except (OSError, UnicodeDecodeError) as error:
        raise GateError(
            "a file cannot be read or written", str(error), "fix the file, and run the command again"
        ) from error


def find_tree(start: Path, *, search: bool = True) -> ProjectTree:
    """Return the project at `start`, or with `search` the nearest one at or above it."""
    start = start.resolve()
    for folder in (start, *start.parents) if search else (start,):
        table = _catalog_table(folder / "pyproject.toml")
        if table is not None:
            return _tree(folder, table)
    raise GateError(
        f"no catalog project at {start}",
        "a project is a folder whose pyproject.toml has a [tool.catalog] table",
        "run this in the project's root, or name it with --root DIR",
    )


def _catalog_table(pyproject: Path) -> dict[str, object] | None:
    if not pyproject.is_file():
        return None
    try:
        document = tomllib.loads(pyproject.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise GateError(
            f"{pyproject} is not valid TOML: {error}", "the project's name is read from it", "correct the file"
        ) from error
    tools = document.get("tool")
    table = tools.get("catalog") if isinstance(tools, dict) else None
    return table if isinstance(table, dict) else None


def _tree(root: Path, table: dict[str, object]) -> ProjectTree:
    project = table.get("project")
    if not isinstance(project, str) or not project.isidentifier():
        raise GateError(
            f"{root / 'pyproject.toml'} does not name the project",
            "the generated code and the migrations are in the project's package",
            'write `project = "your_package"` under [tool.catalog]',
        )
    unwritten = table.get("unwritten", [])
    if not isinstance(unwritten, list) or not all(isinstance(name, str) for name in unwritten):
        raise GateError(
            f"`unwritten` in {root / 'pyproject.toml'} is not a list of migrations",
            "it names the migrations that are declared but not written yet",
            'write `unwritten = ["v15_to_v16"]` or remove it',
        )
    return ProjectTree(root, project, tuple(unwritten))
