"""Rules about the instructions in `builtins.py`, compared with releases, and about the fingerprints of releases."""

from __future__ import annotations

import json
import re

from ..project_tree import command
from ..sources.builtin_instructions import (
    EXAMPLE,
    INSTRUCTIONS,
    DeclaredInstruction,
    DeclaredInstructions,
    readable_instructions,
)
from ..sources.git_history import RecordedRelease
from ..sources.hashes import Hashes, is_release, release_order
from ..workspace import Workspace

_GOLDEN = "./dev golden"


def check(workspace: Workspace) -> None:
    instructions = workspace.instructions
    if instructions is not None:
        for problem in instructions.problems:
            fix = f"write each instruction as a literal: {EXAMPLE}"
            workspace.add("B800", workspace.tree.builtins, problem.message, fix, problem.line)
        _check_twice(workspace, instructions)
        _check_coming(workspace, instructions)
        _check_released(workspace, instructions)
    _check_fingerprints(workspace)


def _check_twice(workspace: Workspace, instructions: DeclaredInstructions) -> None:
    first: dict[tuple[str, str], int] = {}
    for one, line in instructions.written:
        before = first.setdefault((one.build, one.name), line)
        if before != line:
            what = f"{one.name} already has an instruction for {one.build}, in line {before}"
            fix = "keep the intended one; a replacement includes every evolution"
            workspace.add("B804", workspace.tree.builtins, what, fix, line)


def _check_coming(workspace: Workspace, instructions: DeclaredInstructions) -> None:
    coming = _coming(workspace)
    for one, line in instructions.written:
        if coming is not None and release_order(one.build) > release_order(coming):
            what = f"{one} is for {one.build}, and the coming build is {coming}"
            fix = f"assign it to {coming}, or raise BUILD in {workspace.tree.relative(workspace.tree.version)} first"
            workspace.add("B803", workspace.tree.builtins, what, fix, line)


def _check_released(workspace: Workspace, instructions: DeclaredInstructions) -> None:
    releases = _releases(workspace)
    frozen = {
        one: number
        for number in sorted(releases, key=release_order, reverse=True)
        if releases[number].earlier
        for one in releases[number].instructions
    }
    now = {(one.build, one.name): one for one in instructions.all}
    if not instructions.problems:
        for one in sorted(frozen.keys() - instructions.all, key=lambda one: (release_order(one.build), one.name)):
            if not _is_retired(workspace, one):
                _add_gone(workspace, instructions.line, one, frozen[one], now.get((one.build, one.name)))
    settled = {(one.build, one.name) for one in frozen}
    for one, line in instructions.written:
        without = [
            number
            for number in sorted(releases, key=release_order)
            if release_order(number) >= release_order(one.build) and one not in releases[number].instructions
        ]
        if without and (one.build, one.name) not in settled:
            _add_late(workspace, line, one, {number: releases[number] for number in without})


def _add_gone(
    workspace: Workspace, line: int, gone: DeclaredInstruction, release: str, instead: DeclaredInstruction | None
) -> None:
    path = workspace.tree.builtins
    state = "is missing" if instead is None else f"is now {instead.mechanism}"
    revision = workspace.history.revision(path, lambda source: gone in readable_instructions(source))
    found = "" if revision is None else f"; git show {revision}:./{workspace.tree.relative(path)} has it"
    fix = (
        f"put it back into {INSTRUCTIONS}{found}\n"
        f"it can be removed when no build before {gone.build} can be upgraded any more: {command('retire N')}"
    )
    if instead is not None:
        fix = f"put {gone.mechanism} back{found}\nmake the new change an instruction for the coming build"
    workspace.add("B801", path, f"{gone} was released in {release} and {state}", fix, line)


def _add_late(workspace: Workspace, line: int, late: DeclaredInstruction, without: dict[str, RecordedRelease]) -> None:
    newest, coming = list(without)[-1], _coming(workspace)
    named = ", ".join(f"{number} ({release.where})" for number, release in without.items())
    if coming is not None and release_order(coming) > release_order(newest):
        fix = f"assign it to the coming build, {coming}"
    else:
        fix = (
            f"make the change in a build after {newest}; a patch of an earlier one cannot have it\n"
            "(if this branch will be merged where that was released: git rebase first)"
        )
    what = f"{late} is missing from earlier releases: {named}"
    workspace.add("B802", workspace.tree.builtins, what, fix, line)


def _releases(workspace: Workspace) -> dict[str, RecordedRelease]:
    """Return every known release, of this checkout or of its history."""
    found = dict(workspace.history.releases)
    hashes, where = workspace.hashes or Hashes(), workspace.tree.relative(workspace.tree.hashes)
    for number in hashes.released:
        here = RecordedRelease(where, hashes.instructions_of(number), earlier=True)
        found[number] = here | found[number] if number in found else here
    return found


def _is_retired(workspace: Workspace, instruction: DeclaredInstruction) -> bool:
    """Tell if no store that can be upgraded needs it, because the oldest one was written by its build or later."""
    versions, hashes = workspace.versions, workspace.hashes
    oldest = None if versions is None or hashes is None else hashes.snapshots.get(versions.minimum)
    released = None if oldest is None else oldest.released
    return released is not None and release_order(instruction.build) <= release_order(released)


def _coming(workspace: Workspace) -> str | None:
    """Return the release that this build will become."""
    found = re.match(r"[0-9]+\.[0-9]+\.[0-9]+", workspace.build or "")
    return None if found is None else found[0]


def _check_fingerprints(workspace: Workspace) -> None:
    path, build = workspace.tree.fingerprints, workspace.build or ""
    if not path.is_file() or workspace.hashes is None:
        return
    releases = workspace.hashes.released | ({build} if is_release(build) else set())
    last = max(releases, key=release_order, default=None)
    recorded = _fingerprints(path.read_bytes())
    if recorded is None:
        restore = workspace.restore(path, lambda source: _fingerprints(source) is not None)
        workspace.add("B805", path, f"{path.name} does not hold a release and its builtins", restore)
        return
    release, _ = recorded
    if last is not None and release != last:
        where = (
            "" if build == last else f" where BUILD is {last} (git checkout v{last}), and keep the file that it writes"
        )
        workspace.add("B805", path, f"{path.name} is for {release}, and the last release is {last}", _GOLDEN + where)
    earlier = [own for own in map(_fingerprints, workspace.history.sources(path)) if own and own[0] == release]
    if earlier and earlier[-1] != recorded:
        restore = workspace.restore(path, lambda source: _fingerprints(source) == earlier[-1])
        workspace.add("B806", path, f"the fingerprints of {release} are not those recorded at that release", restore)


def _fingerprints(source: bytes) -> tuple[str, str] | None:
    """Return the release and its fingerprints, independent of layout; None if they cannot be read."""
    try:
        document = json.loads(source)
        return str(document["release"]), json.dumps(document["builtins"], sort_keys=True)
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
