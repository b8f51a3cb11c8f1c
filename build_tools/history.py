"""What git remembers of a project's frozen files.

Reads only. Where there is no history, or not all of it, says so instead of guessing.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .hashes import Hashes, is_release, parse, source_hash
from .instructions import Instruction, read_instructions
from .syntax import SyntaxProblemError, Versions, read_versions
from .tree import Tree

_BASES = ("origin/HEAD", "origin/main", "origin/master", "main", "master")


@dataclass(frozen=True, slots=True)
class Recorded:
    """The recorded hashes as they were at one place in history."""

    where: str
    hashes: Hashes
    earlier: bool
    """Whether it leads to the checked-out commit; a release made elsewhere since is not this branch's to know."""


@dataclass(frozen=True, slots=True)
class Release:
    """What is known of a release and of the instructions about builtins that it had."""

    where: str
    instructions: frozenset[Instruction]
    earlier: bool

    def __or__(self, other: Release) -> Release:
        return Release(self.where, self.instructions | other.instructions, self.earlier or other.earlier)


@dataclass(frozen=True)
class History:
    tree: Tree
    base: str | None = None
    """The branch that this one will be merged into; found if not given."""

    @cached_property
    def problem(self) -> str | None:
        """Why the history is not all there, or nothing."""
        try:
            top = _git(self.tree.root, "rev-parse", "--show-toplevel")
        except OSError:
            return "git is not installed"
        if top is None:
            return "this is no git repository, or git may not read it"
        if _git(self.tree.root, "rev-parse", "--is-shallow-repository") == b"true\n":
            return "this clone is shallow: earlier commits are not in it"
        if self.base is not None and self._resolve(self.base) is None:
            return f"there is no {self.base} to compare with"
        return None

    @cached_property
    def recorded(self) -> tuple[Recorded, ...]:
        """Each earlier version of the hashes: first-parent history, tags, base branch; unreadable ones are left out."""
        if self.problem is not None:
            return ()
        names = [(f"commit {commit[:10]}", commit, True) for commit in self._commits(self.tree.hashes)]
        names += [(f"tag {tag}", tag, earlier) for tag, earlier in self._tags]
        if self.base_ref is not None:
            names.append((f"branch {self.base_ref}", self.base_ref, not self._forked_from(self.base_ref)))
        names.sort(key=lambda name: not name[2])
        blobs = self._blobs([revision for _, revision, _ in names], self.tree.hashes)
        found: dict[bytes, Recorded] = {}
        for (where, _, earlier), blob in zip(names, blobs, strict=True):
            hashes = _hashes(blob)
            if hashes is not None and blob is not None:
                found.setdefault(blob, Recorded(where, hashes, earlier))
        return tuple(found.values())

    @cached_property
    def releases(self) -> dict[str, Release]:
        """Every release that history knows of, recorded or tagged."""
        found = [
            (number, Release(recorded.where, recorded.hashes.instructions_of(number), recorded.earlier))
            for recorded in self.recorded
            for number in recorded.hashes.released
        ]
        tags = [(tag, earlier) for tag, earlier in self._tags if is_release(tag.removeprefix("v"))]
        sources = self._blobs([tag for tag, _ in tags], self.tree.builtins)
        found += [
            (tag.removeprefix("v"), Release(f"tag {tag}", _instructions(source), earlier))
            for (tag, earlier), source in zip(tags, sources, strict=True)
        ]
        releases: dict[str, Release] = {}
        for number, release in found:
            releases[number] = releases[number] | release if number in releases else release
        return releases

    @cached_property
    def _tags(self) -> tuple[tuple[str, bool], ...]:
        """The tags of releases, each with whether it leads to the checked-out commit."""
        if self.problem is not None:
            return ()
        merged = set(_lines(_git(self.tree.root, "tag", "--list", "v*", "--merged", "HEAD")))
        tags = _lines(_git(self.tree.root, "tag", "--list", "v*"))
        return tuple((tag, tag in merged or not self._forked_from(tag)) for tag in tags)

    def _forked_from(self, revision: str) -> bool:
        """Whether a revision and this one went on from a common commit, so that it may know what this one cannot."""
        common = _git(self.tree.root, "merge-base", revision, "HEAD")
        return common is not None and common.decode().strip() != self._resolve(revision)

    @cached_property
    def base_ref(self) -> str | None:
        if self.problem is not None:
            return None
        head = self._resolve("HEAD")
        same_is_fine = self.base is not None or self._resolve("REBASE_HEAD") is not None
        for name in (self.base,) if self.base is not None else _BASES:
            commit = self._resolve(name)
            if commit is not None and (commit != head or same_is_fine):
                full = _git(self.tree.root, "rev-parse", "--abbrev-ref", name)
                return (full or b"").decode().strip() or name
        return None

    @cached_property
    def base_hashes(self) -> Hashes | None:
        return None if self.base_ref is None else _hashes(self.show(self.base_ref, self.tree.hashes))

    @property
    def base_versions(self) -> Versions | None:
        source = None if self.base_ref is None else self.show(self.base_ref, self.tree.version)
        try:
            return None if source is None else read_versions(source)
        except SyntaxProblemError:
            return None

    def show(self, revision: str, path: Path) -> bytes | None:
        """A file of the project as it was at a revision."""
        return next(iter(self._blobs([revision], path)))

    def sources(self, path: Path) -> Iterator[bytes]:
        """Every earlier content of a file, newest first."""
        if self.problem is None:
            yield from (blob for blob in self._blobs(self._commits(path), path) if blob is not None)

    def revision(self, path: Path, is_right: Callable[[bytes], bool]) -> str | None:
        """Where to find the newest content of a file that was right: HEAD, or an earlier commit."""
        if self.problem is not None:
            return None
        revisions = ["HEAD", *self._commits(path)]
        contents = zip(revisions, self._blobs(revisions, path), strict=True)
        found = next((revision for revision, content in contents if content is not None and is_right(content)), None)
        return found if found in {None, "HEAD"} else found[:10]

    def source_with_hash(self, path: Path, digest: str) -> bytes | None:
        """The earlier content of a file that has this hash."""
        return next((source for source in self.sources(path) if source_hash(source) == digest), None)

    def _commits(self, path: Path) -> list[str]:
        return _lines(_git(self.tree.root, "log", "--first-parent", "--format=%H", "--", self.tree.relative(path)))

    def _resolve(self, name: str) -> str | None:
        found = _git(self.tree.root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        return None if found is None else found.decode().strip()

    def _blobs(self, revisions: Iterable[str], path: Path) -> list[bytes | None]:
        wanted = "".join(f"{revision}:./{self.tree.relative(path)}\n" for revision in revisions)
        output = (_git(self.tree.root, "cat-file", "--batch", stdin=wanted.encode()) if wanted else b"") or b""
        blobs: list[bytes | None] = []
        position = 0
        for _ in wanted.splitlines():
            end = output.index(b"\n", position)
            header = output[position:end].split(b" ")
            position = end + 1
            if header[-1].isdigit():
                size = int(header[-1])
                blobs.append(output[position : position + size])
                position += size + 1
            else:
                blobs.append(None)
        return blobs


def _hashes(blob: bytes | None) -> Hashes | None:
    try:
        return None if blob is None else parse(blob.decode())
    except ValueError:
        return None


def _instructions(source: bytes | None) -> frozenset[Instruction]:
    """Those that can be read."""
    try:
        return frozenset() if source is None else read_instructions(source).all
    except SyntaxProblemError:
        return frozenset()


def _lines(output: bytes | None) -> list[str]:
    return (output or b"").decode().split()


def _git(root: Path, *arguments: str, stdin: bytes = b"") -> bytes | None:
    run = subprocess.run(["git", "-C", str(root), *arguments], input=stdin, capture_output=True, check=False)  # noqa: S603, S607 - fixed words, git from PATH
    return run.stdout if run.returncode == 0 else None
