"""Rules about what is frozen: snapshots and migrations against their recorded hashes, and those against history."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from ..descriptors import ProtoError, compile_proto, differences
from ..hashes import Entry, Hashes, dump_release, source_hash
from ..history import Recorded
from ..migration import same_syntax
from ..syntax import SyntaxProblemError, Versions
from ..tree import AMEND, MIGRATION_NAME, SNAPSHOT, SNAPSHOT_NAME, command, step_name
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
    """Compare released entries with all that git remembers; yields a note where it remembers nothing."""
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
        workspace.add("S203", old, "the folder proto/old is not there", "git checkout HEAD -- proto/old")
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
            workspace.add("S203", path, f"{path.name} is not there", workspace.restore(path))


def _check_snapshots(workspace: Workspace, versions: Versions, hashes: Hashes) -> None:
    for version, types in workspace.snapshots.items():
        entry, path = hashes.snapshots.get(version), workspace.tree.snapshot(version)
        if version not in versions.snapshots:
            continue
        if entry is None:
            workspace.add(
                "H301",
                workspace.tree.hashes,
                f"v{version} has a snapshot but no recorded hash",
                f"{workspace.restore(workspace.tree.hashes)}, or {AMEND}",
            )
        elif entry.hash != types.hash:
            workspace.altered_snapshots.add(version)
            first = "make it in proto/objects.proto, then " if version == versions.current else ""
            fix = _restore(workspace, path, entry, first)
            fix += f"\nif the hash was edited: {workspace.restore(workspace.tree.hashes)}"
            workspace.add("S202", path, f"{path.name} is not what was recorded{_since(entry)}", fix)
    for version in hashes.snapshots:
        if version > versions.current:
            workspace.add(
                "H302",
                workspace.tree.hashes,
                f"a hash of v{version} is recorded, but STASH_VERSION is {versions.current}",
                f"remove the entry, or restore the version: {SNAPSHOT}",
            )


def _check_migrations(workspace: Workspace, versions: Versions, hashes: Hashes) -> None:
    for name, migration in workspace.migrations.items():
        entry, path = hashes.migrations.get(name), workspace.tree.migration(name)
        if entry is None:
            workspace.add(
                "H301",
                workspace.tree.hashes,
                f"{name} has no recorded hash",
                f"{workspace.restore(workspace.tree.hashes)}, or {AMEND}",
            )
        elif entry.hash != migration.hash and entry.released is None:
            workspace.add("M610", path, f"{name} changed since its hash was recorded", AMEND)
        elif entry.hash != migration.hash:
            fix = (
                _restore(workspace, path, entry)
                + f"\nif only comments, docstrings or layout changed: {command(f'restyle {name}')}"
            )
            workspace.add("M609", path, f"{name} was released in {entry.released} and has changed", fix)
    for name in hashes.migrations.keys() - workspace.migrations.keys() - workspace.broken_migrations:
        step = MIGRATION_NAME.fullmatch(name)
        if step is None or (int(step["old"]) in versions.steps and name != step_name(int(step["old"]))):
            workspace.add(
                "H302",
                workspace.tree.hashes,
                f"a hash of {name} is recorded, but there is no such migration",
                f"{workspace.restore(workspace.tree.migration(name))}, or remove the entry if no release had it",
            )
        elif int(step["new"]) > versions.current:
            workspace.add(
                "H302",
                workspace.tree.hashes,
                f"a hash of {name} is recorded, but STASH_VERSION is {versions.current}",
                f"remove the entry, or restore the version: {SNAPSHOT}",
            )


def _check_base(workspace: Workspace, hashes: Hashes) -> None:
    """Two branches that both made a version have given it different ids."""
    base = workspace.history.base_hashes
    for name, theirs in (base.migrations if base else {}).items():
        ours = hashes.migrations.get(name)
        if ours is not None and ours.id != theirs.id:
            _, _, number = name.partition("_to_")
            workspace.add(
                "V403",
                workspace.tree.migration(name),
                f"{number} is already made, differently, on {workspace.history.base_ref}",
                f"git rebase {workspace.history.base_ref}, unless you are in the middle of it\n{MERGE_ADVICE}",
            )


def _check_released(
    workspace: Workspace, hashes: Hashes, recorded: Recorded, name: str, before: Entry, seen: set[tuple[str, str]]
) -> None:
    now = dict(_entries(hashes)).get(name)
    path = workspace.tree.hashes
    if not recorded.earlier and (now is None or now.released is None):
        return
    if now is None or now.released != before.released:
        if ("H304", name) not in seen:
            seen.add(("H304", name))
            state = "is gone" if now is None else f"now says {now.released}"
            fix = f'put it back: "hash": "{before.hash}", "released": "{before.released}"'
            workspace.add("H304", path, f"{name} was released in {before.released} ({recorded.where}) and {state}", fix)
    elif now.hash != before.hash and not _restyled(workspace, name, now, before) and ("H303", name) not in seen:
        seen.add(("H303", name))
        fix = f"restore the file and its hash as at {recorded.where}, and change it in a new version: {SNAPSHOT}"
        workspace.add(
            "H303", path, f"{name}, released in {before.released}, was {before.hash[:19]}… at {recorded.where}", fix
        )


def _check_releases(workspace: Workspace, hashes: Hashes, recorded: Recorded, seen: set[tuple[str, str]]) -> None:
    for number, before in recorded.hashes.releases.items():
        now = hashes.releases.get(number)
        known = now is not None or recorded.earlier
        if known and (now is None or set(now) != set(before)) and ("H304", number) not in seen:
            seen.add(("H304", number))
            had = ", ".join(map(str, before)) or "no new instructions"
            state = "is gone" if now is None else f"now has {', '.join(map(str, now)) or 'none'}"
            fix = f"put it back as at {recorded.where}: {json.dumps(dump_release(before))}"
            workspace.add(
                "H304", workspace.tree.hashes, f"the release {number} had {had} ({recorded.where}) and {state}", fix
            )


def _restyled(workspace: Workspace, name: str, now: Entry, before: Entry) -> bool:
    """Whether the entry claims, and history proves, that only the looks of a released migration changed."""
    path = workspace.tree.migration(name)
    if before.hash not in now.restyled:
        return False
    original = workspace.history.source_with_hash(path, before.hash)
    restyled = path.read_bytes() if path.is_file() else workspace.history.source_with_hash(path, now.hash)
    try:
        return original is not None and restyled is not None and same_syntax(original, restyled)
    except SyntaxProblemError:
        return False


def _entries(hashes: Hashes) -> Iterator[tuple[str, Entry]]:
    yield from ((f"objects_v{version}", entry) for version, entry in hashes.snapshots.items())
    yield from hashes.migrations.items()


def _restore(workspace: Workspace, path: Path, entry: Entry, first: str = "") -> str:
    right = workspace.restore(path, lambda content: _recorded_as(content, entry))
    if entry.released is None:
        return f"{right}\nor, if the change is meant: {first}{AMEND}"
    released = f"git checkout v{entry.released} -- {workspace.tree.relative(path)}"
    return f"{released}\nand make the change in a new version: {SNAPSHOT}"


def _recorded_as(content: bytes, entry: Entry) -> bool:
    """Whether a file, proto or module, had the content that was recorded."""
    try:
        return entry.hash in {source_hash(content), compile_proto(content).hash}
    except ProtoError:
        return entry.hash == source_hash(content)


def _right_name(workspace: Workspace, path: Path) -> str:
    """How to give a stray file the name of the snapshot that it is."""
    entries = workspace.hashes.snapshots.items() if workspace.hashes else ()
    content = path.read_bytes() if path.is_file() else b""
    for version, entry in entries:
        if content and _recorded_as(content, entry) and not workspace.tree.snapshot(version).exists():
            new = workspace.tree.relative(workspace.tree.snapshot(version))
            return f"git mv {workspace.tree.relative(path)} {new}"
    return "move it elsewhere"


def _since(entry: Entry) -> str:
    return "" if entry.released is None else f" when {entry.released} was released"


def _listed(changes: list[str], most: int = 8) -> str:
    more = f" and {len(changes) - most} more" if len(changes) > most else ""
    return "; ".join(changes[:most]) + more
