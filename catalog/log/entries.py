"""Entries of a Delta log as raw text: whole, ours and understood, or an error that says which they are not."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from catalog.errors import ForeignTableError, InvalidChangeError, LogTooNewError, TornLogError
from catalog.log.files import file_kind
from catalog.log.protocol import Change, Commit, DataFile, Mark, Operation

_Name = TypeVar("_Name", Operation, Mark)

LOG_FOLDER, ARCHIVE_FOLDER = "_delta_log", "_archive"
_TXID, _OPERATION, _ACTIONS = "stash.txid", "stash.operation", "stash.actions"
_DETAILS, _TIMESTAMP = "stash.details", "stash.timestamp_ms"
_NUMBERED = re.compile(f"(?:{LOG_FOLDER}|{ARCHIVE_FOLDER})" + r"/(\d{20})\.(json|checkpoint\.parquet)")
_LEFT_BEHIND = re.compile(LOG_FOLDER + r"/\.?(\d{20})\..+")
_UNNUMBERED = re.compile(LOG_FOLDER + r"/\.?(_last_checkpoint|_commit_[0-9a-f-]{36}\.json)([.#].+)?")
"""The pointer to the last checkpoint, and what delta-rs writes under a name that is to be changed."""
_ACTIONS_OF_CREATION = 2
"""A new table also has its protocol and its metadata."""


def entry_path(version: int) -> str:
    return f"{LOG_FOLDER}/{version:020d}.json"


def checkpoint_path(version: int) -> str:
    return f"{LOG_FOLDER}/{version:020d}.checkpoint.parquet"


def archived(path: str) -> str:
    """The path of an entry or a checkpoint in the archive."""
    return path.replace(LOG_FOLDER, ARCHIVE_FOLDER, 1)


def numbered(path: str) -> tuple[int, bool] | None:
    """The version of an entry or a checkpoint, and whether it is a checkpoint; none for anything else."""
    found = _NUMBERED.fullmatch(path)
    return None if found is None else (int(found[1]), found[2] != "json")


def left_behind(path: str) -> int | None:
    """The version that a crashed writer was about to make, from the name of what it left; none for anything else."""
    found = None if numbered(path) else _LEFT_BEHIND.fullmatch(path)
    return None if found is None else int(found[1])


def is_log_file(path: str) -> bool:
    """Whether a file is of the log or the archive, finished or not."""
    return numbered(path) is not None or left_behind(path) is not None or _UNNUMBERED.fullmatch(path) is not None


def metadata(change: Change, now_ms: int) -> dict[str, str]:
    """What a commit says of itself; the number of actions lets a reader tell a whole entry from a cut one."""
    return {
        _TXID: change.txid,
        _OPERATION: change.operation,
        _ACTIONS: str(_count(change)),
        _DETAILS: json.dumps(dict(change.details), sort_keys=True),
        _TIMESTAMP: str(now_ms),
    }


def sealing_entry(change: Change, now_ms: int) -> bytes:
    """The entry of a commit that does nothing but be there."""
    info = {"timestamp": now_ms, "operation": "SEAL", "operationParameters": {}, **metadata(change, now_ms)}
    return json.dumps({"commitInfo": info}).encode() + b"\n"


def parse_entry(uri: str, version: int, raw: bytes) -> Commit:
    """Read one entry; damage and foreign writers are told apart."""
    if not raw.strip():
        raise TornLogError(uri, version, "it is empty")
    actions = [_action(uri, version, number, line) for number, line in enumerate(raw.splitlines(), start=1)]
    info = next((action["commitInfo"] for action in actions if "commitInfo" in action), None)
    if not isinstance(info, dict) or _TXID not in info:
        raise ForeignTableError(uri, f"log entry {version} was not written by this program")
    try:
        if (found := len(actions) - 1) != int(info[_ACTIONS]):
            raise TornLogError(uri, version, f"it has {found} actions of {info[_ACTIONS]}")
        return Commit(
            version=version,
            operation=_known(uri, version, Operation, info[_OPERATION]),
            txid=info[_TXID],
            adds=tuple(added_file(action["add"]) for action in actions if "add" in action),
            removed_paths=tuple(action["remove"]["path"] for action in actions if "remove" in action),
            marks={
                _known(uri, version, Mark, action["txn"]["appId"]): int(action["txn"]["version"])
                for action in actions
                if "txn" in action
            },
            details=json.loads(info[_DETAILS]),
            timestamp_ms=int(info[_TIMESTAMP]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, InvalidChangeError) as error:
        raise TornLogError(uri, version, f"it is not understood: {error!r}") from error


def stats(file: DataFile) -> str:
    return json.dumps(
        {"numRecords": file.rows, "minValues": {"ts": file.ts_min}, "maxValues": {"ts": file.ts_max}, "nullCount": {}}
    )


def added_file(add: Mapping[str, Any]) -> DataFile:
    """A file as an `add` of an entry or a checkpoint describes it."""
    found = json.loads(add["stats"])
    return DataFile(
        path=add["path"],
        collection=dict(add["partitionValues"])["collection"],
        kind=file_kind(add["path"]),
        size=add["size"],
        rows=found["numRecords"],
        ts_min=found["minValues"]["ts"],
        ts_max=found["maxValues"]["ts"],
    )


def _count(change: Change) -> int:
    if change.operation is Operation.CREATE:
        return _ACTIONS_OF_CREATION
    return len(change.adds) + len(change.removes) + len(change.marks)


def _action(uri: str, version: int, number: int, line: bytes) -> Mapping[str, Any]:
    try:
        action = json.loads(line)
    except ValueError as error:
        raise TornLogError(uri, version, f"line {number} is no JSON: {error}") from error
    if not isinstance(action, dict):
        raise TornLogError(uri, version, f"line {number} is no action")
    return action


def _known(uri: str, version: int, kind: type[_Name], name: str) -> _Name:
    try:
        return kind(name)
    except ValueError as error:
        raise LogTooNewError(uri, version, f"{kind.__name__.lower()} {name!r}") from error
