"""The command that releases: it freezes every file of the release for ever."""

from __future__ import annotations

import re
from dataclasses import replace

from ..check import check
from ..project_tree import GateError, ProjectTree, command
from ..sources.builtin_instructions import DeclaredInstruction, read_instructions
from ..sources.hashes import HashEntry, Hashes, dump, from_version, is_release, release_order
from .file_edits import Edits, versions_of
from .new_version import Written, read_hashes

_BUILD = re.compile(r'(?m)^(BUILD\b[^=]*= *")[^"]*(")')


def release(tree: ProjectTree, number: str) -> Written:
    """Stamp every unreleased entry with the release, record it, and set the build's version."""
    if not is_release(number):
        raise GateError(f"`{number}` is not a release", "a release has three numbers", command("release 1.2.3"))
    hashes = read_hashes(tree)
    if newer := [done for done in hashes.released if release_order(done) >= release_order(number)]:
        raise GateError(
            f"{max(newer, key=release_order)} is already released",
            "release numbers must ascend",
            "choose a higher number",
        )
    if tree.unwritten:
        raise GateError(
            f"not written yet: {', '.join(tree.unwritten)}",
            "a released migration never changes, so it must be finished",
            "write them, and remove them from `unwritten` under [tool.catalog]",
        )
    report = check(tree)
    if not report.ok:
        raise GateError(
            f"the gate has {len(report.findings)} findings", "a release freezes all files as they are", command("check")
        )
    versions = versions_of(tree)

    def stamped(entry: HashEntry, version: int) -> HashEntry:
        supported = version >= versions.minimum
        return replace(entry, released=number) if entry.released is None and supported else entry

    frozen = replace(
        hashes,
        snapshots={version: stamped(entry, version) for version, entry in hashes.snapshots.items()},
        migrations={name: stamped(entry, from_version(name)) for name, entry in hashes.migrations.items()},
        releases={**hashes.releases, number: _new_instructions(tree, hashes, number)},
    )
    text, count = _BUILD.subn(rf"\g<1>{number}\g<2>", tree.version.read_text(encoding="utf-8"))
    if count != 1:
        raise GateError(
            "BUILD is not set exactly once in version.py", "it is the version of the build", "restore version.py"
        )
    edits = Edits({tree.hashes: dump(frozen), tree.version: text})
    edits.apply()
    return Written(
        versions.current,
        f"froze everything up to v{versions.current} as {number}; commit, then: git tag v{number}",
        tuple(tree.relative(p) for p in edits.writes),
    )


def _new_instructions(tree: ProjectTree, hashes: Hashes, number: str) -> tuple[DeclaredInstruction, ...]:
    """Return the instructions about builtins that no release had before."""
    now = read_instructions(tree.builtins.read_bytes()).all if tree.builtins.is_file() else frozenset()
    if late := sorted(str(one) for one in now if release_order(one.build) > release_order(number)):
        raise GateError(
            f"{', '.join(late)} cannot be in {number}",
            "stores of this build would never execute an instruction for a later build",
            f"choose a higher number, or assign the instructions to {number}",
        )
    return tuple(sorted(now - hashes.instructions_of(number)))
