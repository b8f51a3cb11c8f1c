"""The check of a whole store of any version, with the types and constraints of that version.

Reads only. Rows of a version that this build does not know are not checked, which is one finding; log, files and
checksums always are.
"""

from __future__ import annotations

from contextlib import suppress

from catalog.engine.base.project import Project
from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.place import StorePlace
from catalog.engine.log.replica import newest_state
from catalog.engine.migrate.row_types import ENGINE_COLLECTIONS, row_types
from catalog.engine.stash.constraints import Constraints
from catalog.engine.stash.recorded_types import require_types
from catalog.engine.stash.registry import Registry
from catalog.engine.stash.stash import Stash
from catalog.engine.stash.view import BaseFileCache, load_view
from catalog.engine.storage.base import Storage
from catalog.engine.storage.identity import PATH, no_store, read_identity
from catalog.engine.storage.layout import STASH
from catalog.errors import CatalogError, DamagedIdentityError, OtherTypesError, StoreTooNewError, StoreTooOldError
from catalog.tools.fsck.findings import OTHER_BUILD, RESTORE_FILE, FsckCode, FsckFindings, FsckReport
from catalog.tools.fsck.rows import VersionTypes
from catalog.tools.fsck.shards import check_shards
from catalog.tools.fsck.stash import check
from catalog.tools.fsck.tables import check_tables


def check_store(place: StorePlace, *, every_state: bool = False) -> FsckReport:
    """Check a store; with `every_state` also the files and checksums of all retained states.

    Raises if the place holds no store, the store of another project, or a store that is being removed.
    """
    project, storage, findings = place.project, place.storage, FsckFindings()
    try:
        identity = read_identity(storage, project.name)
    except DamagedIdentityError as error:
        findings.add(FsckCode.IDENTITY, PATH, error.found, RESTORE_FILE)
    else:
        if identity is None:
            _require_stash(storage)
            what = "it is missing, but there is a stash: a copy may have been interrupted"
            findings.add(FsckCode.IDENTITY, PATH, what, RESTORE_FILE)
    log = place.log()
    report = check(log, lambda version: _types(project, log, version, findings), findings, every_state=every_state)
    stash = _stash(project, log)
    parts = [report, *check_shards(place, stash, findings)]
    parts += check_tables(place, stash, findings, every_state=every_state)
    return FsckReport(
        findings.all(log.uri),
        sum(part.entries for part in parts),
        sum(part.files for part in parts),
        sum(part.rows for part in parts),
        dict(findings.counts),
    )


def _stash(project: Project, log: DeltaLog) -> Stash | None:
    """Open the stash if its rows can be read."""
    with suppress(CatalogError):
        version = newest_state(log).stash_version
        if version is not None and version >= project.first_proto:
            stash = Stash.open(log, Registry.of(project.types(version)), project.constraints.at(version))
            require_types(project, stash.view())
            return stash
    return None


def _require_stash(storage: Storage) -> None:
    if next(iter(storage.paths(STASH)), None) is None:
        raise no_store(storage)


def _types(project: Project, log: DeltaLog, version: int | None, findings: FsckFindings) -> VersionTypes:
    if version is None:
        return VersionTypes(Registry.of(project.current_types), project.constraints)
    try:
        project.check_version(version)
    except (StoreTooOldError, StoreTooNewError) as error:
        findings.add(
            FsckCode.UNKNOWN_VERSION, f"version {version}", f"rows were not checked: {error.what}", OTHER_BUILD
        )
        return VersionTypes(Registry({}, {}), Constraints(), known=False)
    try:
        require_types(project, load_view(BaseFileCache(log), newest_state(log)))
    except OtherTypesError as error:
        what = f"rows were not checked: {error.what}; {error.why}"
        findings.add(FsckCode.OTHER_TYPES, f"version {version}", what, OTHER_BUILD)
        return VersionTypes(_engine(project), Constraints(), known=False)
    except CatalogError:
        pass  # of the log or of a file: another check reports it
    if version >= project.first_proto:
        return VersionTypes(Registry.of(project.types(version)), project.constraints.at(version))
    return VersionTypes(_engine(project), Constraints(), row_types(project, version))


def _engine(project: Project) -> Registry:
    """Return the engine's own collections, which are messages at every version."""
    types = Registry.of(project.current_types)
    own = [types.named(name) for name in sorted(ENGINE_COLLECTIONS)]
    return Registry({c.name: c for c in own}, {c.key_type.DESCRIPTOR.full_name: c for c in own})
