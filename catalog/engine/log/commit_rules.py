"""The rules of a commit that every log keeps: which requests are valid, and how the outcome of a commit is resolved.

Never guesses: after an error the log itself is read, and a commit that may still arrive is sealed off first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from catalog.engine.base.rust_panic import is_panic
from catalog.engine.log.data_files import file_collection, file_fence, file_kind
from catalog.engine.log.protocol import MERGING, Commit, CommitRequest, DataFile, FileKind, LogState, Operation
from catalog.errors import (
    CatalogError,
    CommitFailedError,
    ConflictError,
    CorruptFileError,
    FencedError,
    ForeignTableError,
    IndeterminateError,
    InvalidChangeError,
    MissingFileError,
)
from catalog.errors.redaction import redact, redacted_cause


def check_change(expected: LogState, change: CommitRequest) -> None:
    """Refuse a change that does not fit the state it was made for."""
    adds = [file.path for file in change.adds]
    removes = [file.path for file in change.removes]
    if not change.txid:
        raise InvalidChangeError("a commit needs a txid")
    if twice := sorted(path for path, count in Counter(adds + removes).items() if count > 1):
        raise InvalidChangeError(f"named twice in one commit: {', '.join(twice)}")
    if present := sorted(expected.files.keys() & set(adds)):
        raise InvalidChangeError(f"cannot add files that the log holds already: {', '.join(present)}")
    if gone := sorted(file.path for file in change.removes if expected.files.get(file.path) != file):
        raise InvalidChangeError(
            f"cannot remove files that the log does not hold, or that differ from its own: {', '.join(gone)}"
        )
    if negative := sorted(name for name, number in change.app_txns.items() if number < 0):
        raise InvalidChangeError(f"app transactions below zero: {', '.join(negative)}")
    for file in change.adds:
        _check_described(file)
        if change.operation is not Operation.UNDO:  # which brings back files of earlier versions and writers
            _check_new(file, expected, merged=change.operation in MERGING)


def check_size(uri: str, file: DataFile, size: int | None) -> None:
    """Refuse a file that is not there or not whole."""
    if size is None:
        raise MissingFileError(uri, file.path)
    if size != file.size:
        raise CorruptFileError(uri, file.path, f"it has {size} bytes of {file.size}")


def committed(version: int, change: CommitRequest, now_ms: int) -> Commit:
    """Return a request as the commit it becomes."""
    return Commit(
        version=version,
        operation=change.operation,
        txid=change.txid,
        adds=change.adds,
        removed_paths=tuple(file.path for file in change.removes),
        app_txns=dict(change.app_txns),
        details=dict(change.details),
        timestamp_ms=now_ms,
    )


def sealing(change: CommitRequest) -> CommitRequest:
    """Return the commit that takes a version so that `change` can never land there."""
    return CommitRequest(Operation.SEAL, f"{change.txid}/seal", details={"sealed": change.txid})


@contextmanager
def attempt(
    uri: str,
    version: int,
    change: CommitRequest,
    *,
    probe: Callable[[], Commit | None],
    seal: Callable[[], bool] | None,
    secrets: tuple[str, ...] = (),
) -> Iterator[None]:
    """Resolve the outcome of a commit that failed: go on if it landed all the same, else raise what is known.

    `probe` reads the entry of the version. `seal` takes the version and tells if it did; none if nothing can still be
    under way. An interruption such as KeyboardInterrupt propagates, with a note that the commit may have landed.
    """
    try:
        yield
    except BaseException as error:
        if not (isinstance(error, Exception) or is_panic(error)):
            error.add_note(f"commit {version} of {uri} may have landed: look whether it carries {change.txid}")
            raise
        try:
            landed = probe()
            if landed is None and seal is not None:
                landed = _landed_or_sealed(change, probe, seal)
        except ForeignTableError:
            raise
        except Exception as silent:  # noqa: BLE001 - whatever the log's place raises
            cause = redacted_cause(silent, secrets)
            raise IndeterminateError(uri, version, change.txid, _reason(error, secrets)) from cause
        if landed is None or landed.txid == sealing(change).txid:
            raise CommitFailedError(uri, version, _reason(error, secrets)) from redacted_cause(error, secrets)
        if landed.txid != change.txid:
            raise ConflictError(uri, version - 1, version) from error


def _landed_or_sealed(
    change: CommitRequest, probe: Callable[[], Commit | None], seal: Callable[[], bool]
) -> Commit | None:
    """Return the commit that took the version; none if it is sealed for certain."""
    lost: Exception | None = None
    try:
        if seal():
            return None
    except Exception as error:  # noqa: BLE001 - the answer was lost: the log knows
        lost = error
    landed = probe()
    if landed is None:
        raise lost or LookupError(f"the version is taken, and its entry is not there for {change.txid}")
    return landed


def _reason(error: BaseException, secrets: tuple[str, ...]) -> str:
    if isinstance(error, CatalogError):
        return error.what
    return redact(str(error), secrets) or type(error).__name__


def _check_described(file: DataFile) -> None:
    if (file.collection, file.kind) != (file_collection(file.path), file_kind(file.path)):
        raise InvalidChangeError(f"{file.path} is not named as a {file.kind} file of {file.collection!r}")
    if file.rows < 1 or file.size < 1:
        raise InvalidChangeError(f"{file.path} holds nothing")


def _check_new(file: DataFile, expected: LogState, *, merged: bool) -> None:
    if (held := file_fence(file.path)) < expected.fence:  # it may be swept at any moment
        raise FencedError(held, expected.fence)
    version = expected.version + 1
    earliest = version if file.kind is FileKind.TAIL and not merged else 0
    if not earliest <= file.ts_min <= file.ts_max <= version:
        found = f"{file.ts_min} to {file.ts_max}"
        raise InvalidChangeError(f"{file.path} has ts {found}, the commit makes version {version}")
