"""A consistent copy of a store: the rows of its newest state, in files of their own, at another place.

The source may be written to meanwhile, and is never written to by this: no fence, no heartbeat, not a byte. Rows are
copied as bytes, so a store of any version can be copied, and at most one file's worth of rows is in memory at a time.
`store.json` is written last: what an interrupted copy leaves never looks like a store.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pyarrow as pa

from catalog.builtin.records import STORAGE
from catalog.errors import (
    CatalogError,
    CopyTargetError,
    NotInitializedError,
    RetiredError,
    ShardFinalizedError,
    StoreFullError,
)
from catalog.log.delta import DeltaLog
from catalog.log.protocol import Change, DataFile, FileKind, Log, Mark, Operation, State
from catalog.log.storage import SHARDS, Storage, each, open_storage
from catalog.project import Project
from catalog.shard.copying import copy_shard
from catalog.shard.shard import shard_ids, shard_uri
from catalog.stash.belongings import STASH, find_belongings
from catalog.stash.consolidation import base_tables
from catalog.stash.heartbeat import release
from catalog.stash.identity import PATH, is_unfinished, make_identity, require_identity
from catalog.stash.view import Bases, load_view

_ATTEMPTS_MAX = 10
"""A source that retires what is being read more often than this retains nothing for as long as a copy takes."""
_ROOM = 1.1
"""Of the size of the source's files: rows that are put together otherwise are compressed otherwise."""
_ROOM_REWRITTEN = 4.0
"""As above, of texts that are made up: nothing in them repeats, and they are hardly compressed."""
_LISTED_MAX, _NAMED_MAX = 1000, 3

Rewrite = Callable[[int, str, pa.Table], pa.Table]
"""Makes other rows of those of a version and a collection, in the order of their keys; none is about a shard."""
Told = Callable[[int, int], None]
"""Told how many rows are written, and how many the files that are copied hold; both begin anew if the copy does."""


@dataclass(frozen=True, slots=True)
class Copied:
    source: str
    target: str
    id: str
    copy_of: str
    version: int
    ts: int
    """Of the source: its rows at this ts are those of the copy."""
    rows: int
    files: int
    bytes: int


Origin = tuple[Storage, Mapping[str, str]]
"""Where a store is, and its storage options."""


def copy_store(  # noqa: PLR0913 - two places with their options, and what happens on the way
    project: Project,
    source: Storage,
    source_options: Mapping[str, str],
    target: Storage,
    target_options: Mapping[str, str],
    *,
    progress: Told | None = None,
    rewrite: Rewrite | None = None,
) -> Copied:
    """Copy the newest state of a store to an empty place: as it is with its shards, or its rows alone and rewritten.

    If what is copied is retired meanwhile, the copy begins again with the newest state; if it fails, whatever it wrote
    is removed.
    """
    identity = require_identity(source, project.name)
    log = DeltaLog(f"{source.uri}/{STASH}", source_options)
    _require_apart(source, source_options, target, target_options)
    _require_empty(target)
    state = _newest(log)
    _require_room(target, state, _ROOM if rewrite is None else _ROOM_REWRITTEN)
    copy, txid = DeltaLog(f"{target.uri}/{STASH}", target_options), uuid.uuid4().hex
    shards = Shards(source, source_options, target, target_options)
    try:
        _begin(copy, txid, target)
        state, files = _copy_newest(log, copy, None if rewrite else shards, state, _Rows(progress, rewrite))
        made = make_identity(target, project.name, identity.id)
    except BaseException as error:
        if _made_by(copy) in {txid, None}:
            _clear(target, target_options, error)
        raise
    release(target, state.fence, made.id)
    return Copied(
        source=source.uri,
        target=target.uri,
        id=made.id,
        copy_of=identity.id,
        version=state.marks[Mark.STASH_VERSION],
        ts=state.version,
        rows=sum(file.rows for file in files),
        files=len(files),
        bytes=sum(file.size for file in files),
    )


def scratch_copy(
    project: Project, source: Log, state: State, folder: Path, shards_of: Origin | None = None
) -> DeltaLog:
    """A copy of a state in an empty folder of this process's own, which it leads under the same fence.

    With the shards of the store at a place and its options, or without any.
    """
    copy, target = DeltaLog(f"{folder}/{STASH}", {}), open_storage(str(folder), {})
    copy.create(uuid.uuid4().hex)
    if shards_of is not None:
        Shards(*shards_of, target, {}).copy(source, state)
    copy_state(source, state, copy)
    make_identity(target, project.name)
    return copy


@dataclass(frozen=True, slots=True)
class Shards:
    """The shards of a store on their way to another place."""

    source: Storage
    source_options: Mapping[str, str]
    target: Storage
    target_options: Mapping[str, str]

    def copy(self, log: Log, state: State) -> None:
        """Copy every shard that an object of a state uses, over what an earlier attempt left. Raises RetiredError if
        one was given up since: a newer state does not use it.
        """
        left = open_storage(f"{self.target.uri}/{SHARDS}", self.target_options)
        each(left, left.delete, [entry.path for entry in left.entries()])
        for shard in sorted(self._used(log, state)):
            try:
                copy_shard(
                    DeltaLog(shard_uri(self.source.uri, shard), self.source_options),
                    DeltaLog(shard_uri(self.target.uri, shard), self.target_options),
                    state.fence,
                )
            except ShardFinalizedError as gone:
                raise RetiredError(log.uri, state.version, log.head(state.version)) from gone

    def _used(self, log: Log, state: State) -> frozenset[str]:
        """Those whose id is in a row: nothing else is like it, so that rows of any version tell of it."""
        present = shard_ids(self.source)
        values = (
            batch["value"].buffers()[2].to_pybytes()
            for table in load_view(Bases(log), state, [STORAGE]).tables(STORAGE)
            for batch in table.to_batches()
        )
        return frozenset(shard for value in values for shard in present if shard.encode() in value)


def copy_state(
    source: Log, state: State, target: Log, progress: Told | None = None, rewrite: Rewrite | None = None
) -> tuple[DataFile, ...]:
    """Put the rows and marks of a state into an empty log, whose history begins with them; answer its files."""
    total, rows = sum(file.rows for file in state.files.values()), 0
    bases, files = Bases(source), list[DataFile]()
    try:
        for name in sorted({file.collection for file in state.files.values()}):
            for table in base_tables(load_view(bases, state, [name]), name, ts=0):
                if rewrite is not None:
                    table = rewrite(state.marks[Mark.STASH_VERSION], name, table)  # noqa: PLW2901 - its rows, rewritten
                if table.num_rows:
                    files.append(target.write(name, FileKind.BASE, state.fence, table))
                rows += table.num_rows
                if progress is not None:
                    progress(rows, total)
    except RetiredError:
        target.delete([file.path for file in files])
        raise
    marks = {**state.marks, Mark.FRONTIER: 1, Mark.RUNNING_STEP: 0}
    target.compare_and_append(
        target.state(0), Change(Operation.TRANSACTION, uuid.uuid4().hex, tuple(files), marks=marks)
    )
    return tuple(files)


@dataclass(frozen=True, slots=True)
class _Rows:
    """What happens to rows on the way, and who is told."""

    progress: Told | None
    rewrite: Rewrite | None


def _begin(copy: Log, txid: str, target: Storage) -> None:
    if not copy.create(txid):
        raise CopyTargetError(target.uri, "another process just began to write there", "name another place")


def _copy_newest(
    source: Log, copy: Log, shards: Shards | None, state: State, rows: _Rows
) -> tuple[State, tuple[DataFile, ...]]:
    """Copy a state, or a newer one as soon as it is retired; answer which it was."""
    attempts = 0
    while True:
        attempts += 1
        try:
            if shards is not None:
                shards.copy(source, state)
            return state, copy_state(source, state, copy, rows.progress, rows.rewrite)
        except RetiredError:
            if attempts == _ATTEMPTS_MAX:
                raise
            state = _newest(source)


def _newest(log: Log) -> State:
    state = log.state(log.verify())
    if Mark.STASH_VERSION not in state.marks:
        raise NotInitializedError(log.uri)
    return state


def _require_room(target: Storage, state: State, share: float) -> None:
    if target.remote:
        return
    needed = int(share * sum(file.size for file in state.files.values()))
    place = Path(target.uri)
    free = shutil.disk_usage(next(folder for folder in (place, *place.parents) if folder.is_dir())).free
    if free < needed:
        raise StoreFullError(
            target.uri, "copy to", f"about {needed >> 20} MiB are needed, and {free >> 20} MiB are free"
        )


def _require_apart(
    source: Storage, source_options: Mapping[str, str], target: Storage, target_options: Mapping[str, str]
) -> None:
    """Refuse a copy of a place into itself, and any inside a store."""
    name_another = "name an empty place outside of any store"
    ours, theirs = _parts(source, source_options), _parts(target, target_options)
    if ours == theirs:
        raise CopyTargetError(target.uri, "it is the store that is to be copied", name_another)
    if theirs[: len(ours)] == ours:
        raise CopyTargetError(target.uri, f"it is inside the store that is to be copied, {source.uri}", name_another)
    if ours[: len(theirs)] == theirs:
        raise CopyTargetError(target.uri, f"the store that is to be copied is in it, {source.uri}", name_another)
    for above in _above(target):
        if _is_store(above, target_options):
            raise CopyTargetError(target.uri, f"it is inside another store, {above}", name_another)


def _parts(storage: Storage, options: Mapping[str, str]) -> tuple[str, ...]:
    """What can be compared of a place: one name may be that of two buckets, if two servers are asked for it."""
    if not storage.remote:
        return ("file", *Path(storage.uri).resolve().parts)
    named = {name.lower().removeprefix("aws_"): value for name, value in options.items()}
    server = named.get("endpoint_url") or named.get("endpoint") or os.environ.get("AWS_ENDPOINT_URL", "")
    return (server.rstrip("/"), *filter(None, storage.uri.split("/")))


def _above(storage: Storage) -> list[str]:
    if not storage.remote:
        return [str(folder) for folder in Path(storage.uri).resolve().parents]
    scheme, _, path = storage.uri.partition("://")
    names = path.split("/")
    return [f"{scheme}://{'/'.join(names[:count])}" for count in range(len(names) - 1, 0, -1)]


def _is_store(uri: str, options: Mapping[str, str]) -> bool:
    """Whether there is a `store.json` with a stash beside it; not where this process may not look."""
    try:
        storage = open_storage(uri, options)
        return storage.read(PATH) is not None and next(iter(storage.paths(STASH)), None) is not None
    except CatalogError:
        return False


def _require_empty(target: Storage) -> None:
    found = target.found()
    if found not in {None, "nothing is there"}:
        raise CopyTargetError(target.uri, f"{found}", "name an empty folder, or one that is not there yet")
    names = sorted({path.partition("/")[0] for path in islice(target.paths(""), _LISTED_MAX)})
    if not names:
        return
    named = ", ".join(names[:_NAMED_MAX]) + (f" and {len(names) - _NAMED_MAX} more" if names[_NAMED_MAX:] else "")
    fix = "name an empty place"
    if all(name in {STASH, SHARDS} or is_unfinished(name) for name in names):
        left = " and ".join(f"{target.uri}/{name}" for name in names)
        fix = f"if a copy was interrupted there, remove what it left, {left}, and copy again; else {fix}"
    raise CopyTargetError(target.uri, f"it holds {named}", fix)


def _made_by(log: Log) -> str | None:
    """Whose the first entry of a log is; none if there is none that can be read."""
    try:
        return log.commit(0).txid
    except CatalogError:
        return None


def _clear(target: Storage, options: Mapping[str, str], reason: BaseException) -> None:
    """Remove what a copy wrote that failed, `store.json` first; what cannot be removed is told with the reason."""
    try:
        found = find_belongings(target, options)
        each(target, target.delete, [file.path for file in found.identity])
        each(target, target.delete, [file.path for file in (*found.data, *found.log)])
        for folder in found.folders:
            target.remove_folder(folder)
    except CatalogError as error:
        left = f"{target.uri}/{STASH} and {target.uri}/{SHARDS}"
        reason.add_note(f"what was written stays, remove {left} before you copy again: {error.what}")
