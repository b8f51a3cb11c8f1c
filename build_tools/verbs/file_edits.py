"""Changes to a project's files, made together or not at all.

Edits of `version.py` and `upgrade.py` are located by syntax tree and made in the text, so that comments stay.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from ..project_tree import GateError, ProjectTree, command, step_name
from ..sources.syntax_tree import SyntaxProblemError
from ..sources.version_and_dispatch import DispatchArm, Versions, read_dispatch, read_versions


@dataclass(slots=True)
class Edits:
    """Files to write and files to remove."""

    writes: dict[Path, str] = field(default_factory=dict)
    removes: list[Path] = field(default_factory=list)

    def apply(self) -> None:
        """Write the new files beside the old ones, then replace them; restore all files if one cannot be replaced."""
        staged: list[tuple[Path, Path]] = []
        before = {path: path.read_bytes() for path in (*self.writes, *self.removes) if path.is_file()}
        try:
            for path, text in self.writes.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                beside = path.with_name(f".{path.name}.new")
                staged.append((beside, path))
                beside.write_text(text, encoding="utf-8", newline="\n")
            try:
                for beside, path in staged:
                    beside.replace(path)
                for path in self.removes:
                    path.unlink(missing_ok=True)
            except BaseException:
                self._restore(before)
                raise
        finally:
            for beside, _ in staged:
                beside.unlink(missing_ok=True)

    def _restore(self, before: dict[Path, bytes]) -> None:
        for path in (*self.writes, *self.removes):
            if path in before:
                path.write_bytes(before[path])
            elif path.is_file():
                path.unlink()


def versions_of(tree: ProjectTree) -> Versions:
    try:
        return read_versions(tree.version.read_bytes())
    except (OSError, SyntaxProblemError) as error:
        raise GateError(
            f"{tree.relative(tree.version)} cannot be read: {error}", "it defines the versions", "correct it first"
        ) from error


def text_of(tree: ProjectTree, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise GateError(f"{tree.relative(path)} cannot be read", str(error), command("check")) from error


def version_text(text: str, *, minimum: int, current: int) -> str:
    """Return `version.py` with other bounds."""
    numbers = ", ".join(str(version) for version in range(minimum, current + 1))
    text = _replaced(r"(?m)^(StashVersion\b[^=]*= *Literal\[)[^\]]*(\])", rf"\g<1>{numbers}\g<2>", text, "StashVersion")
    text = _replaced(r"(?m)^(MIN_STASH_VERSION\b[^=]*= *)\d+", rf"\g<1>{minimum}", text, "MIN_STASH_VERSION")
    return _replaced(r"(?m)^(STASH_VERSION\b[^=]*= *)\d+", rf"\g<1>{current}", text, "STASH_VERSION")


def dispatch_with_arm(text: str, project: str, current: int) -> str:
    """Return `upgrade.py` with an arm that migrates from `current`, and one for the version after it."""
    arm = next((arm for arm in _arms(text) if arm.version == current and not arm.guarded), None)
    if arm is None or arm.target is not None or not arm.readable:
        raise GateError(
            f"the dispatch has no `case {current}: return None`",
            "the new arm replaces it",
            "restore that arm first",
        )
    lines = text.splitlines(keepends=True)
    indent = lines[arm.line - 1].partition("case")[0]
    name = step_name(current)
    lines[arm.line - 1 : arm.end_line] = [
        f"{indent}case {current}:\n",
        f"{indent}    from {project}.migrations import {name}\n\n",
        f"{indent}    return {name}\n",
        f"{indent}case {current + 1}:\n",
        f"{indent}    return None\n",
    ]
    return "".join(lines)


def dispatch_from(text: str, minimum: int) -> str:
    """Return `upgrade.py` without the arms of versions below `minimum`."""
    lines = text.splitlines(keepends=True)
    for arm in reversed(_arms(text)):
        if arm.version < minimum:
            del lines[arm.line - 1 : arm.end_line]
    return "".join(lines)


def _arms(text: str) -> tuple[DispatchArm, ...]:
    try:
        return read_dispatch(text.encode()).arms
    except SyntaxProblemError as problem:
        raise GateError(
            f"the dispatch cannot be read: {problem.message}",
            "one of its arms must be changed",
            "correct upgrade.py first",
        ) from problem


def _replaced(pattern: str, replacement: str, text: str, name: str) -> str:
    text, count = re.subn(pattern, replacement, text)
    if count != 1:
        raise GateError(
            f"{name} is not set exactly once in version.py", "the gate changes it there", "restore version.py first"
        )
    return text
