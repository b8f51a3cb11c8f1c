"""The plan of a step as plain data: read from its migration and from the log, before anything runs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from catalog.actions import Action
from catalog.engine.base.project import MigrationModule, Project
from catalog.engine.log.protocol import DataFile, FileKind, Log, LogState
from catalog.engine.migrate.migration_errors import migration_errors
from catalog.errors import UnwrittenStepError

RowCount = Callable[[Sequence[DataFile]], int]
"""A function that counts the rows of a collection's files."""


@dataclass(frozen=True, slots=True)
class LiveRows:
    """Counts live rows; reads each file of a tail once, and no base."""

    log: Log
    _known: dict[str, int] = field(default_factory=dict)

    def __call__(self, files: Sequence[DataFile]) -> int:
        return sum(file.rows if file.kind is FileKind.BASE else self._of_tail(file) for file in files)

    def _of_tail(self, file: DataFile) -> int:
        if file.path not in self._known:
            from catalog.engine.stash.view import live_rows  # noqa: PLC0415 - a store without a tail needs no Arrow

            self._known[file.path] = live_rows(self.log, [file])
        return self._known[file.path]


def count_entries(files: Sequence[DataFile]) -> int:
    """Count stored entries: live rows, and what the tail adds and takes away. Reads nothing."""
    return sum(file.rows for file in files)


@dataclass(frozen=True, slots=True)
class CollectionPlan:
    """The plan of one collection, and its size."""

    collection: str
    form: str
    files: int
    rows: int
    """Live rows, in every plan that is shown; in one that was made without `LiveRows`, at most that many."""
    size: int
    """Of the files, in bytes."""
    replaces: bool = False
    """True if its files are replaced."""


@dataclass(frozen=True, slots=True)
class StepPosition:
    number: int = 1
    """From 1."""
    count: int = 1
    """Steps of the upgrade."""
    rows_to_come: int = 0
    """Rows that the later steps rewrite, as they were when the upgrade began."""

    def __str__(self) -> str:
        return f"step {self.number} of {self.count}"


@dataclass(frozen=True, slots=True)
class StepPlan:
    """The plan of one step.

    >>> [step.name for step in plan(project, state, 20, 22)]
    ['v20_to_v21', 'v21_to_v22']
    """

    name: str
    previous: int
    version: int
    summary: str
    checksum: str
    actions: tuple[Action, ...]
    works: tuple[CollectionPlan, ...]
    reason: str = ""
    """The reason why no row changes; empty if rows do."""
    position: StepPosition = StepPosition()

    @property
    def rewrites(self) -> frozenset[str]:
        """The collections whose files are replaced."""
        return frozenset(name for action in self.actions for name in action.writes)

    @property
    def adds(self) -> frozenset[str]:
        """The collections that gain rows."""
        return frozenset(name for action in self.actions for name in action.adds)

    @property
    def drops(self) -> frozenset[str]:
        """The collections that go with all their rows."""
        return frozenset(name for action in self.actions for name in action.drops)

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
        """True if there are rows to write."""
        return any(action.needs_spark for action in self.actions)


def plan(project: Project, state: LogState, version: int, until: int, rows: RowCount = count_entries) -> list[StepPlan]:
    """Return the steps from a version to another; the files of later steps are those of now."""
    return [plan_step(project, state, number, rows) for number in range(version, until)]


def plan_step(project: Project, state: LogState, version: int, rows: RowCount = count_entries) -> StepPlan:
    """Return the plan of the step that leads on from a version."""
    return describe(migration_of(project, version), state, version, rows)


def migration_of(project: Project, version: int) -> MigrationModule:
    """Return the migration that leads on from a version that is not the newest."""
    name = f"v{version}_to_v{version + 1}"
    with migration_errors(name):
        module = project.migration_from(version, project.build)
    if module is None:
        raise UnwrittenStepError(name, "the dispatch has no migration for this version")
    return module


def positions(steps: Sequence[StepPlan]) -> list[StepPosition]:
    rows = [step.rows_to_rewrite for step in steps]
    return [StepPosition(number, len(rows), sum(rows[number:])) for number in range(1, len(rows) + 1)]


def describe(module: MigrationModule, state: LogState, version: int, rows: RowCount = count_entries) -> StepPlan:
    """Return the plan of a migration; raise if its actions cannot be run."""
    name = module.__name__.rpartition(".")[2]
    with migration_errors(name):
        actions = tuple(module.upgrade())
        _require_runnable(name, actions)
    return StepPlan(
        name=name,
        previous=version,
        version=version + 1,
        summary=(module.__doc__ or "").strip().partition("\n")[0],
        checksum=checksum(module),
        actions=actions,
        works=tuple(_works(actions, state, rows)),
        reason=next((action.reason for action in actions if action.reason), ""),
    )


def checksum(module: MigrationModule) -> str:
    """Return the hash of a migration's source, line ends aside; the same that the gate records."""
    path: Any = getattr(module, "__file__", None)
    source = Path(path).read_bytes() if path else module.__name__.encode()
    normal = source.replace(b"\r\n", b"\n")
    return f"sha256:{hashlib.sha256(normal).hexdigest()}"


def known_checksums(project: Project, module: MigrationModule) -> frozenset[str]:
    """Return the checksums under which a migration may have been applied: its own, and those before it was restyled."""
    restyled: Any = getattr(import_module(f"{project.name}.generated"), "RESTYLED", {})
    return frozenset({checksum(module), *restyled.get(module.__name__.rpartition(".")[2], ())})


def touched(actions: Iterable[Action]) -> frozenset[str]:
    """Return every collection whose types or rows actions change."""
    return frozenset(name for action in actions for name in action.changes)


def additions(actions: Iterable[Action]) -> frozenset[str]:
    """Return the collections to which actions add rows, and do nothing else."""
    added = {name for action in actions for name in action.adds}
    return frozenset(added.difference(*({*action.changes}.difference(action.adds) for action in actions)))


def _works(actions: tuple[Action, ...], state: LogState, rows: RowCount) -> Iterator[CollectionPlan]:
    for action in actions:
        for name in action.changes:
            files = state.files_of(name)
            size, replaces = sum(file.size for file in files), name in action.writes and name not in action.adds
            yield CollectionPlan(name, action.form_for(name), len(files), rows(files), size, replaces)


def _require_runnable(step: str, actions: tuple[Action, ...]) -> None:
    """Raise if an action is undecided, or if two replace the rows of a collection; several may delete rows of one."""
    seen: dict[str, Action] = {}
    for action in actions:
        if not action.is_decided:
            raise UnwrittenStepError(step, f"it does not say yet what happens to {', '.join(action.changes)}")
        for name in action.writes:
            other = seen.setdefault(name, action)
            if other is not action and not (action.combines and type(other) is type(action)):
                two = f"{other.describe()} and {action.describe()}"
                raise UnwrittenStepError(step, f"two actions replace the rows of {name}: {two}")
