"""Checks of a store itself: its identity, log, files, version, migrations, builtins and leader.

Reads only. By default the newest state and the list of files; with --deep every row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.replica import newest_state
from catalog.engine.migrate.preflight import preflight
from catalog.engine.migrate.recorder import RunState, read_events
from catalog.engine.migrate.system_rows import SystemRows
from catalog.engine.schema_change.copying import tables_state
from catalog.engine.schema_change.replica import TablesReplica
from catalog.engine.schema_change.signs import StoredSigns
from catalog.engine.schema_change.steps import RUN, ChangeStatus
from catalog.engine.storage.heartbeat import LeaderStatus, is_leader_alive
from catalog.engine.storage.identity import require_identity
from catalog.engine.storage.layout import STASH, shard_uri, tables_uri
from catalog.engine.store.leader_upgrade import find_builtins_error
from catalog.engine.store.snapshot import StoreSnapshot
from catalog.errors import (
    CatalogError,
    ChecksumError,
    FindingsError,
    StaleGenerationError,
    TornLogError,
    UnfinishedStepError,
)
from catalog.tools.doctor.runner import CheckResult, DoctorContext, Status, from_error
from catalog.tools.doctor.storage_checks import storage_of
from catalog.tools.fsck.store import check_store
from catalog.tools.repair import Diagnosis, UnfinishedRun, diagnose

_NAMED_MAX = 3


def check_identity(subject: DoctorContext) -> Iterator[CheckResult]:
    """Check that there is a store of this project."""
    storage = storage_of(subject)
    if storage.found() is not None or not any(storage.paths("")):
        yield CheckResult("store", Status.SKIPPED, "there is none yet")
        return
    identity = require_identity(storage, subject.project.name)
    copy = f", a copy of {identity.copy_of}" if identity.copy_of else ""
    yield CheckResult("store", Status.OK, f"{identity.id}, of the project {identity.project}{copy}")


def check_log(subject: DoctorContext) -> Iterator[CheckResult]:
    """Check that the newest state can be read and all of its files exist; with --deep, check everything."""
    if subject.is_deep:
        yield _fsck(subject)
        return
    yield _look_at("log", subject.place.log())
    tables_log = subject.place.tables_log()
    if tables_state(tables_log) is not None:
        yield _look_at("tables", tables_log)
        yield from _abandoned(subject, tables_log)


def _look_at(name: str, log: DeltaLog) -> CheckResult:
    """Check that the newest state of a log can be read, and all of its files are there."""
    while True:
        state = newest_state(log)
        sizes = {file.path: file.size for file in log.files()}
        missing = [path for path in state.files if path not in sizes]
        if not missing or newest_state(log).frontier <= state.version:
            break  # else they were retired since the log was read
    changed = [path for path, file in state.files.items() if path in sizes and sizes[path] != file.size]
    if missing or changed:
        named = ", ".join([*missing, *changed][:_NAMED_MAX])
        found = f"{len(missing)} files are missing and {len(changed)} have another size than written: {named}"
        fix = "run `catalog debug fsck` for details; restore a copy of the store"
        return CheckResult(name, Status.PROBLEM, found, fix)
    found = f"ts {state.version}, {len(state.files)} files, none missing; their rows were not read, which --deep does"
    return CheckResult(name, Status.OK, found)


def _abandoned(subject: DoctorContext, log: DeltaLog) -> Iterator[CheckResult]:
    """Report schema changes that no process carries on."""
    replica, signs = TablesReplica.open(log), StoredSigns(subject.place.storage)
    for number, row in replica.changes().items():
        status = ChangeStatus(row.status)
        if status in {*RUN, ChangeStatus.PENDING} and not signs.facts(f"change-{number}"):
            found = f"schema change {number} is {status.name}, and {row.owner or 'no process'} shows no sign of life"
            yield CheckResult("tables", Status.WARNING, found, "`catalog ddl adopt` carries it on")


def _fsck(subject: DoctorContext) -> CheckResult:
    report = check_store(subject.place)
    counts = f"{report.entries:,} entries, {report.files:,} files, {report.rows:,} rows"
    if report.ok:
        rest = f"; {len(report.findings)} to note" if report.findings else ""
        return CheckResult("log", Status.OK, f"everything is in order: {counts}{rest}")
    codes = Counter(str(finding.code) for finding in report.findings if finding.severity == "error")
    named = ", ".join(f"{code} {count} times" for code, count in codes.most_common(_NAMED_MAX))
    fix = "`catalog debug fsck` lists each, and whether and how it can be repaired"
    error = FindingsError(subject.place.uri, codes.total(), fix)
    return CheckResult("log", Status.PROBLEM, f"{codes.total()} findings in {counts}: {named}", fix, error)


def check_version(subject: DoctorContext) -> Iterator[CheckResult]:
    """Check that this build can serve the store, and that an upgrade could run."""
    store, project = StoreSnapshot.of(subject.place), subject.project
    version = store.version
    store.require_types()
    pending = project.current - version
    if not pending:
        yield CheckResult("version", Status.OK, f"{version}, the version of this build")
        return
    text = f"{version}, and this build has {project.current}: migrations pending: {pending}"
    yield CheckResult("version", Status.WARNING, text, "`catalog apply --dry-run` shows what they do")
    try:
        preflight(project, store.place.uri, store.state, version, has_session=subject.spark is not None)
    except CatalogError as error:
        yield from_error("upgrade", error)


def check_migrations(subject: DoctorContext) -> Iterator[CheckResult]:
    """Check that the applied migrations are those of this build, that none was interrupted, and all entries."""
    place, found = subject.place, diagnose(subject.place)
    yield from _damaged(place.uri, found)
    rows = StoreSnapshot.of(place).system_rows
    problems = [*(_running(place.uri, run) for run in found.runs), *_failed(place.uri, rows)]
    if found.stray_step:
        text = f"a migration to version {found.stray_step} is marked RUNNING, but has no event"
        problems.append(CheckResult("migrations", Status.PROBLEM, text, "run `catalog repair`"))
    for row in found.contradictions:
        fix = "run `catalog repair`" if row.is_mendable else "restore a copy of the store"
        problems.append(CheckResult("migrations", Status.PROBLEM, str(row), fix))
    if found.checksums:
        problems.append(from_error("migrations", ChecksumError(", ".join(own.step for own in found.checksums))))
    yield from problems or [CheckResult("migrations", Status.OK, "none is unfinished, and all are those of this build")]


def _damaged(uri: str, found: Diagnosis) -> Iterator[CheckResult]:
    """Report damaged entries that the newest rows do not need, and those of shards and tables."""
    if found.damaged is not None:
        yield from_error("log", TornLogError(f"{uri}/{STASH}", found.damaged.version, found.damaged.found))
    for shard in found.shards:
        yield from_error("log", TornLogError(shard_uri(uri, shard.id), shard.damaged.version, shard.damaged.found))
    if found.tables is not None:
        yield from_error("tables", TornLogError(tables_uri(uri), found.tables.version, found.tables.found))


def _running(uri: str, run: UnfinishedRun) -> CheckResult:
    if run.lives:
        return CheckResult("migrations", Status.WARNING, f"{run.step} is running", "wait for it before you deploy")
    return from_error("migrations", UnfinishedStepError(uri, run.step, "RUNNING", "its process is dead"))


def _failed(uri: str, journal: SystemRows) -> Iterator[CheckResult]:
    """Report the step that is due, if its last run failed."""
    newest = {int(event.value.version): event for event in read_events(journal)}.get(journal.version + 1)
    if newest is not None and newest.state is RunState.ERROR:
        yield from_error("migrations", UnfinishedStepError(uri, newest.value.name, "ERROR", newest.value.error))


def check_builtins(subject: DoctorContext) -> Iterator[CheckResult]:
    """Check that the builtins are those of this build, so that members can join."""
    error = find_builtins_error(subject.place)
    if error is not None:
        yield from_error("builtins", error)
    elif subject.place.version() != subject.project.current:
        yield CheckResult("builtins", Status.SKIPPED, "not checked: the upgrade migrates them")
    else:
        yield CheckResult("builtins", Status.OK, "members of this build can join")


def check_leader(subject: DoctorContext) -> Iterator[CheckResult]:
    """Check the leader of the store, its heartbeat, and that this deployment could take over."""
    store = StoreSnapshot.of(subject.place)
    fence, holder = store.state.fence, store.holder or "an unknown process"
    text = f"generation {fence.generation}, epoch {fence.epoch}"
    if subject.deploy_generation is not None and subject.deploy_generation < fence.generation:
        yield from_error("leader", StaleGenerationError(subject.deploy_generation, fence.generation))
    if not fence.epoch:
        yield CheckResult("leader", Status.OK, f"it was never led ({text})")
        return
    match store.leader_status:
        case LeaderStatus.RELEASED:
            yield CheckResult("leader", Status.OK, f"{holder} led it last, and released it ({text})")
        case LeaderStatus.BEATING if is_leader_alive(store.storage, fence):
            yield CheckResult("leader", Status.OK, f"{holder} leads it, and its heartbeat is fresh ({text})")
        case _:
            found = f"{holder} led it last, did not release it, and has no heartbeat ({text})"
            fix = "find out why it died; the next `catalog start` takes over"
            yield CheckResult("leader", Status.WARNING, found, fix)
