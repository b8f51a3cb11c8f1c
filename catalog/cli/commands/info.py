"""`catalog info`: the version of a store, its earlier versions, and those it can be upgraded to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult
from catalog.cli.commands.validate import check_migration
from catalog.engine.migrate.recorder import MigrationEvent, RunState, read_events
from catalog.errors import (
    CatalogError,
    ChecksumError,
    OtherTypesError,
    StoreTooNewError,
    StoreTooOldError,
    UndoneError,
    UnfinishedStepError,
    UpgradeNeededError,
)

if TYPE_CHECKING:
    from catalog.cli.app import Invocation
    from catalog.engine.base.project import Project
    from catalog.engine.store.snapshot import StoreSnapshot


@dataclass(frozen=True, slots=True)
class VersionLine:
    """A version, and the newest run of the step that leads to it."""

    version: int
    name: str
    state: str
    """PENDING, RUNNING, MIGRATED, ERROR, UNDONE; INITIAL for the version that the store began with; else empty."""
    checksum: str | None
    """`ok`, `differs`, `gone` (this build has no migration to that version), or None if no checksum was recorded."""
    previous: int | None = None
    started_ms: int | None = None
    completed_ms: int | None = None
    rows_before: int | None = None
    rows_after: int | None = None
    bytes_before: int | None = None
    bytes_after: int | None = None
    build: str = ""
    error: str = ""
    runs: int = 0


@dataclass(frozen=True, slots=True)
class Info:
    store: str
    id: str
    copy_of: str | None
    version: int
    build: str
    build_version: int
    build_minimum: int
    ts: int
    frontier: int
    deploy_generation: int
    epoch: int
    holder: str
    pending: int
    versions: tuple[VersionLine, ...]


def info(run: Invocation, *, check: bool) -> CommandResult:
    """Describe a store; with `check`, add an error if it is not up to date and in order."""
    look = run.target.look()
    project, events = run.target.project, read_events(look.system_rows)
    found = Info(
        store=look.place.uri,
        id=look.identity.id,
        copy_of=look.identity.copy_of,
        version=look.version,
        build=str(project.build),
        build_version=project.current,
        build_minimum=project.minimum,
        ts=look.state.version,
        frontier=look.state.frontier,
        deploy_generation=look.state.fence.generation,
        epoch=look.state.fence.epoch,
        holder=look.holder,
        pending=max(0, project.current - look.version),
        versions=tuple(_lines(project, look, events)),
    )
    return CommandResult(found, _problem(look, found) if check else None)


def _lines(project: Project, look: StoreSnapshot, events: Sequence[MigrationEvent]) -> Iterator[VersionLine]:
    """List every version that this build knows, and every other one that a migration of the store names."""
    by_version: dict[int, list[MigrationEvent]] = {}
    for event in events:
        by_version.setdefault(int(event.value.version), []).append(event)
    recorded = {*by_version, *(int(event.value.previous) for event in events), look.version}
    initial = min((int(event.value.previous) for event in events), default=look.version)
    for version in sorted({*range(project.minimum, project.current + 1), *recorded}):
        runs = by_version.get(version, [])
        if runs:
            yield _line(project, version, runs)
        else:
            name = f"v{version - 1}_to_v{version}" if version > project.minimum else ""
            state = "INITIAL" if version == initial else "PENDING" if version > look.version else ""
            yield VersionLine(version, name if state == "PENDING" else "", state, None)


def _line(project: Project, version: int, runs: Sequence[MigrationEvent]) -> VersionLine:
    newest = runs[-1].value

    def optional(name: str) -> int | None:
        return int(getattr(newest, name)) if newest.HasField(name) else None

    return VersionLine(
        version,
        str(newest.name),
        runs[-1].state.name,
        check_migration(project, runs[-1]).verdict if newest.checksum else None,
        int(newest.previous),
        int(newest.started_ms),
        optional("completed_ms"),
        optional("rows_before"),
        optional("rows_after"),
        optional("bytes_before"),
        optional("bytes_after"),
        str(newest.build),
        str(newest.error),
        len(runs),
    )


def _problem(look: StoreSnapshot, found: Info) -> CatalogError | None:
    """Return the most important reason why the store is not up to date and in order."""
    try:
        look.require_types()
    except (StoreTooOldError, StoreTooNewError, OtherTypesError) as error:
        return error
    differing = [line.name for line in found.versions if line.checksum == "differs" and line.state == "MIGRATED"]
    if differing:
        return ChecksumError(", ".join(differing))
    for line in found.versions:
        if line.state in {RunState.RUNNING.name, RunState.ERROR.name}:
            return UnfinishedStepError(found.store, line.name, line.state, line.error)
    from catalog.engine.migrate.executor import is_undone  # noqa: PLC0415 - `info` answers sooner without it

    if found.pending and is_undone(look.system_rows, look.place.project):
        return UndoneError(look.version, found.build_version)
    if found.pending:
        return UpgradeNeededError(found.store, look.version, found.build_version)
    from catalog.engine.store.leader_upgrade import find_builtins_error  # noqa: PLC0415 - as above

    return find_builtins_error(look.place)
