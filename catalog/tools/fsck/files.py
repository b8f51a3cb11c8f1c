"""The check of files that a log refers to, and of a log again if its retention ends under the check."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc

from catalog.engine.log.data_files import check_rows
from catalog.engine.log.protocol import ROWS, DataFile, Log
from catalog.engine.log.replica import newest_state
from catalog.errors import CatalogError, CorruptFileError, InvalidChangeError, MissingFileError
from catalog.tools.fsck.findings import RESTORE, RESTORE_FILE, SWEEP, FsckCode, FsckFindings, FsckReport, Severity
from catalog.tools.fsck.log import LogHistory

_ATTEMPTS_MAX = 10
"""A log whose retention ends more often than this while it is checked retains its states too briefly."""

CheckOnce = Callable[[FsckFindings], tuple[int, int, int]]
"""Checks a log at the state that is the newest now; returns the number of entries, files and rows."""


def check_settled(log: Log, check_once: CheckOnce, findings: FsckFindings) -> FsckReport:
    """Check a log, and again with newer states as long as retention ended meanwhile; add to earlier findings."""
    attempt = 0
    while True:
        attempt, own, frontier = attempt + 1, FsckFindings(), _frontier(log)
        entries, files, rows = check_once(own)
        is_sound = not own.counts and not own.notes
        if is_sound or attempt == _ATTEMPTS_MAX or _frontier(log) == frontier:
            break
    findings.take(own, "")
    return FsckReport(findings.all(log.uri), entries, files, rows, dict(findings.counts))


def _frontier(log: Log) -> int | None:
    """Return the retention frontier; none if it cannot be read."""
    with suppress(CatalogError):
        return newest_state(log).frontier
    return None


def present_files(log: Log, findings: FsckFindings) -> set[str]:
    """List the data files. They are listed before the log is read, so that one that is committed then is no orphan."""
    try:
        return {file.path for file in log.files()}
    except CatalogError as error:
        findings.add(FsckCode.UNREADABLE, log.uri, error.what, f"cannot be repaired from here: {error.next}")
        return set()


def check_orphans(log: Log, history: LogHistory, present: set[str], findings: FsckFindings) -> None:
    if not history.whole:
        findings.unchecked(
            log.uri, "files that nothing refers to were not searched for: not all of the log can be read"
        )
        return
    for path in sorted(present - history.files().keys()):
        findings.add(FsckCode.ORPHAN, path, "no state that is retained refers to it", SWEEP, Severity.SWEEPABLE)


def read_file(log: Log, file: DataFile, findings: FsckFindings) -> pa.Table | None:
    """Return the rows of a file if they can be checked further."""
    try:
        rows = log.read(file)
    except MissingFileError as error:
        findings.add(FsckCode.MISSING, file.path, error.what, RESTORE_FILE)
        return None
    except CorruptFileError as error:
        findings.add(FsckCode.CORRUPT, file.path, error.what, RESTORE_FILE)
        return None
    except Exception as error:  # noqa: BLE001 - a damaged file may raise anything, and the others are still checked
        findings.add(FsckCode.UNREADABLE, file.path, f"it cannot be read: {error}", RESTORE_FILE)
        return None
    try:
        check_rows(file.collection, file.kind, rows)
    except InvalidChangeError as error:
        findings.add(FsckCode.CONTENT, file.path, error.reason, RESTORE)
    usable = rows.schema.equals(ROWS) and rows.num_rows and not any(column.null_count for column in rows.columns)
    return rows if usable else None


def check_ts(file: DataFile, rows: pa.Table, born: tuple[int, int] | None, findings: FsckFindings) -> None:
    """Check the ts of the rows of a file against the log, and against the commits that can have made them."""
    found = pc.min_max(rows["ts"])
    ts = found["min"].as_py(), found["max"].as_py()
    if ts != (file.ts_min, file.ts_max):
        what = f"its rows are of ts {ts[0]} to {ts[1]}, the log says {file.ts_min} to {file.ts_max}"
        findings.add(FsckCode.TS, file.path, what, RESTORE)
    elif born is not None and not born[0] <= ts[0] <= ts[1] <= born[1]:
        what = f"its rows are of ts {ts[0]} to {ts[1]}, and must be of {born[0]} to {born[1]}"
        findings.add(FsckCode.TS, file.path, what, RESTORE)
