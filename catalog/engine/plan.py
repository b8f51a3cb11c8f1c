"""What a step will do, as plain data: read from its module and from the log, before anything runs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from catalog.actions import (
    Action,
    Columnar,
    Create,
    Delete,
    Frame,
    Insert,
    NoChange,
    PerRow,
    Retire,
    Undecided,
    WireCompatible,
)
from catalog.errors import UnwrittenStepError
from catalog.log.protocol import State
from catalog.project import MigrationModule, Project

FORMS = {
    WireCompatible: "wire compatible",
    Columnar: "columnar",
    PerRow: "per row",
    Frame: "frame",
    Insert: "insert",
    Delete: "delete",
    Create: "create",
    Retire: "retire",
    NoChange: "no change",
    Undecided: "undecided",
}


@dataclass(frozen=True, slots=True)
class Work:
    """What happens to one collection, and how much of it there is."""

    collection: str
    form: str
    files: int
    rows: int
    """Stored rows: live ones, and what the tail adds and takes away."""
    size: int
    """Of the files, in bytes."""


@dataclass(frozen=True, slots=True)
class StepPlan:
    name: str
    previous: int
    version: int
    summary: str
    checksum: str
    actions: tuple[Action, ...]
    works: tuple[Work, ...]
    reason: str = ""
    """Why nothing happens, where nothing does."""

    @property
    def rewrites(self) -> frozenset[str]:
        """The collections whose files are replaced."""
        named = {work.collection for work in self.works if work.form in {"columnar", "per row", "delete"}}
        return frozenset(named.union(*(action.writes for action in self.actions if isinstance(action, Frame))))

    @property
    def bytes_to_rewrite(self) -> int:
        sizes = {work.collection: work.size for work in self.works}
        return sum(sizes[collection] for collection in self.rewrites)

    @property
    def rows_to_rewrite(self) -> int:
        rows = {work.collection: work.rows for work in self.works}
        return sum(rows[collection] for collection in self.rewrites)

    @property
    def needs_spark(self) -> bool:
        """Whether there are rows to be rewritten; a step that only inserts into nothing needs none either."""
        moving = (Columnar, PerRow, Delete, Frame, Insert)
        return any(isinstance(action, moving) for action in self.actions)


def plan(project: Project, state: State, version: int, until: int) -> list[StepPlan]:
    """The steps from a version to another; the files of later steps are told as they are now."""
    return [plan_step(project, state, number) for number in range(version, until)]


def plan_step(project: Project, state: State, version: int) -> StepPlan:
    return describe(migration_of(project, version), state, version)


def migration_of(project: Project, version: int) -> MigrationModule:
    """The migration that leads on from a version that is not the newest."""
    module = project.migration_from(version, project.build)
    if module is None:
        raise UnwrittenStepError(f"v{version}_to_v{version + 1}", "the dispatch has no migration for this version")
    return module


def describe(module: MigrationModule, state: State, version: int) -> StepPlan:
    name = module.__name__.rpartition(".")[2]
    actions = tuple(module.upgrade())
    for action in actions:
        if isinstance(action, Undecided):
            raise UnwrittenStepError(name, f"nobody has said what happens to {action.collection}")
    _require_single(name, actions)
    return StepPlan(
        name=name,
        previous=version,
        version=version + 1,
        summary=(module.__doc__ or "").strip().partition("\n")[0],
        checksum=checksum(module),
        actions=actions,
        works=tuple(_works(actions, state)),
        reason=next((action.reason for action in actions if isinstance(action, NoChange)), ""),
    )


def checksum(module: MigrationModule) -> str:
    """The hash of a migration's source, line ends aside; the same that the gate records."""
    path: Any = getattr(module, "__file__", None)
    source = Path(path).read_bytes() if path else module.__name__.encode()
    normal = source.replace(b"\r\n", b"\n")
    return f"sha256:{hashlib.sha256(normal).hexdigest()}"


def known_checksums(project: Project, module: MigrationModule) -> frozenset[str]:
    """The checksums under which a migration may have been applied: its own, and those of before it was restyled."""
    restyled: Any = getattr(import_module(f"{project.name}.generated"), "RESTYLED", {})
    return frozenset({checksum(module), *restyled.get(module.__name__.rpartition(".")[2], ())})


def touched(actions: Iterable[Action]) -> frozenset[str]:
    """Every collection that actions name as theirs: whose types or rows they change."""
    return frozenset(collection for action in actions for collection in _named(action))


def additions(actions: Iterable[Action]) -> frozenset[str]:
    """The collections to which actions add rows, and do nothing else."""
    added = {collection for action in actions for collection in added_by(action)}
    return frozenset(added.difference(*({*_named(action)}.difference(added_by(action)) for action in actions)))


def added_by(action: Action) -> tuple[str, ...]:
    """The collections to which an action adds rows, whatever else happens to them."""
    match action:
        case PerRow() | Frame():
            return action.into
        case Insert():
            return (action.collection,)
        case _:
            return ()


def _named(action: Action) -> tuple[str, ...]:
    match action:
        case PerRow():
            return (action.collection, *action.into)
        case Frame():
            return (*action.writes, *action.into)
        case NoChange():
            return ()
        case _:
            return (action.collection,)


def _works(actions: tuple[Action, ...], state: State) -> Iterator[Work]:
    for action in actions:
        for collection in _named(action):
            files = [file for file in state.files.values() if file.collection == collection]
            rows, size = sum(file.rows for file in files), sum(file.size for file in files)
            yield Work(collection, _form(action, collection), len(files), rows, size)


def _form(action: Action, collection: str) -> str:
    if isinstance(action, PerRow | Frame) and collection in action.into:
        return "insert"
    return FORMS[type(action)]


def _require_single(name: str, actions: tuple[Action, ...]) -> None:
    """Refuse two actions that would both replace the rows of a collection."""
    seen: set[str] = set()
    for action in actions:
        owned = action.writes if isinstance(action, Frame) else ()
        if isinstance(action, Columnar | PerRow):
            owned = (action.collection,)
        if isinstance(action, Delete):
            owned = (action.collection,) if action.collection in seen else ()
        for collection in owned:
            if collection in seen:
                raise UnwrittenStepError(name, f"two actions replace the rows of {collection}")
            seen.add(collection)
