"""Entries of a Delta log as raw text: parsed whole and as our own, or refused with the reason."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from catalog.engine.log.commit_rules import committed
from catalog.engine.log.data_files import file_collection, file_kind
from catalog.engine.log.digests import commit_digest, state_text
from catalog.engine.log.protocol import MERGING, AppTxn, Commit, CommitRequest, DataFile, LogState, Operation
from catalog.errors import AlteredEntryError, ForeignTableError, InvalidChangeError, LogTooNewError, TornLogError

_Name = TypeVar("_Name", Operation, AppTxn)
_encode = json.JSONEncoder(separators=(",", ":")).encode

LOG_FOLDER, ARCHIVE_FOLDER = "_delta_log", "_archive"
_TXID, _OPERATION, _ACTIONS = "stash.txid", "stash.operation", "stash.actions"
_DETAILS, _TIMESTAMP = "stash.details", "stash.timestamp_ms"
_STATE, _DIGEST = "stash.state", "stash.digest"
_DIGESTS = {_STATE, _DIGEST}
"""The fields that entries of earlier builds lack. One of them alone is an entry that was altered."""
_TOLD = (_TXID, _OPERATION, _ACTIONS, _DETAILS, _TIMESTAMP, _STATE)
_CHANGING = {"commitInfo", "add", "remove", "txn"}
_CREATING = {"commitInfo", "protocol", "metaData"}
"""The actions of an entry that makes a table. Of builds without digests, one may follow others: of two processes that
made a log at once, the second committed after the first."""
_NUMBERED = re.compile(f"(?:{LOG_FOLDER}|{ARCHIVE_FOLDER})" + r"/(\d{20})\.(json|checkpoint\.parquet)")
_LEFT_BEHIND = re.compile(LOG_FOLDER + r"/\.?(\d{20})\..+")
_UNNUMBERED = re.compile(LOG_FOLDER + r"/\.?(_last_checkpoint|_commit_[0-9a-f-]{36}\.json)([.#].+)?")
"""The pointer to the last checkpoint, and what delta-rs writes under a name that is to be changed."""
_APPENDED = {"operation": "WRITE", "operationParameters": {"mode": "Append", "partitionBy": '["collection"]'}}
_ACTIONS_OF_CREATION = 2
"""A new table also has its protocol and its metadata."""


def entry_path(version: int) -> str:
    return f"{LOG_FOLDER}/{version:020d}.json"


def checkpoint_path(version: int) -> str:
    return f"{LOG_FOLDER}/{version:020d}.checkpoint.parquet"


def clock_path(version: int) -> str:
    """Return a new name for a file that tells the time of the place; it expires as what a crashed writer leaves."""
    return f"{LOG_FOLDER}/.{version:020d}.clock.{uuid.uuid4().hex}"


def archived(path: str) -> str:
    """Return the path of an entry or a checkpoint in the archive."""
    return path.replace(LOG_FOLDER, ARCHIVE_FOLDER, 1)


def numbered(path: str) -> tuple[int, bool] | None:
    """Return the version of an entry or a checkpoint, and whether it is a checkpoint; none for anything else."""
    found = _NUMBERED.fullmatch(path)
    return None if found is None else (int(found[1]), found[2] != "json")


def left_behind(path: str) -> int | None:
    """Return the version that a crashed writer was about to make, by the name of its leftover; else none."""
    found = None if numbered(path) else _LEFT_BEHIND.fullmatch(path)
    return None if found is None else int(found[1])


def is_log_file(path: str) -> bool:
    """Tell if a file is of the log or the archive, finished or not."""
    return numbered(path) is not None or left_behind(path) is not None or _UNNUMBERED.fullmatch(path) is not None


def metadata(expected: LogState, change: CommitRequest, now_ms: int) -> dict[str, str]:
    """Return the custom metadata of the commit of a change after a state.

    The number of actions shows a reader if an entry is whole, the digests if it is the one that was written.
    """
    commit = committed(expected.version + 1, change, now_ms)
    info = {
        _TXID: change.txid,
        _OPERATION: change.operation,
        _ACTIONS: str(_count(change)),
        _DETAILS: json.dumps(dict(change.details), sort_keys=True),
        _TIMESTAMP: str(now_ms),
        _STATE: state_text(expected.digest_after(commit)),
    }
    return info | {_DIGEST: _digest(info, commit.version, commit.adds, commit.removed_paths, commit.app_txns)}


def commit_entry(expected: LogState, change: CommitRequest, now_ms: int) -> bytes:
    """Return the entry of a change after a state, with the same actions that delta-rs would write."""
    is_seal, data_change = change.operation is Operation.SEAL, change.operation not in MERGING
    operation = {"operation": "SEAL", "operationParameters": {}} if is_seal else _APPENDED
    info = {"timestamp": now_ms, **operation, **metadata(expected, change, now_ms)}
    actions: list[dict[str, Any]] = [{"commitInfo": info}]
    for file in change.adds:
        own = {"modificationTime": now_ms, "dataChange": data_change, "stats": stats(file)}
        actions.append({"add": {**_located(file), **own}})
    for file in change.removes:
        own = {"deletionTimestamp": now_ms, "dataChange": data_change, "extendedFileMetadata": True}
        actions.append({"remove": {**_located(file), **own}})
    actions += [{"txn": {"appId": name, "version": number}} for name, number in change.app_txns.items()]
    return _entry(actions)


def _entry(actions: Sequence[Mapping[str, Any]]) -> bytes:
    return b"".join(_encode(action).encode() + b"\n" for action in actions)


def _located(file: DataFile) -> dict[str, Any]:
    return {"path": file.path, "partitionValues": {"collection": file.collection}, "size": file.size}


def parse_entry(uri: str, version: int, raw: bytes) -> Commit:
    """Parse one entry; an unfinished entry, one that was altered and foreign writers raise different errors."""
    if not raw.strip(b"\0\r\n\t "):
        raise TornLogError(uri, version, "it is empty")
    damage = TornLogError if _is_cut(raw) else AlteredEntryError
    actions = [_action(number, line, damage, uri, version) for number, line in enumerate(raw.splitlines(), start=1)]
    infos = [content for kind, content in actions if kind == "commitInfo"]
    own = {name for info in infos for name in info if name.startswith("stash.")}
    if not own and b'"stash.' in raw:
        raise damage(uri, version, "it has lost its commitInfo")
    if not own:
        raise ForeignTableError(uri, f"log entry {version} was not written by this program")
    try:
        (info,) = infos
        if (found := len(actions) - 1) != int(info[_ACTIONS]):
            kind = TornLogError if found < int(info[_ACTIONS]) else AlteredEntryError
            raise kind(uri, version, f"it has {found} actions of {info[_ACTIONS]}")
        adds = tuple(added_file(content) for kind, content in actions if kind == "add")
        removed_paths = tuple(str(content["path"]) for kind, content in actions if kind == "remove")
        numbers = {str(content["appId"]): int(content["version"]) for kind, content in actions if kind == "txn"}
        if own & _DIGESTS and info[_DIGEST] != _digest(info, version, adds, removed_paths, numbers):
            raise AlteredEntryError(uri, version, "its digest does not fit its content")
        expected = _CREATING if info[_OPERATION] == Operation.CREATE else _CHANGING
        _require_known(uri, version, own, {kind for kind, _ in actions} - expected)
        return Commit(
            version=version,
            operation=_known(uri, version, "operation", Operation, info[_OPERATION]),
            txid=info[_TXID],
            adds=adds,
            removed_paths=removed_paths,
            app_txns={_known(uri, version, "app transaction", AppTxn, name): own for name, own in numbers.items()},
            details=json.loads(info[_DETAILS]),
            timestamp_ms=int(info[_TIMESTAMP]),
            state_digest=info.get(_STATE, ""),
        )
    except (KeyError, TypeError, ValueError, AttributeError, InvalidChangeError) as error:
        raise damage(uri, version, f"it is not understood: {error!r}") from error


def named_state(raw: bytes) -> str | None:
    """Return the digest of the state that an entry names, though the entry may be damaged; none if it names none."""
    found = re.search(rb'"stash\.state":"([0-9a-f]{32})"', raw)
    return None if found is None else found[1].decode()


def is_plausible(line: bytes | bytearray) -> bool:
    """Tell if a line can be one of an entry, as far as the line alone shows it."""
    try:
        ((kind, content),) = json.loads(line).items()
        return kind in _CHANGING | _CREATING and (kind != "add" or added_file(content) is not None)
    except (KeyError, TypeError, ValueError, AttributeError, InvalidChangeError):
        return False


def with_state(state: LogState, raw: bytes) -> bytes:
    """Return a whole entry as it would be if it led to this state; one that names none stays as it is."""
    commit, actions = parse_entry("", state.version, raw), [json.loads(line) for line in raw.splitlines()]
    if commit.state_digest in {"", state_text(state.digest)}:
        return raw
    info = next(action["commitInfo"] for action in actions if "commitInfo" in action)
    info[_STATE] = state_text(state.digest)
    info[_DIGEST] = _digest(info, state.version, commit.adds, commit.removed_paths, commit.app_txns)
    return _entry(actions)


def _digest(
    info: Mapping[str, str],
    version: int,
    adds: Sequence[DataFile],
    removed_paths: Sequence[str],
    app_txns: Mapping[Any, int],
) -> str:
    """Return the digest of all that is read from an entry, in whatever order its actions are."""
    told = [info[name] for name in _TOLD]
    return commit_digest([version, told, sorted(file.digest for file in adds), sorted(removed_paths), dict(app_txns)])


def _is_cut(raw: bytes) -> bool:
    """Tell if the end of an entry was never written: a crash leaves less of it, or zeros, and changes no other byte."""
    if raw.endswith(b"\n"):
        return False
    try:
        json.loads(raw.splitlines()[-1])
    except ValueError:
        return True
    return False


def _require_known(uri: str, version: int, own: set[str], other: set[str]) -> None:
    """Refuse fields and actions of the future; without a digest they may as well be known ones that were altered."""
    unknown = [
        *(f"field {name!r}" for name in sorted(own - _DIGESTS - set(_TOLD))),
        *(f"action {kind!r}" for kind in sorted(other)),
    ]
    if unknown and own & _DIGESTS:
        raise LogTooNewError(uri, version, unknown[0])
    if unknown:
        raise AlteredEntryError(uri, version, f"it has an unknown {unknown[0]}")


def stats(file: DataFile) -> str:
    return json.dumps(
        {"numRecords": file.rows, "minValues": {"ts": file.ts_min}, "maxValues": {"ts": file.ts_max}, "nullCount": {}}
    )


def added_file(add: Mapping[str, Any]) -> DataFile:
    """Return the file that an `add` of an entry or a checkpoint describes."""
    found = json.loads(add["stats"])
    return DataFile(
        path=add["path"],
        collection=_collection(add),
        kind=file_kind(add["path"]),
        size=add["size"],
        rows=found["numRecords"],
        ts_min=found["minValues"]["ts"],
        ts_max=found["maxValues"]["ts"],
    )


def _collection(add: Mapping[str, Any]) -> str:
    """Return the collection of a file; refuse one whose path and partition name two."""
    collection = file_collection(add["path"])
    if dict(add["partitionValues"]) != {"collection": collection}:
        raise InvalidChangeError(f"{add['path']} is in the partition {add['partitionValues']}")
    return collection


def _count(change: CommitRequest) -> int:
    if change.operation is Operation.CREATE:
        return _ACTIONS_OF_CREATION
    return len(change.adds) + len(change.removes) + len(change.app_txns)


def _action(
    number: int, line: bytes, damage: type[TornLogError | AlteredEntryError], uri: str, version: int
) -> tuple[str, Mapping[str, Any]]:
    """Return the kind and the content of the action in a line."""
    try:
        action = json.loads(line)
    except ValueError as error:
        raise damage(uri, version, f"line {number} is no JSON: {error}") from error
    if not isinstance(action, dict) or len(action) != 1 or not all(isinstance(own, dict) for own in action.values()):
        raise damage(uri, version, f"line {number} is no action")
    return next(iter(action.items()))


def _known(uri: str, version: int, what: str, kind: type[_Name], name: str) -> _Name:
    try:
        return kind(name)
    except ValueError as error:
        raise LogTooNewError(uri, version, f"{what} {name!r}") from error
