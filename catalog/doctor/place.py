"""What is examined of the place that a store is at: whether it answers, what may be done there, room, and clocks.

A folder is written to, and left as it was. An object store is only listed and read, unless it may be probed.
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

from catalog.doctor.examination import Examined, Grade, Subject
from catalog.doctor.machine import judge_room
from catalog.errors import StoreReadOnlyError
from catalog.log.delta import DeltaLog
from catalog.log.object_storage import CA_FILE
from catalog.log.protocol import State
from catalog.log.storage import NOTHING, Storage, open_storage
from catalog.stash.belongings import STASH
from catalog.stash.identity import PATH
from catalog.stash.probe import FOLDER, Probed, probe

_IMPATIENT: Final = {"max_retries": "2", "retry_timeout": "10s", "timeout": "10s", "connect_timeout": "5s"}
"""Storage options of an examination: whoever waits for it wants to know that a store does not answer."""
_SKEW_WARNING_S: Final = 10.0
_SKEW_PROBLEM_S: Final = 900.0
"""Object stores refuse requests that are signed so far from their own time."""
_RESOLUTION_S: Final = 1.0
"""Of what servers say, in whole seconds."""
_JUMP_S: Final = 1.0
_DATE_S: Final = 5.0
_NAMED_MAX: Final = 3
_BUILT_S: Final = 1_790_000_000.0
"""Before this build was made: a clock that says so was never set."""
_SYNC = "let the clock be set over the network, such as by systemd-timesyncd or chrony"
_ROOM: Final = 1.5
"""As much as an upgrade that rewrites everything needs beside the present files."""


def storage_of(subject: Subject) -> Storage:
    """Where the store is; one that does not answer is given up soon."""
    options = {**_IMPATIENT, **subject.options} if subject.is_remote else subject.options
    return open_storage(str(subject.store), options)


def log_of(subject: Subject) -> DeltaLog:
    return DeltaLog(f"{storage_of(subject).uri}/{STASH}", subject.options)


def state_of(log: DeltaLog) -> State:
    """The newest state, after checking that the newest entry is whole."""
    return log.state(log.verify())


def look_at_address(subject: Subject) -> Iterator[Examined]:
    """Whether something answers there, and may be listed and read."""
    storage = storage_of(subject)
    storage.read(PATH)
    obstacle = storage.found()
    if obstacle is None:
        names = sum(1 for _ in zip(storage.paths(""), range(1000), strict=False))
        yield Examined("address", Grade.OK, f"{storage.uri} can be listed: {names} names")
    elif obstacle == NOTHING:
        fix = "`catalog init` makes a store there; else correct the address"
        yield Examined("address", Grade.WARNING, f"{storage.uri}: {obstacle}", fix)
    else:
        yield Examined("address", Grade.PROBLEM, f"{storage.uri}: {obstacle}", "correct the address of the store")


def look_at_rights(subject: Subject) -> Iterator[Examined]:
    """Whether files can be written there as a store needs it: tried, if that leaves no trace or is agreed to."""
    storage = storage_of(subject)
    if storage.remote and not subject.probes:
        told = f"{storage.uri} can be read; whether it can be written to was not tried"
        yield Examined("rights", Grade.OK, f"{told}: --probe writes an object below {FOLDER}/ and deletes it")
        return
    if not storage.remote and storage.found() is not None:
        yield _above(Path(storage.uri))
        return
    try:
        found = probe(storage, subject.options)
    except StoreReadOnlyError as error:
        fix = "give this user the right to write there; reading needs none: `catalog start --read-only`"
        yield Examined("rights", Grade.WARNING, f"{storage.uri} can only be read: {error.reason}", fix)
        return
    if not storage.remote and (closed := _closed(Path(storage.uri))):
        named = ", ".join(map(str, closed[:_NAMED_MAX]))
        fix = f"give the folders of the store to one user: chown -R {os.geteuid()} {storage.uri}"
        yield Examined("rights", Grade.PROBLEM, f"this user may not write to {len(closed)} folders: {named}", fix)
    else:
        yield _judged(storage, found)
    if found.modified_ms is not None:
        clock = _skewed(f"the clock of {storage.uri}", found.modified_ms / 1000)
        yield from (own for own in clock if storage.remote or own.grade is not Grade.OK)


def _closed(folder: Path) -> list[Path]:
    """The folders of a store that can be written to only by others, as when somebody else made them."""
    effective = os.access in os.supports_effective_ids
    mode = os.W_OK | os.X_OK
    return [Path(where) for where, _, _ in os.walk(folder) if not os.access(where, mode, effective_ids=effective)]


def _above(folder: Path) -> Examined:
    above = next(parent for parent in folder.parents if parent.exists())
    if os.access(above, os.W_OK | os.X_OK):
        return Examined("rights", Grade.OK, f"a store can be made at {folder}: {above} can be written to")
    fix = "give this user the right to write there, or name another place"
    return Examined("rights", Grade.WARNING, f"no store can be made at {folder}: {above} can only be read", fix)


def _judged(storage: Storage, found: Probed) -> Examined:
    if not found.is_exclusive:
        fix = "use an object store with conditional puts: on this one two commits could take one version"
        told = f"{storage.uri} lets a second writer replace what it is to refuse"
        return Examined("rights", Grade.PROBLEM, told, fix)
    if not found.is_faithful:
        told = f"{storage.uri} does not give back what was written last"
        return Examined("rights", Grade.PROBLEM, told, "use a storage that does; a cache may stand before it")
    how = "put conditionally, replaced, read and deleted" if storage.remote else "written, synced, renamed and removed"
    return Examined("rights", Grade.OK, f"a file was {how} at {storage.uri}")


def look_at_room(subject: Subject) -> Iterator[Examined]:
    """Whether the disk of a folder has room for an upgrade that rewrites everything."""
    folder = Path(storage_of(subject).uri)
    there = folder if folder.exists() else next(parent for parent in folder.parents if parent.exists())
    yield from judge_room("disk", there, int(_ROOM * _live_bytes(subject)))


def _live_bytes(subject: Subject) -> int:
    try:
        return sum(file.size for file in state_of(log_of(subject)).files.values())
    except Exception:  # noqa: BLE001 - what is wrong with the store another examination says
        return 0


def look_at_clock(subject: Subject) -> Iterator[Examined]:
    """Whether the clock runs evenly, was ever set, and agrees with the clocks of others."""
    wall_s, steady_s = (
        now - before for now, before in zip((time.time(), time.monotonic()), subject.began_s, strict=True)
    )
    if abs(wall_s - steady_s) > _JUMP_S:
        told = f"the clock was moved by {wall_s - steady_s:+.1f} s while this ran"
        yield Examined("clock", Grade.WARNING, told, "see who sets it; the past is kept by this clock")
    elif time.time() < _BUILT_S:
        yield Examined("clock", Grade.PROBLEM, f"it says {_date(time.time())}, before this was built", _SYNC)
    elif subject.is_remote and (date_s := _date_of(subject)) is not None:
        yield from _skewed("the object store", date_s)
    else:
        yield Examined("clock", Grade.OK, f"it says {_date(time.time())}, and runs evenly")


def look_at_commits(subject: Subject) -> Iterator[Examined]:
    """Whether the newest commit is of the future."""
    log = log_of(subject)
    newest = log.commit(log.verify())
    ahead_s = newest.timestamp_ms / 1000 - time.time()
    told = f"the newest commit, ts {newest.version}, is of {_date(newest.timestamp_ms / 1000)}"
    if ahead_s > _SKEW_WARNING_S:
        grade = Grade.PROBLEM if ahead_s > _SKEW_PROBLEM_S else Grade.WARNING
        found = f"{told}: {_span(ahead_s)} ahead of this clock"
        yield Examined("commits", grade, found, f"see whose clock is wrong; {_SYNC}")
    else:
        yield Examined("commits", Grade.OK, told)


def _skewed(whose: str, theirs_s: float) -> Iterator[Examined]:
    skew_s = time.time() - theirs_s
    off_s = max(0.0, abs(skew_s) - _RESOLUTION_S)
    told = f"it says {_date(time.time())}: {_span(abs(skew_s))} {'ahead of' if skew_s > 0 else 'behind'} {whose}"
    if off_s > _SKEW_WARNING_S:
        yield Examined("clock", Grade.PROBLEM if off_s > _SKEW_PROBLEM_S else Grade.WARNING, told, _SYNC)
    else:
        yield Examined("clock", Grade.OK, told)


def _date_of(subject: Subject) -> float | None:
    """What the server of an object store says the time is, in answer to a request without a name or a key."""
    endpoint = _endpoint(subject)
    if endpoint is None:
        return None
    own = {name.lower(): value for name, value in subject.options.items()}
    ca_file = own.get(CA_FILE) or subject.variables.get("AWS_CA_BUNDLE") or subject.variables.get("SSL_CERT_FILE")
    trusted = ssl.create_default_context(cafile=ca_file) if endpoint.startswith("https:") else None
    try:
        with urlopen(Request(endpoint, method="HEAD"), timeout=_DATE_S, context=trusted) as answer:  # noqa: S310 - as below
            said = answer.headers.get("Date")
    except HTTPError as error:  # whatever it refuses, it says when
        said = error.headers.get("Date")
    except (URLError, OSError, ValueError):
        return None
    return None if said is None else parsedate_to_datetime(said).timestamp()


def _endpoint(subject: Subject) -> str | None:
    """The server behind an address, of which it is known that it answers by HTTP."""
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
