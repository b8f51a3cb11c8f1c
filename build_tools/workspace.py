"""The files of a project that the rules need, read once.

Reading never fails: a file that cannot be read becomes a finding, and the rules use the other files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from .findings import Finding
from .project_tree import AMEND, MIGRATION_NAME, RENUMBER, SNAPSHOT_NAME, ProjectTree
from .protos.types import ProtoError, ProtoTypes, compile_proto
from .sources.builtin_instructions import DeclaredInstructions, read_instructions
from .sources.constraints import DeclaredConstraints, read_constraints
from .sources.frozen_names import read_frozen_names
from .sources.git_history import GitHistory
from .sources.hashes import Hashes, parse
from .sources.migration import MigrationSource, read_migration
from .sources.privacy import PrivacyPath, read_privacy
from .sources.syntax_tree import SyntaxProblemError
from .sources.type_uses import TypeUses, read_type_uses
from .sources.version_and_dispatch import Dispatch, Versions, read_build, read_dispatch, read_versions

_Read = TypeVar("_Read")
_CONFLICT = b"<<<<<<< "
MERGE_ADVICE = (
    "merge proto/objects.proto and CHANGELOG.md by hand; of every other conflicted file under proto/, the package and\n"
    f"tests/migrations keep your own side (in a rebase: git checkout --theirs FILE); then {RENUMBER}"
)


@dataclass(slots=True)
class Workspace:
    tree: ProjectTree
    history: GitHistory
    findings: list[Finding] = field(default_factory=list)
    versions: Versions | None = None
    """The versions up to the newest one that has more than a number."""
    bumped_to: int | None = None
    """STASH_VERSION, if no other file belongs to that version."""
    current: ProtoTypes | None = None
    snapshots: dict[int, ProtoTypes] = field(default_factory=dict)
    broken_snapshots: set[int] = field(default_factory=set)
    """Snapshots that exist but cannot be read."""
    hashes: Hashes | None = None
    dispatch: Dispatch | None = None
    migrations: dict[str, MigrationSource] = field(default_factory=dict)
    broken_migrations: set[str] = field(default_factory=set)
    build: str | None = None
    """The number of the coming build."""
    instructions: DeclaredInstructions | None = field(default_factory=DeclaredInstructions)
    """The instructions about builtins; None if their file cannot be read."""
    constraints: DeclaredConstraints | None = None
    """The constraints on rows; None if their file is missing or cannot be read."""
    privacy: tuple[PrivacyPath, ...] | None = ()
    """The paths of texts that `privacy.py` declares, which not every project has; None if it cannot be read."""
    initialize: TypeUses | None = None
    """The use of the current types in `initialize.py`; None if it is missing or cannot be read."""
    frozen_names: dict[Path, tuple[tuple[str, int], ...]] = field(default_factory=dict)
    """The frozen types that hand-written modules of the package name, except migrations."""

    conflicted: set[Path] = field(default_factory=set)
    """Files with conflict markers, which are not read."""
    altered_snapshots: set[int] = field(default_factory=set)
    """Snapshots that differ from their recorded hash: what follows from the difference is not reported separately."""

    def restore(self, path: Path, is_right: Callable[[bytes], bool] = bool) -> str:
        """Return the command that restores the newest right content of a file."""
        return f"git checkout {self.history.revision(path, is_right) or 'HEAD'} -- {self.tree.relative(path)}"

    def add(self, code: str, path: Path, what: str, fix: str, line: int = 0) -> None:
        self.findings.append(Finding(code, self.tree.relative(path), line, what, fix))


def read_workspace(tree: ProjectTree, base: str | None = None) -> Workspace:
    workspace = Workspace(tree, GitHistory(tree, base))
    workspace.versions = _read(workspace, tree.version, "V400", read_versions)
    workspace.hashes = _read(workspace, tree.hashes, "H300", lambda source: parse(source.decode()))
    workspace.dispatch = _read(workspace, tree.upgrade, "D500", read_dispatch)
    workspace.build = None if workspace.versions is None else read_build(tree.version.read_bytes())
    if tree.builtins.is_file():
        workspace.instructions = _read(workspace, tree.builtins, "B800", read_instructions)
    if tree.constraints.is_file():
        workspace.constraints = _read(workspace, tree.constraints, "C900", read_constraints)
    if tree.privacy.is_file():
        workspace.privacy = _read(workspace, tree.privacy, "I701", read_privacy)
    if tree.initialize.is_file():
        workspace.initialize = _read(
            workspace, tree.initialize, "I701", lambda source: read_type_uses(source, tree.project)
        )
    _set_back(workspace)
    _read_types(workspace)
    _find_altered(workspace)
    _read_modules(workspace)
    return workspace


def _read_types(workspace: Workspace) -> None:
    tree, versions = workspace.tree, workspace.versions
    if tree.objects.is_file():
        workspace.current = _read_proto(workspace, tree.objects)
    else:
        workspace.add("T100", tree.objects, "proto/objects.proto is missing", workspace.restore(tree.objects))
    for path in _files(tree.old):
        name = SNAPSHOT_NAME.fullmatch(path.name)
        if name is None or (versions is not None and int(name["version"]) not in versions.snapshots):
            continue
        types = _read_proto(workspace, path)
        if types is None:
            workspace.broken_snapshots.add(int(name["version"]))
        else:
            workspace.snapshots[int(name["version"])] = types


def _find_altered(workspace: Workspace) -> None:
    recorded = workspace.hashes.snapshots if workspace.hashes is not None else {}
    for version, types in workspace.snapshots.items():
        if version in recorded and recorded[version].hash != types.hash:
            workspace.altered_snapshots.add(version)


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
    reported = {tree.version} if workspace.versions is None else set()
    reported |= {tree.upgrade} if workspace.dispatch is None else set()
    reported |= {tree.builtins} if workspace.instructions is None else set()
    reported |= {tree.constraints} if workspace.constraints is None else set()
    reported |= {tree.privacy} if workspace.privacy is None else set()
    reported |= {tree.initialize} if workspace.initialize is None else set()
    for path in _package_modules(tree):
        names = None if path in reported else _read(workspace, path, "I701", read_frozen_names)
        if names is not None:
            workspace.frozen_names[path] = names


def _set_back(workspace: Workspace) -> None:
    """Set a version that was bumped alone back to the newest complete one, for the other rules."""
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
        workspace.add(code, path, f"{relative} is missing", workspace.restore(path))
        return None
    source = path.read_bytes()
    if _conflicted(workspace, path, source):
        return None
    try:
        return reader(source)
    except SyntaxProblemError as problem:
        restore = workspace.restore(path, lambda content: _reads(reader, content))
        workspace.add(code, path, problem.message, f"correct {relative}, or {restore}", problem.line)
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


def _read_proto(workspace: Workspace, path: Path) -> ProtoTypes | None:
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
        return "T103", "remove the option; write its meaning in a comment"
    return "T101", "correct the line that protoc names"


def _conflicted(workspace: Workspace, path: Path, source: bytes) -> bool:
    if _CONFLICT not in source:
        return False
    for number, line in enumerate(source.splitlines(), start=1):
        if line.startswith(_CONFLICT):
            workspace.conflicted.add(path)
            what = "the file has conflict markers; two branches may both have made a version"
            workspace.add("V404", path, what, MERGE_ADVICE, number)
            return True
    return False


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []


def _package_modules(tree: ProjectTree) -> Iterator[Path]:
    """Yield everything named as a module, except migrations, generated code and a gate in the package."""
    left_out = {tree.generated, tree.package / "_gate"}
    for name, folders, files in os.walk(tree.package):
        folder = Path(name)
        for file in (*files, *folders):
            if file.endswith(".py") and not (
                folder == tree.migrations and MIGRATION_NAME.fullmatch(file.removesuffix(".py"))
            ):
                yield folder / file
        folders[:] = [inner for inner in folders if folder / inner not in left_out]
