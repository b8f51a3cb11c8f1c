"""Everything the gate looks at, read once.

Reading never fails: what cannot be read becomes a finding, and the rules look only at what is there.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from .descriptors import ProtoError, Types, compile_proto
from .findings import Finding
from .hashes import Hashes, parse
from .history import History
from .instructions import Instructions, read_instructions
from .migration import Migration, read_migration
from .syntax import Dispatch, SyntaxProblemError, Versions, read_build, read_dispatch, read_module, read_versions
from .tree import AMEND, MIGRATION_NAME, RENUMBER, SNAPSHOT_NAME, Tree

_Read = TypeVar("_Read")
_CONFLICT = b"<<<<<<< "
MERGE_ADVICE = (
    "merge proto/objects.proto and CHANGELOG.md by hand; of every other conflicted file under proto/, the package and\n"
    f"tests/migrations keep your own side (in a rebase: git checkout --theirs FILE); then {RENUMBER}"
)


@dataclass(slots=True)
class Workspace:
    tree: Tree
    history: History
    findings: list[Finding] = field(default_factory=list)
    versions: Versions | None = None
    """Up to the newest version that is more than a number."""
    bumped_to: int | None = None
    """STASH_VERSION, where nothing but that number says that there is such a version."""
    current: Types | None = None
    snapshots: dict[int, Types] = field(default_factory=dict)
    broken_snapshots: set[int] = field(default_factory=set)
    """Snapshots that are there but cannot be read."""
    hashes: Hashes | None = None
    dispatch: Dispatch | None = None
    migrations: dict[str, Migration] = field(default_factory=dict)
    broken_migrations: set[str] = field(default_factory=set)
    build: str | None = None
    """The version of the coming build."""
    instructions: Instructions | None = field(default_factory=Instructions)
    """About builtins; nothing where their file cannot be read."""
    modules: dict[Path, ast.Module] = field(default_factory=dict)
    """The hand-written modules of the package that are no migrations."""

    conflicted: set[Path] = field(default_factory=set)
    """Files with conflict markers, which are read no further."""
    altered_snapshots: set[int] = field(default_factory=set)
    """Snapshots that are not what was recorded; what follows from that is not reported apart."""

    def restore(self, path: Path, is_right: Callable[[bytes], bool] = bool) -> str:
        """The command that brings back the newest content of a file that was right."""
        return f"git checkout {self.history.revision(path, is_right) or 'HEAD'} -- {self.tree.relative(path)}"

    def add(self, code: str, path: Path, what: str, fix: str, line: int = 0) -> None:
        self.findings.append(Finding(code, self.tree.relative(path), line, what, fix))


def read_workspace(tree: Tree, base: str | None = None) -> Workspace:
    workspace = Workspace(tree, History(tree, base))
    workspace.versions = _read(workspace, tree.version, "V400", read_versions)
    workspace.hashes = _read(workspace, tree.hashes, "H300", lambda source: parse(source.decode()))
    workspace.dispatch = _read(workspace, tree.upgrade, "D500", read_dispatch)
    workspace.build = None if workspace.versions is None else read_build(tree.version.read_bytes())
    if tree.builtins.is_file():
        workspace.instructions = _read(workspace, tree.builtins, "B800", read_instructions)
    _set_back(workspace)
    _read_types(workspace)
    _read_modules(workspace)
    return workspace


def _read_types(workspace: Workspace) -> None:
    tree, versions = workspace.tree, workspace.versions
    if tree.objects.is_file():
        workspace.current = _read_proto(workspace, tree.objects)
    else:
        workspace.add("T100", tree.objects, "proto/objects.proto is not there", workspace.restore(tree.objects))
    for path in _files(tree.old):
        name = SNAPSHOT_NAME.fullmatch(path.name)
        if name is None or (versions is not None and int(name["version"]) not in versions.snapshots):
            continue
        types = _read_proto(workspace, path)
        if types is None:
            workspace.broken_snapshots.add(int(name["version"]))
        else:
            workspace.snapshots[int(name["version"])] = types


def _read_modules(workspace: Workspace) -> None:
    tree = workspace.tree
    for path in _files(tree.migrations):
        if path.suffix == ".py" and MIGRATION_NAME.fullmatch(path.stem):
            migration = _read(workspace, path, "M600", read_migration)
            if migration is None:
                workspace.broken_migrations.add(path.stem)
            else:
                workspace.migrations[path.stem] = migration
    for path in _files(tree.migration_tests):
        _conflicted(workspace, path, path.read_bytes())
    told = {tree.version} if workspace.versions is None else set()
    told |= {tree.upgrade} if workspace.dispatch is None else set()
    told |= {tree.builtins} if workspace.instructions is None else set()
    for path in _package_modules(tree):
        module = None if path in told else _read(workspace, path, "I701", read_module)
        if module is not None:
            workspace.modules[path] = module


def _set_back(workspace: Workspace) -> None:
    """Where the version was bumped alone, let the rules look at the versions that were made."""
    tree, versions, hashes = workspace.tree, workspace.versions, workspace.hashes
    if versions is None or hashes is None or not hashes.snapshots:
        return
    newest = max(hashes.snapshots)
    snapshots = [name for path in _files(tree.old) if (name := SNAPSHOT_NAME.fullmatch(path.name))]
    steps = [name for path in _files(tree.migrations) if (name := MIGRATION_NAME.fullmatch(path.stem))]
    made = {int(name["version"]) for name in snapshots} | {int(name["new"]) for name in steps}
    if versions.minimum <= newest < versions.current and not any(newest < version for version in made):
        workspace.bumped_to = versions.current
        workspace.versions = replace(versions, current=newest)


def _read(workspace: Workspace, path: Path, code: str, reader: Callable[[bytes], _Read]) -> _Read | None:
    relative = workspace.tree.relative(path)
    if not path.is_file():
        workspace.add(code, path, f"{relative} is not there", workspace.restore(path))
        return None
    source = path.read_bytes()
    if _conflicted(workspace, path, source):
        return None
    try:
        return reader(source)
    except SyntaxProblemError as problem:
        restore = workspace.restore(path, lambda content: _reads(reader, content))
        workspace.add(code, path, problem.message, f"mend {relative}, or {restore}", problem.line)
    except ValueError as error:
        restore = workspace.restore(path, lambda content: _reads(reader, content))
        workspace.add(code, path, f"{relative}: {error}", f"{restore}, then {AMEND}")
    return None


def _reads(reader: Callable[[bytes], object], content: bytes) -> bool:
    try:
        reader(content)
    except (SyntaxProblemError, ValueError):
        return False
    return True


def _read_proto(workspace: Workspace, path: Path) -> Types | None:
    source = path.read_bytes()
    if _conflicted(workspace, path, source):
        return None
    try:
        return compile_proto(source)
    except ProtoError as error:
        code, fix = _proto_advice(error.message)
        workspace.add(code, path, error.message, fix, error.line)
        return None


def _proto_advice(message: str) -> tuple[str, str]:
    if 'Import "' in message:
        return "T102", "copy the messages you need into the file and remove the import"
    if 'Option "(' in message:
        return "T103", "remove the option; say in a comment what it said"
    return "T101", "correct the line that protoc names"


def _conflicted(workspace: Workspace, path: Path, source: bytes) -> bool:
    lines = source.splitlines()
    for number, line in enumerate(lines, start=1):
        if line.startswith(_CONFLICT):
            workspace.conflicted.add(path)
            workspace.add(
                "V404",
                path,
                "the file has conflict markers; two branches may both have made a version",
                MERGE_ADVICE,
                number,
            )
            return True
    return False


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []


def _package_modules(tree: Tree) -> Iterator[Path]:
    if tree.package.is_dir():
        for path in sorted(tree.package.rglob("*.py")):
            outside = tree.generated not in path.parents and tree.package / "_gate" not in path.parents
            if outside and not (path.parent == tree.migrations and MIGRATION_NAME.fullmatch(path.stem)):
                yield path
