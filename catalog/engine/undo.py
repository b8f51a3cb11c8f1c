"""Going back: a step undone in one commit while its files are still there, and a dead step given up by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from catalog.engine.dangling import Return
from catalog.engine.events import Event, State, close_dead, closed, read_events
from catalog.engine.execution import ALLOCATORS
from catalog.engine.journal import Journal
from catalog.engine.plan import additions, touched
from catalog.engine.run import applied
from catalog.engine.types import ENGINE_COLLECTIONS, registry_of, row_types
from catalog.errors import ConflictError, NotUndoableError, RetiredError
from catalog.log.files import file_collection
from catalog.log.protocol import Commit, DataFile, Fence, Log, Mark, Operation
from catalog.log.protocol import State as LogState
from catalog.project import Project
from catalog.stash.collections import Collection, Registry
from catalog.stash.transaction import RowChange
from catalog.stash.view import Bases, Overlay, changes, load_view


def undo(journal: Journal, project: Project) -> Event:
    """Take the newest step back: the rows are those of before it, and so is the version."""
    while True:
        journal.refresh()
        close_dead(journal)
        event = steps_above(journal, journal.version - 1)[0]
        try:
            undone = _Undone.of(journal, project, event)
            undone.commit()
        except ConflictError:
            continue
        return event


def steps_above(journal: Journal, target: int) -> list[Event]:
    """The steps that led from a version to the present one, the newest first; refused if there were none."""
    events = applied(read_events(journal))
    versions = range(journal.version, target, -1)
    for version in versions:
        if version not in events:
            reason = "no step led to this version: the store was initialised with it"
            raise NotUndoableError(f"v{version - 1}_to_v{version}", reason)
    return [events[version] for version in versions]


def abort(log: Log, registry: Registry, holder: str, generation: int) -> list[Event]:
    """Give up every step that is said to run: whoever runs one is fenced, and it is an ERROR, in one commit."""
    while True:
        state = log.state(log.verify())
        before = state.fence
        fence = Fence(max(generation, before.generation), before.epoch + 1)
        journal = Journal(log, registry, fence, state)
        running = [event for event in read_events(journal) if event.state is State.RUNNING]
        if not running:
            return []
        token = registry.named("fence_token")
        value = token.value_type(deploy_generation=fence.generation, epoch=fence.epoch, holder=holder)
        rows = [closed(journal, event, State.ERROR, error=f"aborted by {holder}") for event in running]
        marks = {Mark.DEPLOY_GENERATION: fence.generation, Mark.EPOCH: fence.epoch, Mark.RUNNING_STEP: 0}
        try:
            journal.append(Operation.FENCE, [journal.change(token.key_type(scope="store"), value), *rows], marks)
        except ConflictError:
            continue
        return running


@dataclass(slots=True)
class _Undone:
    """What undoing a step comes to."""

    journal: Journal
    event: Event
    step: Commit
    before: LogState
    replaced: frozenset[str]
    """Collections whose files are given back as they were."""
    added: frozenset[str]
    """Collections to which the step only added rows."""
    allocators: Collection | None

    @classmethod
    def of(cls, journal: Journal, project: Project, event: Event) -> _Undone:
        step = _find(journal, event)
        before = journal.log.state(step.version - 1)
        module = project.migration_from(int(event.value.previous), project.build)
        actions = module.upgrade() if module is not None else []
        removed = {file_collection(path) for path in step.removed_paths}
        made = {file.collection for file in step.adds} - ENGINE_COLLECTIONS - {ALLOCATORS}
        added = made.intersection(additions(actions)) - removed
        replaced = frozenset((touched(actions) | removed | made) - additions(actions) - ENGINE_COLLECTIONS)
        kind = row_types(project, int(event.value.previous)).get(ALLOCATORS)
        allocators = kind if isinstance(kind, Collection) and ALLOCATORS not in replaced else None
        undone = cls(journal, event, step, before, replaced, frozenset(added), allocators)
        undone.require_untouched()
        if int(event.value.previous) >= project.first_proto:
            undone.require_references(project)
        return undone

    def require_untouched(self) -> None:
        """Refuse if a later write touched what the step changed: those rows have no earlier form."""
        name = self.event.value.name
        for commit in self._later():
            for file in commit.adds:
                if file.collection in self.replaced:
                    raise NotUndoableError(name, f"{file.collection} was written to at ts {commit.version}")
        for collection in self.added:
            present = load_view(Bases(self.journal.log), self.journal.state, (collection,))
            for key, value in self._added_rows(collection).items():
                if present.get(collection, key) != value:
                    raise NotUndoableError(name, f"rows that it added to {collection} were changed since")

    def require_references(self, project: Project) -> None:
        """Refuse if a row would refer to nothing, to what was deleted since the step or to what the step made."""
        later: dict[str, frozenset[bytes]] = {}
        for file in (file for commit in self._later() for file in commit.adds):
            keys = self.journal.log.read(file, ["key"])["key"].to_pylist()
            later[file.collection] = later.get(file.collection, frozenset()).union(keys)
        kept = {path: file for path, file in self.journal.state.files.items() if file.collection not in self.replaced}
        earlier = {path: file for path, file in self.before.files.items() if file.collection in self.replaced}
        back = Return(
            load_view(Bases(self.journal.log), replace(self.journal.state, files={**kept, **earlier})),
            registry_of(project, int(self.event.value.previous)),
            project.constraints.at(int(self.event.value.previous)),
            self.replaced,
            later,
            {name: frozenset(self._added_rows(name)) for name in self.added},
        )
        if (dangling := back.dangling()) is not None:
            raise NotUndoableError(self.event.value.name, f"{dangling}, which would not be there")

    def _later(self) -> Iterator[Commit]:
        """The commits since the step that changed rows; a consolidation does not, nor a later step that was undone."""
        for commit in self.journal.log.commits(self.step.version + 1, self.journal.state.version):
            if commit.operation in {Operation.TRANSACTION, Operation.FENCE}:
                yield commit

    def commit(self) -> None:
        journal, previous = self.journal, int(self.event.value.previous)
        config = journal.registry.named("config")
        rows = [
            journal.change(config.key_type(name="stash_version"), config.value_type(number=previous)),
            closed(journal, self.event, State.UNDONE),
            *self._retractions(),
            *self._allocations(),
        ]
        journal.append(
            Operation.UNDO,
            rows,
            {Mark.STASH_VERSION: previous, Mark.RUNNING_STEP: 0},
            adds=self._files(self.before),
            removes=self._files(journal.state),
            details={"step": self.event.value.name},
        )

    def _files(self, state: LogState) -> list[DataFile]:
        """The files of the replaced collections, but for those that are in both states."""
        other = (self.journal.state if state is self.before else self.before).files
        return [f for path, f in state.files.items() if f.collection in self.replaced and path not in other]

    def _added_rows(self, collection: str) -> Overlay:
        files = [file for file in self.step.adds if file.collection == collection]
        return {key: value for key, value, _, diff in changes(self.journal.log, files) if diff > 0}

    def _retractions(self) -> Iterator[RowChange]:
        for name in sorted(self.added):
            stand_in = Collection(name, type(self.event.value), type(self.event.value))
            for key, value in self._added_rows(name).items():
                if value is not None:
                    yield RowChange(stand_in, key, value, None)

    def _allocations(self) -> Iterator[RowChange]:
        """Allocators as they were, unless ids were given out since: gaps are allowed, doubles are not."""
        if self.allocators is None:
            return
        files = [file for file in self.step.adds if file.collection == ALLOCATORS]
        earlier = load_view(Bases(self.journal.log), self.before, (ALLOCATORS,))
        present = load_view(Bases(self.journal.log), self.journal.state, (ALLOCATORS,))
        for key, value, _, diff in changes(self.journal.log, files):
            if diff > 0 and present.get(ALLOCATORS, key) == value:
                yield RowChange(self.allocators, key, value, earlier.get(ALLOCATORS, key))


def _find(journal: Journal, event: Event) -> Commit:
    """The commit of a step, looked for backwards as far as commits are retained."""
    name, number = event.value.name, str(event.id)
    for version in range(journal.state.version, max(journal.state.frontier, 0), -1):
        try:
            commit = journal.log.commit(version)
        except RetiredError:
            break
        if commit.operation is Operation.MIGRATE and commit.details.get("event") == number:
            return commit
    raise NotUndoableError(name, "the files from before it are no longer retained")
