"""Whether a store is whole, whatever its version: checked with the types and rules of that version.

Reads only. What a build cannot judge, because it does not know the version, is said once; log, files and sums are
checked all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from catalog.builtin.checking import check_shards
from catalog.engine.types import ENGINE_COLLECTIONS, row_types
from catalog.errors import CatalogError, DamagedIdentityError, StoreTooNewError, StoreTooOldError
from catalog.log.delta import DeltaLog
from catalog.log.protocol import Mark
from catalog.log.storage import Storage
from catalog.project import Place, Project
from catalog.stash.belongings import STASH
from catalog.stash.collections import Registry
from catalog.stash.constraints import Constraints
from catalog.stash.encodings import Types
from catalog.stash.findings import OTHER_BUILD, RESTORE_FILE, Code, Findings, Report
from catalog.stash.fsck import check
from catalog.stash.identity import PATH, no_store, read_identity
from catalog.stash.stash import Stash


def check_store(project: Project, storage: Storage, options: Mapping[str, str], *, every_state: bool = False) -> Report:
    """Check a store; with `every_state` also the files and sums of all states that are retained.

    Refuses a place that is no store, or another project's, and a store that is being removed.
    """
    findings = Findings()
    try:
        identity = read_identity(storage, project.name)
    except DamagedIdentityError as error:
        findings.add(Code.IDENTITY, PATH, error.found, RESTORE_FILE)
    else:
        if identity is None:
            _require_stash(storage)
            what = "it is not there, and a stash is: a copy may have been interrupted"
            findings.add(Code.IDENTITY, PATH, what, RESTORE_FILE)
    log = DeltaLog(f"{storage.uri}/{STASH}", options)
    report = check(log, lambda version: _types(project, version, findings), findings, every_state=every_state)
    place = Place(storage.uri, options, project)
    parts = [report, *check_shards(place, storage, _stash(project, log), findings)]
    return Report(
        findings.all(log.uri),
        sum(part.entries for part in parts),
        sum(part.files for part in parts),
        sum(part.rows for part in parts),
        dict(findings.counts),
    )


def _stash(project: Project, log: DeltaLog) -> Stash | None:
    """The stash of a store that can be read; none if nothing of it can be told."""
    with suppress(CatalogError):
        version = log.state(log.verify()).marks.get(Mark.STASH_VERSION)
        if version is not None and version >= project.first_proto:
            return Stash.open(log, Registry.of(project.types(version)), project.constraints.at(version))
    return None


def _require_stash(storage: Storage) -> None:
    if next(iter(storage.paths(STASH)), None) is None:
        raise no_store(storage)


def _types(project: Project, version: int | None, findings: Findings) -> Types:
    if version is None:
        return Types(Registry.of(project.current_types), project.constraints)
    try:
        project.check_version(version)
    except (StoreTooOldError, StoreTooNewError) as error:
        findings.add(Code.UNKNOWN_VERSION, f"version {version}", f"rows were not checked: {error.what}", OTHER_BUILD)
        return Types(Registry({}, {}), Constraints(), known=False)
    if version >= project.first_proto:
        return Types(Registry.of(project.types(version)), project.constraints.at(version))
    return Types(_engine(project), Constraints(), row_types(project, version))


def _engine(project: Project) -> Registry:
    """The engine's own collections, which are messages at every version."""
    types = Registry.of(project.current_types)
    own = [types.named(name) for name in sorted(ENGINE_COLLECTIONS)]
    return Registry({c.name: c for c in own}, {c.key_type.DESCRIPTOR.full_name: c for c in own})
