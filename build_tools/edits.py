"""Changes to a project's files, made all at once or not at all.

Edits of `version.py` and `upgrade.py` are found by syntax tree and made in the text, so that comments stay.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from .syntax import Arm, SyntaxProblemError, Versions, read_dispatch, read_versions
from .tree import GateError, Tree, command, step_name


@dataclass(slots=True)
class Edits:
    """Files to write and files to remove."""

    writes: dict[Path, str] = field(default_factory=dict)
    removes: list[Path] = field(default_factory=list)

    def apply(self) -> None:
        """Write beside each file first, and put everything back if one of them then cannot take its place."""
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


def versions_of(tree: Tree) -> Versions:
    try:
        return read_versions(tree.version.read_bytes())
    except (OSError, SyntaxProblemError) as error:
        raise GateError(
            f"{tree.relative(tree.version)} cannot be read: {error}", "the versions stand in it", "mend it first"
        ) from error


def text_of(tree: Tree, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise GateError(f"{tree.relative(path)} cannot be read", str(error), command("check")) from error


def version_text(text: str, *, minimum: int, current: int) -> str:
    """`version.py` with other bounds."""
    numbers = ", ".join(str(version) for version in range(minimum, current + 1))
    text = _replaced(r"(?m)^(StashVersion\b[^=]*= *Literal\[)[^\]]*(\])", rf"\g<1>{numbers}\g<2>", text, "StashVersion")
    text = _replaced(r"(?m)^(MIN_STASH_VERSION\b[^=]*= *)\d+", rf"\g<1>{minimum}", text, "MIN_STASH_VERSION")
    return _replaced(r"(?m)^(STASH_VERSION\b[^=]*= *)\d+", rf"\g<1>{current}", text, "STASH_VERSION")


def dispatch_with_arm(text: str, project: str, current: int) -> str:
    """`upgrade.py` with an arm that leads on from `current`, and one for the version after it."""
    arm = next((arm for arm in _arms(text) if arm.version == current and not arm.guarded), None)
    if arm is None or arm.target is not None or not arm.readable:
        raise GateError(
            f"the dispatch has no `case {current}: return None`",
            "the new arm takes its place",
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
    """`upgrade.py` without the arms of versions below `minimum`."""
    lines = text.splitlines(keepends=True)
    for arm in reversed(_arms(text)):
        if arm.version < minimum:
            del lines[arm.line - 1 : arm.end_line]
    return "".join(lines)


def _arms(text: str) -> tuple[Arm, ...]:
    try:
        return read_dispatch(text.encode()).arms
    except SyntaxProblemError as problem:
        raise GateError(
            f"the dispatch cannot be read: {problem.message}", "an arm is to be changed in it", "mend upgrade.py first"
        ) from problem


def _replaced(pattern: str, replacement: str, text: str, name: str) -> str:
    text, count = re.subn(pattern, replacement, text)
    if count != 1:
        raise GateError(
            f"{name} does not stand once in version.py", "the gate sets it there", "restore version.py first"
        )
    return text
