"""What is examined of a store itself: what it is, its log and files, its version, its migrations and its leader.

Reads only. By default as little as tells; deeply, every row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from catalog.doctor.examination import Examined, Grade, Subject, from_error
from catalog.doctor.place import log_of, state_of, storage_of
from catalog.engine.events import State, read_events
from catalog.engine.journal import Journal
from catalog.engine.run import preflight
from catalog.errors import (
    CatalogError,
    ChecksumError,
    FindingsError,
    NotInitializedError,
    StaleGenerationError,
    UnfinishedStepError,
)
from catalog.health import check_store
from catalog.log.delta import DeltaLog
from catalog.log.protocol import Mark
from catalog.project import Place
from catalog.repairing import Run, diagnose
from catalog.stash.collections import Registry
from catalog.stash.heartbeat import Sign, is_led, sign_of
from catalog.stash.identity import require_identity

_NAMED_MAX = 3


def look_at_identity(subject: Subject) -> Iterator[Examined]:
    """Whether a store of this project is there."""
    storage = storage_of(subject)
    if storage.found() is not None or not any(storage.paths("")):
        yield Examined("store", Grade.SKIPPED, "none is there yet")
        return
    identity = require_identity(storage, subject.project.name)
    copy = f", a copy of {identity.copy_of}" if identity.copy_of else ""
    yield Examined("store", Grade.OK, f"{identity.id}, of the project {identity.project}{copy}")


def look_at_log(subject: Subject) -> Iterator[Examined]:
    """Whether the newest state can be read, and all of its files are there; deeply, whether everything is in order."""
    if subject.is_deep:
        yield _whole(subject)
        return
    log = log_of(subject)
    state = state_of(log)
    sizes = {file.path: file.size for file in log.files()}
    missing = [path for path in state.files if path not in sizes]
    changed = [path for path, file in state.files.items() if path in sizes and sizes[path] != file.size]
    if missing or changed:
        named = ", ".join([*missing, *changed][:_NAMED_MAX])
        found = f"{len(missing)} files are gone and {len(changed)} are not as they were written: {named}"
        yield Examined("log", Grade.PROBLEM, found, "`catalog debug fsck` says more; restore a copy of the store")
        return
    found = f"ts {state.version}, {len(state.files)} files, all there; their rows were not read, which --deep does"
    yield Examined("log", Grade.OK, found)


def _whole(subject: Subject) -> Examined:
    storage = storage_of(subject)
    report = check_store(subject.project, storage, subject.options)
    counts = f"{report.entries:,} entries, {report.files:,} files, {report.rows:,} rows"
    if report.ok:
        rest = f"; {len(report.findings)} to note" if report.findings else ""
        return Examined("log", Grade.OK, f"everything is in order: {counts}{rest}")
    codes = Counter(str(finding.code) for finding in report.findings if finding.severity == "error")
    named = ", ".join(f"{code} {count} times" for code, count in codes.most_common(_NAMED_MAX))
    fix = "`catalog debug fsck` lists each, and whether and how it can be repaired"
    error = FindingsError(storage.uri, codes.total(), fix)
    return Examined("log", Grade.PROBLEM, f"{codes.total()} findings in {counts}: {named}", fix, error)


def look_at_version(subject: Subject) -> Iterator[Examined]:
    """Whether this build can serve the store, and what an upgrade would need."""
    log, project = log_of(subject), subject.project
    state = state_of(log)
    version = state.marks.get(Mark.STASH_VERSION)
    if version is None:
        raise NotInitializedError(log.uri)
    project.check_version(version)
    pending = project.current - version
    if not pending:
        yield Examined("version", Grade.OK, f"{version}, that of this build")
        return
    told = f"{version}, and this build has {project.current}: migrations pending: {pending}"
    yield Examined("version", Grade.WARNING, told, "`catalog apply --dry-run` shows what they do")
    try:
        preflight(project, storage_of(subject).uri, state, version, has_session=subject.spark is not None)
    except CatalogError as error:
        yield from_error("upgrade", error)


def look_at_migrations(subject: Subject) -> Iterator[Examined]:
    """Whether what was applied is what this build has, and nothing was left in the middle."""
    uri, log = storage_of(subject).uri, log_of(subject)
    found = diagnose(Place(uri, subject.options, subject.project))
    problems = [*(_running(uri, run) for run in found.runs), *_failed(uri, _journal(subject, log))]
    if found.stray_step:
        told = f"a migration to version {found.stray_step} is said to run, and there is no event of it"
        problems.append(Examined("migrations", Grade.PROBLEM, told, "`catalog repair` mends that"))
    if found.checksums:
        problems.append(from_error("migrations", ChecksumError(", ".join(own.step for own in found.checksums))))
    yield from problems or [Examined("migrations", Grade.OK, "none is unfinished, and all are those of this build")]


def _running(uri: str, run: Run) -> Examined:
    if run.lives:
        return Examined("migrations", Grade.WARNING, f"{run.step} is running", "wait for it before you deploy")
    return from_error("migrations", UnfinishedStepError(uri, run.step, "RUNNING", "its process is dead"))


def _failed(uri: str, journal: Journal) -> Iterator[Examined]:
    """The step that is due, if its last run failed."""
    newest = {int(event.value.version): event for event in read_events(journal)}.get(journal.version + 1)
    if newest is not None and newest.state is State.ERROR:
        yield from_error("migrations", UnfinishedStepError(uri, newest.value.name, "ERROR", newest.value.error))


def _journal(subject: Subject, log: DeltaLog) -> Journal:
    state = state_of(log)
    return Journal(log, Registry.of(subject.project.current_types), state.fence, state)


def look_at_leader(subject: Subject) -> Iterator[Examined]:
    """Who leads the store, whether it lives, and whether this deployment could follow it."""
    storage, log = storage_of(subject), log_of(subject)
    journal = _journal(subject, log)
    fence = journal.state.fence
    told = f"generation {fence.generation}, epoch {fence.epoch}"
    if subject.deploy_generation is not None and subject.deploy_generation < fence.generation:
        yield from_error("leader", StaleGenerationError(subject.deploy_generation, fence.generation))
    if not fence.epoch:
        yield Examined("leader", Grade.OK, f"nobody has led it yet ({told})")
        return
    rows: Sequence[tuple[Any, Any]] = journal.rows("fence_token")
    holder = next((str(value.holder) for _, value in rows), "somebody")
    match sign_of(storage, fence):
        case Sign.RELEASED:
            yield Examined("leader", Grade.OK, f"{holder} led it last, and has ended ({told})")
        case Sign.BEATING if is_led(storage, fence):
            yield Examined("leader", Grade.OK, f"{holder} leads it, and shows signs of life ({told})")
        case _:
            found = f"{holder} led it last, did not say that it ended, and shows no sign of life ({told})"
            fix = "see why it died; the next `catalog start` takes over"
            yield Examined("leader", Grade.WARNING, found, fix)
