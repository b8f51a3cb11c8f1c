"""The history of a project's frozen files in git.

Reads only. Where the history is missing or incomplete, it reports that instead of guessing. A project without findings
costs few processes of git, however long its history: the names, commits and contents that every check needs are asked
for together, and every answer is kept as long as the check runs.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ..project_tree import ProjectTree
from .builtin_instructions import DeclaredInstruction, readable_instructions
from .hashes import Hashes, is_release, parse, source_hash
from .syntax_tree import SyntaxProblemError
from .version_and_dispatch import Versions, read_versions

_BASES = ("origin/HEAD", "origin/main", "origin/master", "main", "master")


@dataclass(frozen=True, slots=True)
class RecordedHashes:
    """The recorded hashes as they were at one place in history."""

    where: str
    hashes: Hashes
    earlier: bool
    """True if it leads to the checked-out commit; this branch cannot know a later release of another branch."""


@dataclass(frozen=True, slots=True)
class RecordedRelease:
    """A release with its instructions about builtins."""

    where: str
    instructions: frozenset[DeclaredInstruction]
    earlier: bool

    def __or__(self, other: RecordedRelease) -> RecordedRelease:
        return RecordedRelease(self.where, self.instructions | other.instructions, self.earlier or other.earlier)


@dataclass(frozen=True, slots=True)
class _Clone:
    """The repository that the project is in."""

    shallow: bool
    tags: tuple[str, ...]
    """The tags of releases."""


@dataclass(frozen=True, slots=True)
class _Object:
    id: str
    content: bytes


@dataclass(frozen=True)
class GitHistory:
    tree: ProjectTree
    base: str | None = None
    """The branch that this one will be merged into; by default the main branch of origin."""
    _objects: dict[str, _Object | None] = field(default_factory=dict, init=False, repr=False)
    """Every object that was asked for, by its name; None if there is none."""
    _logs: dict[Path, list[str]] = field(default_factory=dict, init=False, repr=False)
    """Per file, the commits that changed it."""

    @cached_property
    def problem(self) -> str | None:
        """Return the reason why the history is incomplete; None if it is complete."""
        try:
            clone = self._clone
        except OSError:
            return "git is not installed"
        if clone is None:
            return "this is not a git repository, or git may not read it"
        if clone.shallow:
            return "this clone is shallow: it lacks earlier commits"
        if self.base is not None and self._resolve(self.base) is None:
            return f"there is no {self.base} to compare with"
        return None

    @cached_property
    def recorded(self) -> tuple[RecordedHashes, ...]:
        """Return the readable earlier versions of the hashes: of first-parent history, tags and the base branch."""
        if self.problem is not None:
            return ()
        names = [(f"commit {commit[:10]}", commit, True) for commit in self._commits(self.tree.hashes)]
        names += [(f"tag {tag}", tag, earlier) for tag, earlier in self._tags]
        if self.base_ref is not None:
            names.append((f"branch {self.base_ref}", self.base_ref, not self._forked_from(self.base_ref)))
        names.sort(key=lambda name: not name[2])
        blobs = self._contents([revision for _, revision, _ in names], self.tree.hashes)
        found: dict[bytes, RecordedHashes] = {}
        for (where, _, earlier), blob in zip(names, blobs, strict=True):
            hashes = _hashes(blob)
            if hashes is not None and blob is not None:
                found.setdefault(blob, RecordedHashes(where, hashes, earlier))
        return tuple(found.values())

    @cached_property
    def releases(self) -> dict[str, RecordedRelease]:
        """Return every release in the history, recorded or tagged."""
        found = [
            (number, RecordedRelease(recorded.where, recorded.hashes.instructions_of(number), recorded.earlier))
            for recorded in self.recorded
            for number in recorded.hashes.released
        ]
        tags = [(tag, earlier) for tag, earlier in self._tags if is_release(tag.removeprefix("v"))]
        sources = self._contents([tag for tag, _ in tags], self.tree.builtins)
        found += [
            (tag.removeprefix("v"), RecordedRelease(f"tag {tag}", readable_instructions(source), earlier))
            for (tag, earlier), source in zip(tags, sources, strict=True)
        ]
        releases: dict[str, RecordedRelease] = {}
        for number, release in found:
            releases[number] = releases[number] | release if number in releases else release
        return releases

    @cached_property
    def _tags(self) -> tuple[tuple[str, bool], ...]:
        """Return the tags of releases, each with True if it leads to the checked-out commit."""
        if self.problem is not None or self._clone is None or not self._clone.tags:
            return ()
        merged = set(_lines(_git(self.tree.root, "tag", "--list", "v*", "--merged", "HEAD")))
        return tuple((tag, tag in merged or not self._forked_from(tag)) for tag in self._clone.tags)

    def _forked_from(self, revision: str) -> bool:
        """Tell if a revision has commits of its own after the common ancestor, which this branch cannot know."""
        common = _git(self.tree.root, "merge-base", revision, "HEAD")
        return common is not None and common.decode().strip() != self._resolve(revision)

    @cached_property
    def base_ref(self) -> str | None:
        if self.problem is not None:
            return None
        head = self._resolve("HEAD")
        same_is_fine = self.base is not None or self._resolve("REBASE_HEAD") is not None
        for name in self._bases:
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
        """Return a file of the project as it was at a revision."""
        return next(iter(self._contents([revision], path)))

    def sources(self, path: Path) -> Iterator[bytes]:
        """Yield every earlier content of a file, newest first."""
        if self.problem is None:
            yield from (blob for blob in self._contents(self._commits(path), path) if blob is not None)

    def revision(self, path: Path, is_right: Callable[[bytes], bool]) -> str | None:
        """Return the newest commit, or HEAD, that has a right content of a file."""
        if self.problem is not None:
            return None
        revisions = ["HEAD", *self._commits(path)]
        contents = zip(revisions, self._contents(revisions, path), strict=True)
        found = next((revision for revision, content in contents if content is not None and is_right(content)), None)
        return found if found in {None, "HEAD"} else found[:10]

    def source_with_hash(self, path: Path, digest: str) -> bytes | None:
        """Return the earlier content of a file that has this hash."""
        return next((source for source in self.sources(path) if source_hash(source) == digest), None)

    @cached_property
    def _clone(self) -> _Clone | None:
        words = ("--is-inside-work-tree", "--is-shallow-repository", "--symbolic", "--tags=v*")
        inside, *facts = _lines(_git(self.tree.root, "rev-parse", *words)) or ["false"]
        return _Clone(facts[0] == "true", tuple(facts[1:])) if inside == "true" else None

    @property
    def _bases(self) -> tuple[str, ...]:
        """Return the names that the base branch may have."""
        return _BASES if self.base is None else (self.base,)

    @cached_property
    def _usual(self) -> list[str]:
        """Return the names of the objects that every check asks for."""
        tags = () if self._clone is None else self._clone.tags
        commits = ("HEAD", "REBASE_HEAD", *self._bases, *tags)
        hashes, builtins, fingerprints = map(self.tree.relative, (self.tree.hashes, self.tree.builtins, self._prints))
        return [
            *(f"{name}^{{commit}}" for name in commits),
            *(f"{name}:./{hashes}" for name in (*self._commits(self.tree.hashes), *tags, *self._bases)),
            *(f"{tag}:./{builtins}" for tag in tags),
            *(f"{name}:./{fingerprints}" for name in self._commits(self._prints)),
        ]

    @property
    def _prints(self) -> Path:
        return self.tree.fingerprints

    def _commits(self, path: Path) -> list[str]:
        """Return the first-parent commits that changed a file, newest first; those of the usual files together."""
        if path not in self._logs:
            usual = (self.tree.hashes, self.tree.fingerprints)
            self._logs.update(self._changes(usual if path in usual else (path,)))
        return self._logs[path]

    def _changes(self, paths: tuple[Path, ...]) -> dict[Path, list[str]]:
        names = {self.tree.relative(path): path for path in paths}
        words = ("--first-parent", "-m", "--no-renames", "--relative", "--name-only", "--format=commit %H")
        printed = _git(self.tree.root, "-c", "log.showRoot=true", "log", *words, "--", *names) or b""
        found: dict[Path, list[str]] = {path: [] for path in paths}
        commit = ""
        for line in printed.decode().splitlines():
            if line.startswith("commit "):
                commit = line.removeprefix("commit ")
            elif line in names:
                found[names[line]].append(commit)
        return found

    def _resolve(self, name: str) -> str | None:
        (found,) = self._found([f"{name}^{{commit}}"])
        return None if found is None else found.id

    def _contents(self, revisions: Iterable[str], path: Path) -> list[bytes | None]:
        found = self._found([f"{revision}:./{self.tree.relative(path)}" for revision in revisions])
        return [None if one is None else one.content for one in found]

    def _found(self, names: list[str]) -> list[_Object | None]:
        if any(name not in self._objects for name in names):
            wanted = [name for name in dict.fromkeys((*names, *self._usual)) if name not in self._objects]
            self._objects.update(zip(wanted, _read_objects(self.tree.root, wanted), strict=True))
        return [self._objects[name] for name in names]


def _read_objects(root: Path, names: list[str]) -> Iterator[_Object | None]:
    """Yield the object that each name means; None if there is none."""
    asked = [name for name in names if "\n" not in name]
    output = _git(root, "cat-file", "--batch", stdin="".join(f"{name}\n" for name in asked).encode()) or b""
    position = 0
    for name in names:
        end = output.find(b"\n", position) if "\n" not in name else -1
        if end < 0:
            yield None
            continue
        header = output[position:end].split(b" ")
        position = end + 1
        if header[-1].isdigit():
            size = int(header[-1])
            yield _Object(header[0].decode(), output[position : position + size])
            position += size + 1
        else:
            yield None


def _hashes(blob: bytes | None) -> Hashes | None:
    try:
        return None if blob is None else parse(blob.decode())
    except ValueError:
        return None


def _lines(output: bytes | None) -> list[str]:
    return (output or b"").decode().split()


def _git(root: Path, *arguments: str, stdin: bytes = b"") -> bytes | None:
    run = subprocess.run(["git", "-C", str(root), *arguments], input=stdin, capture_output=True, check=False)  # noqa: S603, S607 - fixed words, git from PATH
    return run.stdout if run.returncode == 0 else None
