"""The verbs that look at a store and leave it as it is: info, validate, show, config. They print nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalog.cli.answers import (
    CheckedMigration,
    CheckedSnapshot,
    Configured,
    Info,
    SettingLine,
    Validated,
    VersionLine,
)
from catalog.cli.environment import Environment, Look
from catalog.cli.results import Answer
from catalog.engine.events import Event, State, read_events
from catalog.engine.plan import known_checksums
from catalog.errors import (
    CatalogError,
    ChecksumError,
    GeneratedCodeError,
    StoreTooNewError,
    StoreTooOldError,
    UndoneError,
    UnfinishedStepError,
    UpgradeNeededError,
)
from catalog.project import Project

if TYPE_CHECKING:
    from catalog.cli.settings import Settings


def info(environment: Environment, *, check: bool = False) -> Answer:
    """Where a store stands; with `check`, an answer that says so if it is not up to date and in order."""
    look = environment.look()
    project, events = environment.project, read_events(look.journal)
    found = Info(
        store=look.storage.uri,
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
    return Answer(found, _wrong(look, found) if check else None)


def validate(environment: Environment) -> Answer:
    """Compare what the store recorded of its migrations with those of this build, and its snapshots with themselves."""
    look = environment.look()
    project = environment.project
    applied = _applied(read_events(look.journal))
    migrations = tuple(_checked(project, event) for event in applied.values())
    snapshots = tuple(_snapshot(project, number) for number in range(project.first_proto, project.current + 1))
    found = Validated(look.storage.uri, look.version, migrations, snapshots)
    wrong = [own.name for own in migrations if own.verdict == "differs"]
    wrong += [f"the types of version {own.version}" for own in snapshots if own.verdict != "ok"]
    return Answer(found, ChecksumError(", ".join(wrong)) if wrong else None)


def show_config(settings: Settings) -> Answer:
    """Every setting, and where it came from; secrets are not told."""
    return Answer(Configured(tuple(SettingLine(own.name, own.shown, own.source) for own in settings.all.values())))


def _lines(project: Project, look: Look, events: Sequence[Event]) -> Iterator[VersionLine]:
    """Every version that this build knows, and every other that a migration of the store led to or came from."""
    by_version: dict[int, list[Event]] = {}
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


def _line(project: Project, version: int, runs: Sequence[Event]) -> VersionLine:
    newest = runs[-1].value

    def counted(name: str) -> int | None:
        return int(getattr(newest, name)) if newest.HasField(name) else None

    return VersionLine(
        version,
        str(newest.name),
        runs[-1].state.name,
        _checked(project, runs[-1]).verdict if newest.checksum else None,
        int(newest.previous),
        int(newest.started_ms),
        counted("completed_ms"),
        counted("rows_before"),
        counted("rows_after"),
        counted("bytes_before"),
        counted("bytes_after"),
        str(newest.build),
        str(newest.error),
        len(runs),
    )


def _wrong(look: Look, found: Info) -> CatalogError | None:
    try:
        look.environment.project.check_version(look.version)
    except (StoreTooOldError, StoreTooNewError) as error:
        return error
    differing = [line.name for line in found.versions if line.checksum == "differs" and line.state == "MIGRATED"]
    if differing:
        return ChecksumError(", ".join(differing))
    for line in found.versions:
        if line.state in {State.RUNNING.name, State.ERROR.name}:
            return UnfinishedStepError(found.store, line.name, line.state, line.error)
    from catalog.engine.run import is_undone  # noqa: PLC0415 - as in `_applied`

    if found.pending and is_undone(look.journal, look.environment.project):
        return UndoneError(look.version, found.build_version)
    if found.pending:
        return UpgradeNeededError(found.store, look.version, found.build_version)
    return None


def _applied(events: Sequence[Event]) -> Mapping[int, Event]:
    from catalog.engine.run import applied  # noqa: PLC0415 - `info` answers sooner without it

    return applied(events)


def _checked(project: Project, event: Event) -> CheckedMigration:
    """What this build makes of a recorded checksum."""
    name, previous = str(event.value.name), int(event.value.previous)
    recorded = str(event.value.checksum)
    module = None
    if project.minimum <= previous < project.current:
        module = project.migration_from(previous, project.build)
    if module is None:
        return CheckedMigration(name, int(event.value.version), "gone", recorded, ())
    present = known_checksums(project, module)
    verdict = "ok" if recorded in present else "differs"
    return CheckedMigration(name, int(event.value.version), verdict, recorded, tuple(sorted(present)))


def _snapshot(project: Project, version: int) -> CheckedSnapshot:
    """Whether the frozen types of a version are those that this build was made with, and those that were recorded."""
    try:
        types: Any = project.types(version)
    except GeneratedCodeError as error:
        return CheckedSnapshot(version, "differs", error.what)
    recorded = _recorded(Path(types.__file__).parents[2])
    if recorded.get(str(version), types.DESCRIPTOR_HASH) != types.DESCRIPTOR_HASH:
        return CheckedSnapshot(version, "differs", "proto/hashes.json has another hash for them")
    return CheckedSnapshot(version, "ok")


@cache
def _recorded(root: Path) -> Mapping[str, str]:
    """The hashes of snapshots, where there is a source tree; an installed package has none beside it."""
    path = root / "proto" / "hashes.json"
    if not path.is_file():
        return {}
    found = json.loads(path.read_text(encoding="utf-8"))
    return {version: own["hash"] for version, own in found["snapshots"].items()}
