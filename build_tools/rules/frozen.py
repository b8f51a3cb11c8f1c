"""Rules about frozen files: they match their recorded hashes, and the hashes match the history of git."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from ..project_tree import AMEND, MIGRATION_NAME, SNAPSHOT, SNAPSHOT_NAME, command, step_name
from ..protos.types import ProtoError, compile_proto, differences
from ..sources.git_history import RecordedHashes
from ..sources.hashes import HashEntry, Hashes, dump_release, source_hash
from ..sources.migration import same_syntax
from ..sources.syntax_tree import SyntaxProblemError
from ..sources.version_and_dispatch import Versions
from ..workspace import MERGE_ADVICE, Workspace


def check(workspace: Workspace) -> None:
    _check_folder(workspace)
    if workspace.versions is None:
        return
    _check_current(workspace, workspace.versions)
    _check_sequence(workspace, workspace.versions)
    if workspace.hashes is not None:
        _check_snapshots(workspace, workspace.versions, workspace.hashes)
        _check_migrations(workspace, workspace.versions, workspace.hashes)
        _check_base(workspace, workspace.hashes)


def check_history(workspace: Workspace, *, require: bool) -> Iterator[str]:
    """Compare released entries with the history of git; yield a note where there is none."""
    problem = workspace.history.problem
    if problem is not None:
        if require:
            fix = "work in a clone with the whole history: git fetch --unshallow --tags (in CI: fetch-depth: 0)"
            workspace.add("H305", workspace.tree.hashes, problem, fix)
        else:
            yield f"released hashes were not compared with history: {problem}"
        return
    if workspace.hashes is None:
        return
    seen: set[tuple[str, str]] = set()
    for recorded in workspace.history.recorded:
        for name, before in _entries(recorded.hashes):
            if before.released is not None:
                _check_released(workspace, workspace.hashes, recorded, name, before, seen)
        _check_releases(workspace, workspace.hashes, recorded, seen)


def _check_folder(workspace: Workspace) -> None:
    old, versions = workspace.tree.old, workspace.versions
    if not old.is_dir():
        workspace.add("S203", old, "the folder proto/old is missing", "git checkout HEAD -- proto/old")
        return
    for path in sorted(old.iterdir()):
        name = SNAPSHOT_NAME.fullmatch(path.name)
        if name is None or not path.is_file():
            workspace.add("S204", path, f"{path.name} is not named objects_vN.proto", _right_name(workspace, path))
        elif versions is not None and int(name["version"]) not in versions.snapshots:
            supported = f"v{versions.snapshots.start}..v{versions.current}"
            fix = (
                f"to make a new version: remove it, edit proto/objects.proto, then {SNAPSHOT}\n"
                f"to end support for old ones: {command('retire N')}"
            )
            workspace.add("S204", path, f"{path.name} is outside {supported}", fix)


def _check_current(workspace: Workspace, versions: Versions) -> None:
    snapshot, current = workspace.snapshots.get(versions.current), workspace.current
    if snapshot is None or current is None or snapshot.hash == current.hash:
        return
    entry = workspace.hashes.snapshots.get(versions.current) if workspace.hashes else None
    changes = [change.text for change in differences(snapshot, current)]
    fix = SNAPSHOT
    on_base = workspace.history.base_hashes
    if entry is not None and entry.released is None and (on_base is None or versions.current not in on_base.snapshots):
        fix += f"\nor, as v{versions.current} is not released: {AMEND}"
    workspace.add("S201", workspace.tree.objects, f"since v{versions.current}: {_listed(changes)}", fix)


def _check_sequence(workspace: Workspace, versions: Versions) -> None:
    for version in versions.snapshots:
        there = version in workspace.snapshots or version in workspace.broken_snapshots
        if not there and workspace.tree.old.is_dir():
            path = workspace.tree.snapshot(version)
            workspace.add("S203", path, f"{path.name} is missing", workspace.restore(path))


def _check_snapshots(workspace: Workspace, versions: Versions, hashes: Hashes) -> None:
    for version in workspace.snapshots:
        entry, path = hashes.snapshots.get(version), workspace.tree.snapshot(version)
        if version not in versions.snapshots:
            continue
        if entry is None:
            _add_unrecorded(workspace, f"v{version} has a snapshot but no recorded hash")
        elif version in workspace.altered_snapshots:
            first = "make it in proto/objects.proto, then " if version == versions.current else ""
            fix = _restore(workspace, path, entry, first)
            fix += f"\nif the hash was edited: {workspace.restore(workspace.tree.hashes)}"
            workspace.add("S202", path, f"{path.name} is not what was recorded{_since(entry)}", fix)
    for version in hashes.snapshots:
        if version > versions.current:
            _add_unfounded(workspace, f"v{version}", versions)


def _check_migrations(workspace: Workspace, versions: Versions, hashes: Hashes) -> None:
    for name, migration in workspace.migrations.items():
        entry, path = hashes.migrations.get(name), workspace.tree.migration(name)
        if entry is None:
            _add_unrecorded(workspace, f"{name} has no recorded hash")
        elif entry.hash != migration.hash and entry.released is None:
            workspace.add("M610", path, f"{name} changed since its hash was recorded", AMEND)
        elif entry.hash != migration.hash:
            fix = _restore(workspace, path, entry)
            fix += f"\nif only comments, docstrings or layout changed: {command(f'restyle {name}')}"
            workspace.add("M609", path, f"{name} was released in {entry.released} and has changed", fix)
    for name in hashes.migrations.keys() - workspace.migrations.keys() - workspace.broken_migrations:
        step = MIGRATION_NAME.fullmatch(name)
        if step is None or (int(step["old"]) in versions.steps and name != step_name(int(step["old"]))):
            fix = f"{workspace.restore(workspace.tree.migration(name))}, or remove the entry if no release had it"
            what = f"a hash of {name} is recorded, but there is no such migration"
            workspace.add("H302", workspace.tree.hashes, what, fix)
        elif int(step["new"]) > versions.current:
            _add_unfounded(workspace, name, versions)


def _add_unrecorded(workspace: Workspace, what: str) -> None:
    workspace.add("H301", workspace.tree.hashes, what, f"{workspace.restore(workspace.tree.hashes)}, or {AMEND}")


def _add_unfounded(workspace: Workspace, name: str, versions: Versions) -> None:
    what = f"a hash of {name} is recorded, but STASH_VERSION is {versions.current}"
    workspace.add("H302", workspace.tree.hashes, what, f"remove the entry, or restore the version: {SNAPSHOT}")


def _check_base(workspace: Workspace, hashes: Hashes) -> None:
    """Find versions that two branches made: each branch has given the version its own id."""
    base = workspace.history.base_hashes
    for name, theirs in (base.migrations if base else {}).items():
        ours = hashes.migrations.get(name)
        if ours is not None and ours.id != theirs.id:
            _, _, number = name.partition("_to_")
            what = f"{number} already exists on {workspace.history.base_ref}, with another content"
            fix = f"git rebase {workspace.history.base_ref}, unless a rebase is in progress\n{MERGE_ADVICE}"
            workspace.add("V403", workspace.tree.migration(name), what, fix)


def _check_released(
    workspace: Workspace,
    hashes: Hashes,
    recorded: RecordedHashes,
    name: str,
    before: HashEntry,
    seen: set[tuple[str, str]],
) -> None:
    now = dict(_entries(hashes)).get(name)
    path = workspace.tree.hashes
    if not recorded.earlier and (now is None or now.released is None):
        return
    if now is None or now.released != before.released:
        if ("H304", name) not in seen:
            seen.add(("H304", name))
            state = "is missing" if now is None else f"its release is now {now.released}"
            fix = f'put it back: "hash": "{before.hash}", "released": "{before.released}"'
            workspace.add("H304", path, f"{name} was released in {before.released} ({recorded.where}) and {state}", fix)
    elif now.hash != before.hash and not _restyled(workspace, name, now, before) and ("H303", name) not in seen:
        seen.add(("H303", name))
        fix = f"restore the file and its hash as at {recorded.where}, and change it in a new version: {SNAPSHOT}"
        what = f"{name}, released in {before.released}, was {before.hash[:19]}… at {recorded.where}"
        workspace.add("H303", path, what, fix)


def _check_releases(workspace: Workspace, hashes: Hashes, recorded: RecordedHashes, seen: set[tuple[str, str]]) -> None:
    for number, before in recorded.hashes.releases.items():
        now = hashes.releases.get(number)
        known = now is not None or recorded.earlier
        if known and (now is None or set(now) != set(before)) and ("H304", number) not in seen:
            seen.add(("H304", number))
            had = ", ".join(map(str, before)) or "no new instructions"
            state = "is missing" if now is None else f"now has {', '.join(map(str, now)) or 'none'}"
            fix = f"put it back as at {recorded.where}: {json.dumps(dump_release(before))}"
            what = f"the release {number} had {had} ({recorded.where}) and {state}"
            workspace.add("H304", workspace.tree.hashes, what, fix)


def _restyled(workspace: Workspace, name: str, now: HashEntry, before: HashEntry) -> bool:
    """Tell if the entry claims, and history proves, that only the layout of a released migration changed."""
    path = workspace.tree.migration(name)
    if before.hash not in now.restyled:
        return False
    original = workspace.history.source_with_hash(path, before.hash)
    restyled = path.read_bytes() if path.is_file() else workspace.history.source_with_hash(path, now.hash)
    try:
        return original is not None and restyled is not None and same_syntax(original, restyled)
    except SyntaxProblemError:
        return False


def _entries(hashes: Hashes) -> Iterator[tuple[str, HashEntry]]:
    yield from ((f"objects_v{version}", entry) for version, entry in hashes.snapshots.items())
    yield from hashes.migrations.items()


def _restore(workspace: Workspace, path: Path, entry: HashEntry, first: str = "") -> str:
    right = workspace.restore(path, lambda content: _recorded_as(content, entry))
    if entry.released is None:
        return f"{right}\nor, if the change is intended: {first}{AMEND}"
    released = f"git checkout v{entry.released} -- {workspace.tree.relative(path)}"
    return f"{released}\nand make the change in a new version: {SNAPSHOT}"


def _recorded_as(content: bytes, entry: HashEntry) -> bool:
    """Tell if a file, proto or module, has the recorded content."""
    try:
        return entry.hash in {source_hash(content), compile_proto(content).hash}
    except ProtoError:
        return entry.hash == source_hash(content)


def _right_name(workspace: Workspace, path: Path) -> str:
    """Return the command that renames a stray file to the snapshot whose content it has."""
    entries = workspace.hashes.snapshots.items() if workspace.hashes else ()
    content = path.read_bytes() if path.is_file() else b""
    for version, entry in entries:
        if content and _recorded_as(content, entry) and not workspace.tree.snapshot(version).exists():
            new = workspace.tree.relative(workspace.tree.snapshot(version))
            return f"git mv {workspace.tree.relative(path)} {new}"
    return "move it elsewhere"


def _since(entry: HashEntry) -> str:
    return "" if entry.released is None else f" when {entry.released} was released"


def _listed(changes: list[str], most: int = 8) -> str:
    more = f" and {len(changes) - most} more" if len(changes) > most else ""
    return "; ".join(changes[:most]) + more
