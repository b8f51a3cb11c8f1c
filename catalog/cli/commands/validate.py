"""`catalog validate`: compare recorded checksums with the migrations and types of this build."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalog.cli.answer import CommandResult
from catalog.engine.migrate.recorder import MigrationEvent, read_events
from catalog.errors import (
    CatalogError,
    ChecksumError,
    GeneratedCodeError,
    OtherTypesError,
    StoreTooNewError,
    StoreTooOldError,
)

if TYPE_CHECKING:
    from catalog.cli.app import Invocation
    from catalog.engine.base.project import Project


@dataclass(frozen=True, slots=True)
class CheckedMigration:
    name: str
    version: int
    verdict: str
    """`ok`, `differs`, or `gone` if this build no longer has the migration."""
    recorded: str
    present: tuple[str, ...]
    """The checksums that this build accepts for it; several if it was reformatted."""


@dataclass(frozen=True, slots=True)
class CheckedSnapshot:
    version: int
    verdict: str
    """`ok` or `differs`."""
    found: str = ""


@dataclass(frozen=True, slots=True)
class Validated:
    store: str
    version: int
    migrations: tuple[CheckedMigration, ...]
    snapshots: tuple[CheckedSnapshot, ...]


def validate(run: Invocation) -> CommandResult:
    """Check the migrations that the store has recorded, and the frozen types of every version."""
    from catalog.engine.migrate.executor import applied  # noqa: PLC0415 - `info` loads this module without it

    look = run.target.look()
    project = run.target.project
    migrations = tuple(check_migration(project, event) for event in applied(read_events(look.system_rows)).values())
    snapshots = tuple(_check_snapshot(project, number) for number in range(project.first_proto, project.current + 1))
    differing = [own.name for own in migrations if own.verdict == "differs"]
    differing += [f"the types of version {own.version}" for own in snapshots if own.verdict != "ok"]
    error: CatalogError | None = ChecksumError(", ".join(differing)) if differing else None
    try:
        look.require_types()
    except OtherTypesError as other:
        error = other
    except (StoreTooOldError, StoreTooNewError):
        pass  # no row is read here
    return CommandResult(Validated(look.place.uri, look.version, migrations, snapshots), error)


def check_migration(project: Project, event: MigrationEvent) -> CheckedMigration:
    """Compare a recorded checksum with those of this build."""
    name, previous = str(event.value.name), int(event.value.previous)
    recorded = str(event.value.checksum)
    module = None
    if project.minimum <= previous < project.current:
        module = project.migration_from(previous, project.build)
    if module is None:
        return CheckedMigration(name, int(event.value.version), "gone", recorded, ())
    from catalog.engine.migrate.plan import known_checksums  # noqa: PLC0415 - a store that was never migrated has none

    present = known_checksums(project, module)
    verdict = "ok" if recorded in present else "differs"
    return CheckedMigration(name, int(event.value.version), verdict, recorded, tuple(sorted(present)))


def _check_snapshot(project: Project, version: int) -> CheckedSnapshot:
    """Compare the frozen types of a version with their generated code and their recorded hash."""
    try:
        types: Any = project.types(version)
    except GeneratedCodeError as error:
        return CheckedSnapshot(version, "differs", error.what)
    recorded = _recorded_hashes(Path(types.__file__).parents[2])
    if recorded.get(str(version), types.DESCRIPTOR_HASH) != types.DESCRIPTOR_HASH:
        return CheckedSnapshot(version, "differs", "proto/hashes.json has another hash for them")
    return CheckedSnapshot(version, "ok")


@cache
def _recorded_hashes(root: Path) -> Mapping[str, str]:
    """Return the hashes of snapshots from the source tree; an installed package has none."""
    path = root / "proto" / "hashes.json"
    if not path.is_file():
        return {}
    found = json.loads(path.read_text(encoding="utf-8"))
    return {version: own["hash"] for version, own in found["snapshots"].items()}
