"""The commands that make a version: they freeze the edited types, and write all other files of the version.

`create`, `amend` and `renumber` compute every change first and then make them together; a refused command changes
nothing.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from ..check import check
from ..findings import Report
from ..project_tree import (
    MIGRATION_NAME,
    SNAPSHOT,
    GateError,
    ProjectTree,
    command,
    step_name,
    translated_file_errors,
    tree_at,
)
from ..protos.codegen import check_protos, compile_file, generate
from ..protos.types import ProtoTypes, changed_collections, differences
from ..rules import field_numbers, types
from ..sources.git_history import GitHistory
from ..sources.hashes import HashEntry, Hashes, dump, parse, source_hash
from ..workspace import read_workspace
from .file_edits import Edits, dispatch_with_arm, text_of, version_text, versions_of
from .stubs import StubPlan, migration_source, test_source


@dataclass(frozen=True, slots=True)
class Written:
    """The result of a command that writes files."""

    version: int
    summary: str
    written: tuple[str, ...]
    removed: tuple[str, ...] = ()


def make_version(
    root: str | Path | None,
    why: str | None,
    *,
    amended: bool = False,
    renumbered: bool = False,
    same_types: bool = False,
    base: str | None = None,
) -> tuple[Written, Report]:
    """Create, amend or renumber a version of the project at `root`, and check the project afterwards."""
    with translated_file_errors():
        tree = tree_at(root)
        if amended:
            written = amend(tree)
        elif renumbered:
            written = renumber(tree, base)
        else:
            written = create(tree, why or "", same_types=same_types)
        return written, check(tree)


def create(tree: ProjectTree, why: str, *, same_types: bool = False) -> Written:
    """Make the next version from the edited types."""
    why = " ".join(why.split())
    if not why:
        raise GateError("the reason is empty", "it becomes the first line of the migration", SNAPSHOT)
    if not why.isprintable():
        raise GateError(
            f"the reason is not printable text: {why!r}", "it becomes the first line of the migration", SNAPSHOT
        )
    _refuse_wrong_types(tree)
    versions, hashes = versions_of(tree), read_hashes(tree)
    current, new = versions.current, versions.current + 1
    old, types = _compiled(tree, tree.snapshot(current)), _compiled(tree, tree.objects)
    if old.hash == types.hash and not same_types:
        raise GateError(
            f"proto/objects.proto holds the same types as v{current}",
            "a new version freezes a change of the types",
            "edit proto/objects.proto first; if only rows change, add --same-types",
        )
    if current not in hashes.snapshots or hashes.snapshots[current].hash != old.hash:
        raise GateError(
            f"objects_v{current}.proto does not match its recorded hash",
            "the new version would start from it",
            command("check"),
        )
    name = step_name(current)
    _refuse_overwriting(tree, new)
    plan = StubPlan(
        project=tree.project,
        old=current,
        why=why,
        changes=tuple(change.text for change in differences(old, types)),
        changed=tuple(changed_collections(old, types)),
        created=tuple(sorted(set(types.collections) - set(old.collections))),
        retired=tuple(sorted(set(old.collections) - set(types.collections))),
    )
    source = migration_source(plan)
    recorded = hashes.with_snapshot(new, HashEntry(types.hash)).with_migration(
        name, HashEntry(source_hash(source.encode()), id=_new_id())
    )
    edits = Edits(
        {
            tree.snapshot(new): text_of(tree, tree.objects),
            tree.version: version_text(text_of(tree, tree.version), minimum=versions.minimum, current=new),
            tree.upgrade: dispatch_with_arm(text_of(tree, tree.upgrade), tree.project, current),
            tree.migration(name): source,
            tree.migration_test(name): test_source(plan),
            tree.hashes: dump(recorded),
        }
    )
    return _applied(tree, edits, new, f"made v{new}: {why}")


def amend(tree: ProjectTree) -> Written:
    """Freeze the newest version again, and record all unreleased files again."""
    versions, before = versions_of(tree), read_hashes(tree)
    _refuse_wrong_types(tree, amended=versions.current)
    edits, hashes = Edits(), before
    newest = hashes.snapshots.get(versions.current)
    if newest is None or newest.released is None:
        edits.writes[tree.snapshot(versions.current)] = text_of(tree, tree.objects)
    elif _compiled(tree, tree.objects).hash != newest.hash:
        raise GateError(
            f"v{versions.current} was released in {newest.released}", "a released version never changes", SNAPSHOT
        )
    for version in versions.snapshots:
        if _is_open(hashes.snapshots.get(version)):
            path = tree.objects if version == versions.current else tree.snapshot(version)
            hashes = hashes.with_snapshot(version, HashEntry(_compiled(tree, path).hash))
    for path in sorted(tree.migrations.glob("*.py")):
        entry = hashes.migrations.get(path.stem)
        if MIGRATION_NAME.fullmatch(path.stem) and _is_open(entry):
            identity = entry.id if entry is not None else None
            hashes = hashes.with_migration(
                path.stem, HashEntry(source_hash(path.read_bytes()), id=identity or _new_id())
            )
    edits.writes[tree.hashes] = dump(hashes)
    changed = [f"v{version}" for version, entry in hashes.snapshots.items() if before.snapshots.get(version) != entry]
    changed += [name for name, entry in hashes.migrations.items() if before.migrations.get(name) != entry]
    summary = f"recorded again: {', '.join(changed)}" if changed else "nothing has changed since it was recorded"
    return _applied(tree, edits, versions.current, summary)


def renumber(tree: ProjectTree, base: str | None = None) -> Written:
    """Move this branch's newest version behind the new versions of the base branch."""
    versions, hashes, history = versions_of(tree), read_hashes(tree), GitHistory(tree, base)
    theirs, their_versions = history.base_hashes, history.base_versions
    if history.base_ref is None or theirs is None or their_versions is None:
        raise GateError(
            "there is no other branch to compare with",
            history.problem or "this is the base branch itself, or the base has no such project",
            "name the branch that took the number: --base REF",
        )
    taken = [
        name
        for name, entry in hashes.migrations.items()
        if name in theirs.migrations and theirs.migrations[name].id != entry.id
    ]
    mine = step_name(versions.current - 1)
    if taken != [mine]:
        raise GateError(
            f"made both here and on {history.base_ref}: {', '.join(taken) or 'no version'}",
            f"only the newest version of this branch, {mine}, can be moved",
            "if no version is listed, nothing is needed; if several are, make them again one by one on the base",
        )
    new, name = their_versions.current + 1, step_name(their_versions.current)
    _refuse_overwriting(tree, new)
    edits = Edits()
    for path in _files_between(tree, versions.current, their_versions.current):
        content = history.show(history.base_ref, path)
        if content is not None:
            edits.writes[path] = content.decode()
    source = _moved(text_of(tree, tree.migration(mine)), versions.current, new)
    entry = HashEntry(source_hash(source.encode()), id=hashes.migrations[mine].id)
    recorded = theirs.with_snapshot(new, HashEntry(_compiled(tree, tree.objects).hash)).with_migration(name, entry)
    edits.writes |= {
        tree.snapshot(new): text_of(tree, tree.objects),
        tree.version: version_text(_base_text(history, tree.version), minimum=their_versions.minimum, current=new),
        tree.upgrade: dispatch_with_arm(_base_text(history, tree.upgrade), tree.project, new - 1),
        tree.migration(name): source,
        tree.hashes: dump(recorded),
    }
    if tree.migration_test(mine).is_file():
        edits.writes[tree.migration_test(name)] = _moved(
            text_of(tree, tree.migration_test(mine)), versions.current, new
        )
    return _applied(
        tree, edits, new, f"moved v{versions.current} to v{new}; v{versions.current} is now that of {history.base_ref}"
    )


def read_hashes(tree: ProjectTree) -> Hashes:
    try:
        return parse(tree.hashes.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise GateError(
            f"proto/hashes.json cannot be read: {error}",
            "recorded hashes cannot be recomputed",
            "git checkout HEAD -- proto/hashes.json",
        ) from error


def _applied(tree: ProjectTree, edits: Edits, version: int, summary: str) -> Written:
    check_protos(tree, edits.writes)
    edits.apply()
    generate(tree)
    return Written(version, summary, tuple(tree.relative(path) for path in edits.writes))


def _refuse_wrong_types(tree: ProjectTree, *, amended: int | None = None) -> None:
    """Refuse current types with findings, which must be corrected before they are frozen."""
    workspace, place = read_workspace(tree), tree.relative(tree.objects)
    if amended is not None:
        workspace.snapshots.pop(amended, None)  # the current types take its place
    types.check(workspace)
    field_numbers.check(workspace)
    for finding in sorted(workspace.findings):
        if finding.code.startswith("T") and finding.path == place:
            line = f":{finding.line}" if finding.line else ""
            raise GateError(
                f"{finding.code} {finding.title}: {finding.what}", finding.why, f"in {place}{line}: {finding.fix}"
            )


def _refuse_overwriting(tree: ProjectTree, new: int) -> None:
    name = step_name(new - 1)
    for path in (tree.snapshot(new), tree.migration(name), tree.migration_test(name)):
        if path.exists():
            what = f"{tree.relative(path)} already exists"
            raise GateError(what, f"the new version, v{new}, would overwrite that file", "move it away first")


def _compiled(tree: ProjectTree, path: Path) -> ProtoTypes:
    return compile_file(tree, path, "only types that compile can be frozen")


def _files_between(tree: ProjectTree, first: int, last: int) -> list[Path]:
    """Return the files that belong to one of the versions first..last only."""
    steps = [step_name(version - 1) for version in range(first, last + 1)]
    return [
        *(tree.snapshot(version) for version in range(first, last + 1)),
        *(tree.migration(step) for step in steps),
        *(tree.migration_test(step) for step in steps),
    ]


def _moved(text: str, was: int, now: int) -> str:
    """Return the source of a step to version `was` as that of a step to version `now`."""
    numbers = {str(was - 1): str(now - 1), str(was): str(now)}
    return re.sub(r"(?<![A-Za-z0-9])v(\d+)(?!\d)", lambda found: "v" + numbers.get(found[1], found[1]), text)


def _base_text(history: GitHistory, path: Path) -> str:
    content = history.show(history.base_ref or "", path)
    if content is None:
        raise GateError(
            f"{history.base_ref} has no {path.name}", "the new version is added to it", "choose another --base"
        )
    return content.decode()


def _is_open(entry: HashEntry | None) -> bool:
    return entry is None or entry.released is None


def _new_id() -> str:
    return secrets.token_hex(4)
