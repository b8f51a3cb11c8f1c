"""The recipe for a new version: freeze the edited types, and write everything else that a version is.

`create`, `amend` and `renumber` work out every change first and then make them together; what they refuse, they leave
untouched.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from .codegen import check_protos, generate
from .descriptors import ProtoError, Types, changed_collections, compile_proto, differences
from .edits import Edits, dispatch_with_arm, text_of, version_text, versions_of
from .hashes import Entry, Hashes, dump, parse, source_hash
from .history import History
from .rules.types import check as check_types
from .templates import Plan, migration_source, test_source
from .tree import MIGRATION_NAME, SNAPSHOT, GateError, Tree, command, step_name
from .workspace import read_workspace


@dataclass(frozen=True, slots=True)
class Made:
    """What a command of the recipe did."""

    version: int
    summary: str
    written: tuple[str, ...]
    removed: tuple[str, ...] = ()


def create(tree: Tree, why: str, *, same_types: bool = False) -> Made:
    """Make the next version from the edited types."""
    why = " ".join(why.split())
    if not why:
        raise GateError("the reason is empty", "it becomes the first line of the migration", SNAPSHOT)
    if not why.isprintable():
        raise GateError(f"the reason is no text: {why!r}", "it becomes the first line of the migration", SNAPSHOT)
    _refuse_wrong_types(tree)
    versions, hashes = versions_of(tree), read_hashes(tree)
    current, new = versions.current, versions.current + 1
    old, types = _compiled(tree, tree.snapshot(current)), _compiled(tree, tree.objects)
    if old.hash == types.hash and not same_types:
        raise GateError(
            f"proto/objects.proto holds the same types as v{current}",
            "a new version freezes a change of the types",
            "edit proto/objects.proto first; if only rows are to change, add --same-types",
        )
    if current not in hashes.snapshots or hashes.snapshots[current].hash != old.hash:
        raise GateError(
            f"objects_v{current}.proto is not what was recorded",
            "the new version would start from it",
            command("check"),
        )
    name = step_name(current)
    _refuse_overwriting(tree, new)
    plan = Plan(
        project=tree.project,
        old=current,
        why=why,
        changes=tuple(change.text for change in differences(old, types)),
        changed=tuple(changed_collections(old, types)),
        created=tuple(sorted(set(types.collections) - set(old.collections))),
        retired=tuple(sorted(set(old.collections) - set(types.collections))),
    )
    source = migration_source(plan)
    recorded = hashes.with_snapshot(new, Entry(types.hash)).with_migration(
        name, Entry(source_hash(source.encode()), id=_new_id())
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


def amend(tree: Tree) -> Made:
    """Freeze the newest version again, and record again whatever no release has frozen."""
    versions, before = versions_of(tree), read_hashes(tree)
    _refuse_wrong_types(tree, amended=versions.current)
    edits, hashes = Edits(), before
    newest = hashes.snapshots.get(versions.current)
    if newest is None or newest.released is None:
        edits.writes[tree.snapshot(versions.current)] = text_of(tree, tree.objects)
    elif _compiled(tree, tree.objects).hash != newest.hash:
        raise GateError(
            f"v{versions.current} was released in {newest.released}", "what is released never changes", SNAPSHOT
        )
    for version in versions.snapshots:
        if _is_open(hashes.snapshots.get(version)):
            path = tree.objects if version == versions.current else tree.snapshot(version)
            hashes = hashes.with_snapshot(version, Entry(_compiled(tree, path).hash))
    for path in sorted(tree.migrations.glob("*.py")):
        entry = hashes.migrations.get(path.stem)
        if MIGRATION_NAME.fullmatch(path.stem) and _is_open(entry):
            identity = entry.id if entry is not None else None
            hashes = hashes.with_migration(path.stem, Entry(source_hash(path.read_bytes()), id=identity or _new_id()))
    edits.writes[tree.hashes] = dump(hashes)
    changed = [f"v{version}" for version, entry in hashes.snapshots.items() if before.snapshots.get(version) != entry]
    changed += [name for name, entry in hashes.migrations.items() if before.migrations.get(name) != entry]
    summary = f"recorded as they are now: {', '.join(changed)}" if changed else "everything is recorded as it is"
    return _applied(tree, edits, versions.current, summary)


def renumber(tree: Tree, base: str | None = None) -> Made:
    """Move this branch's newest version behind those that the base branch has made meanwhile."""
    versions, hashes, history = versions_of(tree), read_hashes(tree), History(tree, base)
    theirs, their_versions = history.base_hashes, history.base_versions
    if history.base_ref is None or theirs is None or their_versions is None:
        raise GateError(
            "there is no other branch to look at",
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
            "if there is none, there is nothing to do; if there are more, make them again one by one on the base",
        )
    new, name = their_versions.current + 1, step_name(their_versions.current)
    _refuse_overwriting(tree, new)
    edits = Edits()
    for path in _files_between(tree, versions.current, their_versions.current):
        content = history.show(history.base_ref, path)
        if content is not None:
            edits.writes[path] = content.decode()
    source = _moved(text_of(tree, tree.migration(mine)), versions.current, new)
    entry = Entry(source_hash(source.encode()), id=hashes.migrations[mine].id)
    recorded = theirs.with_snapshot(new, Entry(_compiled(tree, tree.objects).hash)).with_migration(name, entry)
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
        tree, edits, new, f"moved v{versions.current} to v{new}; v{versions.current} is the one of {history.base_ref}"
    )


def read_hashes(tree: Tree) -> Hashes:
    try:
        return parse(tree.hashes.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise GateError(
            f"proto/hashes.json cannot be read: {error}",
            "recorded hashes are never guessed",
            "git checkout HEAD -- proto/hashes.json",
        ) from error


def _applied(tree: Tree, edits: Edits, version: int, summary: str) -> Made:
    check_protos(tree, edits.writes)
    edits.apply()
    generate(tree)
    return Made(version, summary, tuple(tree.relative(path) for path in edits.writes))


def _refuse_wrong_types(tree: Tree, *, amended: int | None = None) -> None:
    """What is wrong with the current types is mended there, before it is frozen."""
    workspace, place = read_workspace(tree), tree.relative(tree.objects)
    if amended is not None:
        workspace.snapshots.pop(amended, None)  # the current types take its place
    check_types(workspace)
    for finding in sorted(workspace.findings):
        if finding.code.startswith("T") and finding.path == place:
            line = f":{finding.line}" if finding.line else ""
            raise GateError(
                f"{finding.code} {finding.title}: {finding.what}", finding.why, f"in {place}{line}: {finding.fix}"
            )


def _refuse_overwriting(tree: Tree, new: int) -> None:
    name = step_name(new - 1)
    for path in (tree.snapshot(new), tree.migration(name), tree.migration_test(name)):
        if path.exists():
            what = f"{tree.relative(path)} is already there"
            raise GateError(what, f"v{new} is to be made, and that file would be overwritten", "move it away first")


def _compiled(tree: Tree, path: Path) -> Types:
    try:
        return compile_proto(path.read_bytes())
    except OSError as error:
        raise GateError(f"{tree.relative(path)} cannot be read", str(error), command("check")) from error
    except ProtoError as error:
        raise GateError(
            f"{tree.relative(path)}:{error.line}: {error.message}",
            "only types that compile can be frozen",
            "correct that line",
        ) from error


def _files_between(tree: Tree, first: int, last: int) -> list[Path]:
    """Everything that belongs to the versions first..last alone."""
    steps = [step_name(version - 1) for version in range(first, last + 1)]
    return [
        *(tree.snapshot(version) for version in range(first, last + 1)),
        *(tree.migration(step) for step in steps),
        *(tree.migration_test(step) for step in steps),
    ]


def _moved(text: str, was: int, now: int) -> str:
    """Source of a step to `was`, as a step to `now`."""
    numbers = {str(was - 1): str(now - 1), str(was): str(now)}
    return re.sub(r"(?<![A-Za-z0-9])v(\d+)(?!\d)", lambda found: "v" + numbers.get(found[1], found[1]), text)


def _base_text(history: History, path: Path) -> str:
    content = history.show(history.base_ref or "", path)
    if content is None:
        raise GateError(
            f"{history.base_ref} has no {path.name}", "the new version is added to it", "choose another --base"
        )
    return content.decode()


def _is_open(entry: Entry | None) -> bool:
    return entry is None or entry.released is None


def _new_id() -> str:
    return secrets.token_hex(4)
