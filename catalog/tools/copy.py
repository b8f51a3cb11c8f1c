"""Consistent copies of stores: the rows of the newest state, in files of their own, at another place.

Others may write to the source meanwhile; the copy never writes to it: no fence, no heartbeat, not a byte. Rows are
copied as bytes, so a store of any version can be copied, and the rows of at most one file are in memory at a time.
`store.json` is written last: the remains of an interrupted copy never look like a store.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

from catalog.engine.base.disk import free_bytes
from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.place import StorePlace, stash_version
from catalog.engine.log.protocol import AppTxn, DataFile, Log, LogState
from catalog.engine.log.replica import newest_state
from catalog.engine.schema_change.copying import CopiedTables, copy_tables, count_tables, tables_state
from catalog.engine.storage.base import NOTHING, Storage, map_concurrently, open_storage
from catalog.engine.storage.heartbeat import release
from catalog.engine.storage.identity import PATH, is_unfinished, make_identity
from catalog.engine.storage.layout import SHARDS, STASH, TABLES
from catalog.engine.storage.write_probe import is_probe, require_exclusive
from catalog.engine.store.scratch_copy import ProgressCallback, RowRewrite, clear_folder, copy_shards, copy_state
from catalog.errors import CatalogError, CopyTargetError, RetiredError, StoreFullError
from catalog.tools.inventory import take_inventory

_ATTEMPTS_MAX = 10
"""A source that retires its states more often than this while it is copied retains them too briefly."""
_ROOM = 1.1
"""Space for a copy, as a share of the source's files: other groups of rows compress differently."""
_ROOM_REWRITTEN = 4.0
"""As above, of rewritten rows: replaced texts hardly compress."""
_LISTED_MAX, _NAMED_MAX = 1000, 3


@dataclass(frozen=True, slots=True)
class Copied:
    """A copy that was made."""

    source: str
    target: str
    id: str
    copy_of: str
    version: int
    ts: int
    """The ts of the source whose rows the copy holds."""
    rows: int
    """Of the stash."""
    files: int
    bytes: int
    tables: int = 0
    """The number of tables that were copied."""
    tables_ts: int | None = None
    """The ts of the source's tables whose rows the copy holds; none if there are none, or they were left out."""
    tables_left_out: int = 0
    """The number of tables that the copy does not have: it was asked for so, or it is anonymised."""


def copy_store(
    source: StorePlace,
    target: StorePlace,
    *,
    progress: ProgressCallback | None = None,
    rewrite: RowRewrite | None = None,
    with_tables: bool = True,
) -> Copied:
    """Copy the newest state of a store to an empty place: as it is with its shards and tables, or its rows alone and
    rewritten.

    If the state is retired meanwhile, the copy begins again with the newest one; if it fails, what it wrote is removed.
    Values in tables are nobody's to judge, so a rewritten copy has none.
    """
    identity, log, tables_log = source.identity(), source.log(), source.tables_log()
    _require_apart(source, target)
    _require_empty(target.storage)
    state, tables = _newest_pair(log, tables_log)
    is_whole = with_tables and rewrite is None
    files_of_all = [*state.files.values(), *(tables.files.values() if tables is not None and is_whole else ())]
    _require_room(target.storage, files_of_all, _ROOM if rewrite is None else _ROOM_REWRITTEN)
    require_exclusive(target.storage)
    copy, txid = target.log(), uuid.uuid4().hex
    try:
        _begin(copy, txid)

        def copy_once(state: LogState, tables: LogState | None) -> tuple[CopiedTables | None, tuple[DataFile, ...]]:
            if rewrite is None:
                copy_shards(source, target, log, state)
            copied = None
            if is_whole and tables is not None:
                clear_folder(target, TABLES)
                copied = copy_tables(tables_log, tables, target.tables_log())
            return copied, copy_state(log, state, copy, progress, rewrite)

        state, (copied, files) = _copy_newest(log, tables_log, (state, tables), copy_once)
        made = make_identity(target.storage, target.project.name, identity.id)
    except BaseException as error:
        if _made_by(copy) in {txid, None}:
            _clear(target, error)
        raise
    release(target.storage, state.fence, made.id)
    every = (*files, *(copied.files if copied is not None else ()))
    return Copied(
        source=source.uri,
        target=target.uri,
        id=made.id,
        copy_of=identity.id,
        version=state.app_txns[AppTxn.STASH_VERSION],
        ts=state.version,
        rows=sum(file.rows for file in files),
        files=len(every),
        bytes=sum(file.size for file in every),
        tables=0 if copied is None else copied.tables,
        tables_ts=None if copied is None else copied.ts,
        tables_left_out=0 if is_whole or tables is None else count_tables(tables_log, tables),
    )


def _begin(copy: Log, txid: str) -> None:
    if not copy.create(txid):
        raise CopyTargetError(copy.uri, "another process just began to write there", "name another place")


_Pair = tuple[LogState, LogState | None]
"""The states of the stash and of the tables, if there are any."""
_Made = TypeVar("_Made")


def _copy_newest(
    log: DeltaLog, tables_log: DeltaLog, states: _Pair, copy_once: Callable[[LogState, LogState | None], _Made]
) -> tuple[LogState, _Made]:
    """Copy two states, or the newest ones as often as they are retired meanwhile; return that of the stash."""
    for _ in range(_ATTEMPTS_MAX - 1):
        with suppress(RetiredError):
            return states[0], copy_once(*states)
        states = _newest_pair(log, tables_log)
    return states[0], copy_once(*states)


def _newest_pair(log: DeltaLog, tables_log: DeltaLog) -> _Pair:
    """Read the newest states of both logs; if the stash is the same before and after, there was a moment of both.

    A stash that is written all the time is not waited for: a name and its table may then differ by one change.
    """
    for _ in range(_ATTEMPTS_MAX - 1):
        state, tables = _newest(log), tables_state(tables_log)
        if tables is None or log.head(state.version) == state.version:
            return state, tables
    return _newest(log), tables_state(tables_log)


def _newest(log: DeltaLog) -> LogState:
    state = newest_state(log)
    stash_version(state, log.uri)
    return state


def _require_room(target: Storage, files: Iterable[DataFile], share: float) -> None:
    if target.remote:
        return
    needed = int(share * sum(file.size for file in files))
    free = free_bytes(Path(target.uri))
    if free < needed:
        raise StoreFullError(
            target.uri, "copy to", f"about {needed >> 20} MiB are needed, and {free >> 20} MiB are free"
        )


def _require_apart(source: StorePlace, target: StorePlace) -> None:
    """Refuse a copy of a store into itself or into another store."""
    name_another = "name an empty place outside of any store"
    ours, theirs = _parts(source), _parts(target)
    if ours == theirs:
        raise CopyTargetError(target.uri, "it is the store to copy", name_another)
    if theirs[: len(ours)] == ours:
        raise CopyTargetError(target.uri, f"it is inside the store to copy, {source.uri}", name_another)
    if ours[: len(theirs)] == theirs:
        raise CopyTargetError(target.uri, f"it contains the store to copy, {source.uri}", name_another)
    for above in _above(target.storage):
        if _is_store(above, target.options):
            raise CopyTargetError(target.uri, f"it is inside another store, {above}", name_another)


def _parts(place: StorePlace) -> tuple[str, ...]:
    """Return the parts of an address that can be compared: on two servers, one name can be that of two buckets."""
    if not place.storage.remote:
        return ("file", *Path(place.uri).resolve().parts)
    return (place.storage.server(), *filter(None, place.uri.split("/")))


def _above(storage: Storage) -> list[str]:
    if not storage.remote:
        return [str(folder) for folder in Path(storage.uri).resolve().parents]
    scheme, _, path = storage.uri.partition("://")
    names = path.split("/")
    return [f"{scheme}://{'/'.join(names[:count])}" for count in range(len(names) - 1, 0, -1)]


def _is_store(uri: str, options: Mapping[str, str]) -> bool:
    """Tell if there is a `store.json` with a stash beside it; false where this process may not read."""
    try:
        storage = open_storage(uri, options)
        return storage.read(PATH) is not None and next(iter(storage.paths(STASH)), None) is not None
    except CatalogError:
        return False


def _require_empty(target: Storage) -> None:
    found = target.found()
    if found not in {None, NOTHING}:
        raise CopyTargetError(target.uri, f"{found}", "name an empty folder, or one that is not there yet")
    names = sorted({path.partition("/")[0] for path in islice(target.paths(""), _LISTED_MAX)})
    if not names:
        return
    named = ", ".join(names[:_NAMED_MAX]) + (f" and {len(names) - _NAMED_MAX} more" if names[_NAMED_MAX:] else "")
    fix = "name an empty place"
    if all(name in {STASH, SHARDS, TABLES} or is_unfinished(name) or is_probe(name) for name in names):
        left = " and ".join(f"{target.uri}/{name}" for name in names)
        fix = f"if a copy was interrupted there, remove {left}, and copy again; else {fix}"
    raise CopyTargetError(target.uri, f"it holds {named}", fix)


def _made_by(log: Log) -> str | None:
    """Return the transaction id of the first entry of a log; none if it cannot be read."""
    try:
        return log.commit(0).txid
    except CatalogError:
        return None


def _clear(target: StorePlace, reason: BaseException) -> None:
    """Remove the files of a failed copy, `store.json` first; add a note to the reason if some remain."""
    try:
        storage, found = target.storage, take_inventory(target)
        map_concurrently(storage, storage.delete, [file.path for file in found.identity])
        map_concurrently(storage, storage.delete, [file.path for file in (*found.data, *found.log)])
        for folder in found.folders:
            storage.remove_folder(folder)
    except CatalogError as error:
        left = f"{target.uri}/{STASH}, {target.uri}/{SHARDS} and {target.uri}/{TABLES}"
        reason.add_note(f"the incomplete copy could not be removed ({error.what}): remove {left} before you copy again")
