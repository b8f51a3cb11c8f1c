"""Checks of the storage of a store: address, rights, room and clocks.

A folder is written to, and left as it was. An object store is only listed and read, unless --probe is given.
"""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from catalog.engine.storage.base import NOTHING, Storage, open_storage
from catalog.engine.storage.identity import PATH
from catalog.engine.storage.object_store import CA_FILE
from catalog.engine.storage.write_probe import ProbeResult, probe
from catalog.errors import StoreReadOnlyError
from catalog.tools.doctor.machine_checks import judge_room
from catalog.tools.doctor.runner import CheckResult, DoctorContext, Status

_IMPATIENT: Final = {"max_retries": "2", "retry_timeout": "10s", "timeout": "10s", "connect_timeout": "5s"}
"""Storage options with short timeouts: a storage that does not answer is a finding, not a reason to wait."""
_SKEW_WARNING_S: Final = 10.0
_SKEW_PROBLEM_S: Final = 900.0
"""Object stores refuse requests whose signature is this far from their own time."""
_RESOLUTION_S: Final = 1.0
"""Servers report whole seconds."""
_JUMP_S: Final = 1.0
_DATE_S: Final = 5.0
_NAMED_MAX: Final = 3
_BUILT_S: Final = 1_790_000_000.0
"""A time before this build was made: an earlier clock was never set."""
_SYNC = "synchronise the clock over the network, for example with systemd-timesyncd or chrony"
_ROOM: Final = 1.5
"""The share of the present files that an upgrade which rewrites everything needs beside them."""


def storage_of(subject: DoctorContext) -> Storage:
    """Open the storage of the store with short timeouts."""
    options = {**_IMPATIENT, **subject.options} if subject.is_remote else subject.options
    return open_storage(str(subject.store), options)


def check_address(subject: DoctorContext) -> Iterator[CheckResult]:
    """Check that the address answers, and can be listed and read."""
    storage = storage_of(subject)
    storage.read(PATH)
    obstacle = storage.found()
    if obstacle is None:
        names = sum(1 for _ in zip(storage.paths(""), range(1000), strict=False))
        yield CheckResult("address", Status.OK, f"{storage.uri} can be listed: {names} names")
    elif obstacle == NOTHING:
        fix = "`catalog init` makes a store there; else correct the address"
        yield CheckResult("address", Status.WARNING, f"{storage.uri}: {obstacle}", fix)
    else:
        yield CheckResult("address", Status.PROBLEM, f"{storage.uri}: {obstacle}", "correct the address of the store")


def check_rights(subject: DoctorContext) -> Iterator[CheckResult]:
    """Check that files can be written as a store needs it: in a folder always, in an object store if agreed to."""
    storage = storage_of(subject)
    if storage.remote and not subject.probes:
        text = f"{storage.uri} can be read; writing was not tried"
        yield CheckResult("rights", Status.OK, f"{text}: --probe writes an object and deletes it")
        return
    if not storage.remote and storage.found() is not None:
        yield _above(Path(storage.uri))
        return
    try:
        found = probe(storage)
    except StoreReadOnlyError as error:
        fix = "give this user the right to write there; reading needs none: `catalog start --read-only`"
        yield CheckResult("rights", Status.WARNING, f"{storage.uri} can only be read: {error.reason}", fix)
        return
    if not storage.remote and (closed := _closed(Path(storage.uri))):
        named = ", ".join(map(str, closed[:_NAMED_MAX]))
        fix = f"give the folders of the store to one user: chown -R {os.geteuid()} {storage.uri}"
        yield CheckResult("rights", Status.PROBLEM, f"this user may not write to {len(closed)} folders: {named}", fix)
    else:
        yield _judged(storage, found)
    if found.modified_ms is not None:
        clock = _skewed(f"the clock of {storage.uri}", found.modified_ms / 1000)
        yield from (own for own in clock if storage.remote or own.grade is not Status.OK)


def _closed(folder: Path) -> list[Path]:
    """List the folders of a store that this user may not write to."""
    effective = os.access in os.supports_effective_ids
    mode = os.W_OK | os.X_OK
    return [Path(where) for where, _, _ in os.walk(folder) if not os.access(where, mode, effective_ids=effective)]


def _above(folder: Path) -> CheckResult:
    above = next(parent for parent in folder.parents if parent.exists())
    if os.access(above, os.W_OK | os.X_OK):
        return CheckResult("rights", Status.OK, f"a store can be made at {folder}: {above} can be written to")
    fix = "give this user the right to write there, or name another place"
    return CheckResult("rights", Status.WARNING, f"no store can be made at {folder}: {above} can only be read", fix)


def _judged(storage: Storage, found: ProbeResult) -> CheckResult:
    if not found.is_exclusive:
        fix = "use an object store with conditional puts: on this one two commits could take one version"
        text = f"{storage.uri} lets a second writer replace a file that it must refuse"
        return CheckResult("rights", Status.PROBLEM, text, fix)
    if not found.is_faithful:
        text = f"{storage.uri} does not return what was written last"
        return CheckResult(
            "rights", Status.PROBLEM, text, "use a storage that does; a cache in front of it may be the cause"
        )
    how = "put conditionally, replaced, read and deleted" if storage.remote else "written, synced, renamed and removed"
    return CheckResult("rights", Status.OK, f"a file was {how} at {storage.uri}")


def check_room(subject: DoctorContext) -> Iterator[CheckResult]:
    """Check that the disk of a folder has room for an upgrade that rewrites everything."""
    folder = Path(storage_of(subject).uri)
    there = folder if folder.exists() else next(parent for parent in folder.parents if parent.exists())
    yield from judge_room("disk", there, int(_ROOM * _live_bytes(subject)))


def _live_bytes(subject: DoctorContext) -> int:
    try:
        return sum(file.size for file in subject.place.state().files.values())
    except Exception:  # noqa: BLE001 - another check reports what is wrong with the store
        return 0


def check_clock(subject: DoctorContext) -> Iterator[CheckResult]:
    """Check that the clock runs evenly, was set, and agrees with the clock of the object store."""
    wall_s, steady_s = (
        now - before for now, before in zip((time.time(), time.monotonic()), subject.began_s, strict=True)
    )
    if abs(wall_s - steady_s) > _JUMP_S:
        text = f"the clock was moved by {wall_s - steady_s:+.1f} s while this ran"
        yield CheckResult("clock", Status.WARNING, text, "find out what sets it; retention is measured by this clock")
    elif time.time() < _BUILT_S:
        yield CheckResult("clock", Status.PROBLEM, f"it says {_date(time.time())}, before this was built", _SYNC)
    elif subject.is_remote and (date_s := _date_of(subject)) is not None:
        yield from _skewed("the object store", date_s)
    else:
        yield CheckResult("clock", Status.OK, f"it says {_date(time.time())}, and runs evenly")


def check_commits(subject: DoctorContext) -> Iterator[CheckResult]:
    """Check that the newest commit is not in the future."""
    log = subject.place.log()
    newest = log.commit(log.verify())
    ahead_s = newest.timestamp_ms / 1000 - time.time()
    text = f"the newest commit, ts {newest.version}, is of {_date(newest.timestamp_ms / 1000)}"
    if ahead_s > _SKEW_WARNING_S:
        grade = Status.PROBLEM if ahead_s > _SKEW_PROBLEM_S else Status.WARNING
        found = f"{text}: {_span(ahead_s)} ahead of this clock"
        yield CheckResult("commits", grade, found, f"find out whose clock is wrong; {_SYNC}")
    else:
        yield CheckResult("commits", Status.OK, text)


def _skewed(whose: str, theirs_s: float) -> Iterator[CheckResult]:
    skew_s = time.time() - theirs_s
    off_s = max(0.0, abs(skew_s) - _RESOLUTION_S)
    text = f"it says {_date(time.time())}: {_span(abs(skew_s))} {'ahead of' if skew_s > 0 else 'behind'} {whose}"
    if off_s > _SKEW_WARNING_S:
        yield CheckResult("clock", Status.PROBLEM if off_s > _SKEW_PROBLEM_S else Status.WARNING, text, _SYNC)
    else:
        yield CheckResult("clock", Status.OK, text)


def _date_of(subject: DoctorContext) -> float | None:
    """Return the time of the server of an object store, asked without name or key; none if it does not answer."""
    endpoint = _endpoint(subject)
    if endpoint is None:
        return None
    own = {name.lower(): value for name, value in subject.options.items()}
    ca_file = own.get(CA_FILE) or subject.variables.get("AWS_CA_BUNDLE") or subject.variables.get("SSL_CERT_FILE")
    trusted = ssl.create_default_context(cafile=ca_file) if endpoint.startswith("https:") else None
    try:
        with urlopen(Request(endpoint, method="HEAD"), timeout=_DATE_S, context=trusted) as answer:  # noqa: S310 - as below
            date = answer.headers.get("Date")
    except HTTPError as error:  # whatever it refuses, it says when
        date = error.headers.get("Date")
    except (URLError, OSError, ValueError):
        return None
    return None if date is None else parsedate_to_datetime(date).timestamp()


def _endpoint(subject: DoctorContext) -> str | None:
    """Return the HTTP address of the server of an object store; none if it is unknown."""
    own = {name.lower(): value for name, value in subject.options.items()}
    names = ("aws_endpoint_url", "aws_endpoint", "endpoint_url", "endpoint")
    named = next((own[name] for name in names if name in own), subject.variables.get("AWS_ENDPOINT_URL"))
    if named is not None:
        return named if named.startswith(("http://", "https://")) else None
    if (subject.store or "").startswith("s3"):
        region = own.get("aws_region") or subject.variables.get("AWS_REGION") or "us-east-1"
        return f"https://s3.{region}.amazonaws.com/"
    return "https://storage.googleapis.com/" if (subject.store or "").startswith("gs://") else None


def _date(at_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(at_s))


def _span(seconds: float) -> str:
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
