"""The undo of one step: judged against a state, and committed on it.

It gives back the files of the collections that the step replaced, and removes the rows that it added elsewhere. Rows
that programs have written since stand in the way; those that the engine wrote itself do not: ids that were given out
stay given out, and builtins are created again by the next start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from catalog.engine.base.project import Project
from catalog.engine.log.data_files import file_collection
from catalog.engine.log.protocol import AppTxn, Commit, DataFile, LogState, Operation
from catalog.engine.migrate.plan import additions, touched
from catalog.engine.migrate.recorder import MigrationEvent, RunState, finished
from catalog.engine.migrate.row_types import RowType, registry_of, row_types
from catalog.engine.migrate.system_rows import SystemRows
from catalog.engine.migrate.undo_references import RestoredRows
from catalog.engine.stash.engine_rows import ALLOCATORS, BUILTIN_COLLECTIONS, ENGINE_COLLECTIONS, STORAGE, following
from catalog.engine.stash.recorded_types import record_rows, require_recorded
from catalog.engine.stash.registry import Collection, encode
from catalog.engine.stash.transaction import RowChange
from catalog.engine.stash.view import BaseFileCache, Overlay, View, changes, load_view
from catalog.errors import NotUndoableError, RetiredError

_UNFINALIZED = "unfinalized_shard"
_OF_BUILTINS = BUILTIN_COLLECTIONS | {STORAGE, ALLOCATORS, "config"}
"""The collections of a commit in which the engine migrates builtins."""


@dataclass(slots=True)
class StepUndo:
    """The undo of one step: its commit, and the collections that it gives back."""

    journal: SystemRows
    project: Project
    event: MigrationEvent
    state: LogState
    """The state that it is judged against: the newest, or the one that undoing later steps will leave."""
    step: Commit
    later: tuple[Commit, ...]
    """The commits since the step that changed rows; compaction does not, nor a later step that was undone."""
    before: LogState
    replaced: frozenset[str]
    """Collections that get back their earlier files."""
    added: frozenset[str]
    """Collections to which the step only added rows."""
    gone: dict[str, frozenset[bytes]] = field(default_factory=dict)
    """Keys of rows of the state that the undo of later steps removes."""

    @classmethod
    def of(
        cls, journal: SystemRows, project: Project, event: MigrationEvent, state: LogState | None = None
    ) -> StepUndo:
        step = _find(journal, event)
        module = project.migration_from(int(event.value.previous), project.build)
        actions = module.upgrade() if module is not None else []
        removed = {file_collection(path) for path in step.removed_paths}
        made = {file.collection for file in step.adds} - ENGINE_COLLECTIONS - {ALLOCATORS}
        added = made.intersection(additions(actions)) - removed
        replaced = frozenset((touched(actions) | removed | made) - additions(actions) - ENGINE_COLLECTIONS)
        before, since = (
            journal.log.state(step.version - 1),
            journal.log.commits(step.version + 1, journal.state.version),
        )
        later = tuple(commit for commit in since if commit.operation in {Operation.TRANSACTION, Operation.FENCE})
        return cls(journal, project, event, state or journal.state, step, later, before, replaced, frozenset(added))

    @property
    def previous(self) -> int:
        return int(self.event.value.previous)

    def require_undoable(self) -> None:
        """Raise if a program's rows would be lost, or a row would refer to one that does not exist.

        Also if the version before was made with other types than this build has for it: its rows could not be read.
        """
        require_recorded(self.project, self.journal.view("config"), self.previous)
        self._require_untouched()
        self._require_shards()
        if self.previous >= self.project.first_proto:
            self._require_references()

    def after(self) -> tuple[LogState, dict[str, frozenset[bytes]]]:
        """Return the state that the undo leaves, but for single rows, and the keys of those that it removes."""
        kept = {path: file for path, file in self.state.files.items() if file.collection not in self.replaced}
        earlier = {path: file for path, file in self.before.files.items() if file.collection in self.replaced}
        gone = {name: keys for name, keys in self.gone.items() if name not in self.replaced}
        for name in self.added:
            gone[name] = gone.get(name, frozenset()) | frozenset(self._added_rows(name))
        marks = {**self.state.app_txns, AppTxn.STASH_VERSION: self.previous}
        return replace(self.state, files={**kept, **earlier}, app_txns=marks), gone

    def commit(self) -> None:
        """Undo the step in one commit; raise ConflictError if the journal's state is no longer the newest."""
        journal, config = self.journal, self.journal.registry.named("config")
        records = [journal.change(key, None) for key, _ in record_rows(self.project, int(self.event.value.version))]
        rows = [
            journal.change(config.key_type(name="stash_version"), config.value_type(number=self.previous)),
            *(record for record in records if record.before is not None),
            finished(journal, self.event, RunState.UNDONE),
            *self._retractions(),
            *(self._kept_ids() if ALLOCATORS in self.replaced else self._returned_ids()),
            *self._condemned_shards(),
        ]
        journal.append(
            Operation.UNDO,
            rows,
            {AppTxn.STASH_VERSION: self.previous, AppTxn.RUNNING_STEP: 0},
            adds=self._files(self.before, besides=self.state),
            removes=self._files(self.state, besides=self.before),
            details={"step": self.event.value.name},
        )

    def _require_untouched(self) -> None:
        """Raise if a program wrote to what the step changed: those rows have no earlier form."""
        name = self.event.value.name
        for commit in self.later:
            for file in commit.adds:
                if file.collection in self.replaced and not _is_engines(commit, file):
                    raise NotUndoableError(name, f"{file.collection} was written to at ts {commit.version}")
        for collection in self.added:
            present, gone = self._view(self.state, collection), self.gone.get(collection, frozenset())
            for key, value in self._added_rows(collection).items():
                if key in gone or present.get(collection, key) != value:
                    raise NotUndoableError(name, f"rows that it added to {collection} were changed since")

    def _require_shards(self) -> None:
        """Raise if a shard that would be used again was given up since: its data are deleted, or about to be."""
        if STORAGE not in self.replaced:
            return
        given_up = {
            shard: commit.version
            for commit in self.later
            for key, _, _, diff in self._rows_of(commit, _UNFINALIZED)
            if diff > 0 and (shard := _shard(self.journal.registry.named(_UNFINALIZED), key))
        }
        for shard in self._shards_in_use(self.before) if given_up else ():
            if shard in given_up:
                reason = f"the data of a builtin were replaced at ts {given_up[shard]}, and the earlier ones deleted"
                raise NotUndoableError(self.event.value.name, reason)

    def _require_references(self) -> None:
        """Raise if a row would refer to a row that was deleted since the step, or that the step added."""
        later: dict[str, frozenset[bytes]] = {}
        for file in (file for commit in self.later for file in commit.adds if file.collection not in self.replaced):
            keys = (key for key, *_ in self.journal.log.rows(file))
            later[file.collection] = later.get(file.collection, frozenset()).union(keys)
        state, gone = self.after()
        back = RestoredRows(
            load_view(BaseFileCache(self.journal.log), state),
            registry_of(self.project, self.previous),
            self.project.constraints.at(self.previous),
            self.replaced,
            later,
            gone,
        )
        if (dangling := back.dangling()) is not None:
            raise NotUndoableError(self.event.value.name, f"{dangling}, which would not be there")

    def _files(self, state: LogState, *, besides: LogState) -> list[DataFile]:
        """Return the files of the replaced collections in a state, without those in both states."""
        return [f for path, f in state.files.items() if f.collection in self.replaced and path not in besides.files]

    def _added_rows(self, collection: str) -> Overlay:
        return {key: value for key, value, _, diff in self._rows_of(self.step, collection) if diff > 0}

    def _rows_of(self, commit: Commit, collection: str) -> list[tuple[bytes, bytes, int, int]]:
        return changes(self.journal.log, [file for file in commit.adds if file.collection == collection])

    def _view(self, state: LogState, collection: str) -> View:
        return load_view(BaseFileCache(self.journal.log), state, (collection,))

    def _retractions(self) -> Iterator[RowChange]:
        for name in sorted(self.added):
            for key, value in self._added_rows(name).items():
                if value is not None:
                    yield self._change(name, key, value, None)

    def _change(self, name: str, key: bytes, before: bytes | None, after: bytes | None) -> RowChange:
        """Return a change of a row of any version: only the name of its collection counts."""
        return RowChange(Collection(name, type(self.event.value), type(self.event.value)), key, before, after)

    def _returned_ids(self) -> Iterator[RowChange]:
        """Yield allocators as they were, unless ids were given out since: gaps are allowed, duplicates are not."""
        kind = row_types(self.project, self.previous).get(ALLOCATORS)
        if not isinstance(kind, Collection):
            return
        earlier, present = self._view(self.before, ALLOCATORS), self._view(self.state, ALLOCATORS)
        for key, value, _, diff in self._rows_of(self.step, ALLOCATORS):
            if diff > 0 and present.get(ALLOCATORS, key) == value:
                yield RowChange(kind, key, value, earlier.get(ALLOCATORS, key))

    def _kept_ids(self) -> Iterator[RowChange]:
        """Yield allocators that gave out ids since, in their earlier form: they do not go back."""
        kind = registry_of(self.project, int(self.event.value.version)).named(ALLOCATORS)
        moved = {key for commit in self.later for key, *_ in self._rows_of(commit, ALLOCATORS)}
        earlier, present = self._view(self.before, ALLOCATORS), self._view(self.state, ALLOCATORS)
        for key in sorted(moved):
            name: str = kind.key_type.FromString(key).name  # type: ignore[attr-defined]
            free = following(kind, present.get(ALLOCATORS, key))
            old_key, value = self._encoded(ALLOCATORS, {"name": name}, {"next_id": free})
            stored = earlier.get(ALLOCATORS, old_key)
            if stored is None or self._decoded(ALLOCATORS, old_key, stored).next_id < free:
                yield self._change(ALLOCATORS, old_key, stored, value)

    def _condemned_shards(self) -> Iterator[RowChange]:
        """Yield rows for the shards that are used no more, so that the next leader deletes their data."""
        if not {STORAGE, _UNFINALIZED} <= self.replaced:
            return
        left = self._shards_in_use(self.state) - self._shards_in_use(self.before)
        earlier, present = self._view(self.before, _UNFINALIZED), self._view(self.state, _UNFINALIZED)
        kind = registry_of(self.project, int(self.event.value.version)).named(_UNFINALIZED)
        left |= {_shard(kind, key) for key, _ in present.rows(_UNFINALIZED)}
        for shard in sorted(left):
            reason = f"{self.event.value.name} was undone"
            key, value = self._encoded(_UNFINALIZED, {"shard": shard}, {"reason": reason})
            if earlier.get(_UNFINALIZED, key) is None:
                yield self._change(_UNFINALIZED, key, None, value)

    def _shards_in_use(self, state: LogState) -> frozenset[str]:
        kind: RowType | None = row_types(self.project, state.app_txns[AppTxn.STASH_VERSION]).get(STORAGE)
        if kind is None:
            return frozenset()
        return frozenset(str(kind.decode(*row)[1].shard) for row in self._view(state, STORAGE).rows(STORAGE))

    def _decoded(self, collection: str, key: bytes, value: bytes) -> Any:  # noqa: ANN401 - a value of any version
        return row_types(self.project, self.previous)[collection].decode(key, value)[1]

    def _encoded(self, collection: str, key: Mapping[str, Any], value: Mapping[str, Any]) -> tuple[bytes, bytes]:
        """Return the bytes of a row as the version before the step has it."""
        kind: Any = row_types(self.project, self.previous)[collection]
        encoder = encode if isinstance(kind, Collection) else kind.module.encode
        return encoder(kind.key_type(**key)), encoder(kind.value_type(**value))


def _is_engines(commit: Commit, file: DataFile) -> bool:
    """Tell if the engine wrote a file by itself: it gave out ids, or migrated the builtins as a leader started."""
    written = {own.collection for own in commit.adds}
    return file.collection == ALLOCATORS or (
        written <= _OF_BUILTINS and not written.isdisjoint(BUILTIN_COLLECTIONS | {"config"})
    )


def _shard(kind: Collection, key: bytes) -> str:
    return str(kind.key_type.FromString(key).shard)  # type: ignore[attr-defined]


def _find(journal: SystemRows, event: MigrationEvent) -> Commit:
    """Return the commit of a step, searched backwards as far as commits are retained."""
    name, number = event.value.name, str(event.id)
    for version in range(journal.state.version, max(journal.state.frontier, 0), -1):
        try:
            commit = journal.log.commit(version)
        except RetiredError:
            break
        if commit.operation is Operation.MIGRATE and commit.details.get("event") == number:
            return commit
    raise NotUndoableError(name, "the files from before it are no longer retained")
