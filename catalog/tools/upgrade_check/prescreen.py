"""The rows of a scratch copy that break a rule before any step has run; on the driver, and only if fsck found some.

They are set aside, so that no step reports them again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from catalog.engine.base.project import Project
from catalog.engine.codec import bounded_batches
from catalog.engine.log.protocol import Operation
from catalog.engine.migrate.constraint_hashes import HashesNeeded
from catalog.engine.migrate.partitions import divide
from catalog.engine.migrate.rewrite_task import HashFinding, Task, TaskContext, gather, kinds_of, run_task
from catalog.engine.migrate.row_errors import BadRows, Keys, add_keys
from catalog.engine.migrate.row_types import ENGINE_COLLECTIONS, registry_of
from catalog.engine.migrate.row_verifier import EncodedRows, RowVerifier
from catalog.engine.migrate.system_rows import SystemRows
from catalog.engine.migrate.violation_lookup import ViolationLookup
from catalog.engine.migrate.violations import RowRule
from catalog.engine.stash.keyed_hash import new_key
from catalog.engine.stash.view import BaseFileCache, live_rows, load_view
from catalog.tools.upgrade_check.drop_rows import drop_referring_rows, drop_rows


@dataclass(slots=True)
class PrescreenResult:
    """The rows that were taken out of a copy before its first step."""

    excluded: Keys = field(default_factory=dict)
    """All of them."""
    set_aside: Counter[str] = field(default_factory=Counter)
    """The number of rows that break a rule, by collection."""
    left_out: Counter[str] = field(default_factory=Counter)
    """The number of rows that were left out because they refer to such rows."""


def prescreen(journal: SystemRows, project: Project) -> PrescreenResult:
    """Take out the rows of a protobuf version that cannot be read, break a constraint or refer to such rows."""
    result, version = PrescreenResult(), journal.version
    registry, constraints = registry_of(project, version), project.constraints.at(version)
    _drop_unknown_collections(journal, project, result)
    unreadable = _unreadable(journal, project)
    result.set_aside.update({name: len(keys) for name, keys in unreadable.items()})
    add_keys(result.excluded, unreadable)
    drop_rows(journal, unreadable)
    hash_key = new_key()
    lookup = ViolationLookup(journal.log, journal.state, (), registry, constraints, hash_key, result.excluded)
    bad = lookup.name(_findings(journal, project, hash_key), is_thorough=True)
    result.set_aside += bad.set_aside
    add_keys(result.excluded, bad.keys)
    drop_rows(journal, bad.keys, bad.duplicated)
    result.left_out += drop_referring_rows(journal, project, version, result.excluded)
    return result


def _drop_unknown_collections(journal: SystemRows, project: Project, result: PrescreenResult) -> None:
    known = registry_of(project, journal.version).by_name
    files = [file for file in journal.state.files.values() if file.collection not in known]
    for name in sorted({file.collection for file in files}):
        result.set_aside[name] = live_rows(journal.log, [file for file in files if file.collection == name])
    if files:
        journal.append(Operation.TRANSACTION, (), {}, removes=files)


def _unreadable(journal: SystemRows, project: Project) -> Keys:
    registry, bad = registry_of(project, journal.version), BadRows()
    verifier, view = RowVerifier(is_thorough=True), load_view(BaseFileCache(journal.log), journal.state)
    for name in _stored(journal):
        collection = registry.named(name)
        for table in view.tables(name):
            for batch in bounded_batches(table):
                rows = EncodedRows(batch["key"], batch["value"])
                bad.add(collection, verifier.verify(collection, rows, RowRule.UNKNOWN_FIELDS).errors)
    return bad.keys


def _findings(journal: SystemRows, project: Project, hash_key: bytes) -> list[HashFinding]:
    """Return the findings of the hashes of rows that can all be read."""
    version, ts = journal.version, journal.state.version
    needed = {name: HashesNeeded.all_of(project.constraints.at(version), name) for name in _stored(journal)}
    context = TaskContext(
        journal.log, project.name, version, version, journal.fence, ts, ts + 1, needed=needed, hash_key=hash_key
    )
    kinds, blobs = kinds_of(needed), list[bytes]()
    for name in needed:
        for part in divide(journal.log, journal.state, name).parts:
            _, hashes = run_task(context, Task(part))
            blobs += [blob for _, blob in hashes.packed(kinds, buckets=1)]
    return gather(kinds, None, blobs)


def _stored(journal: SystemRows) -> list[str]:
    return sorted({file.collection for file in journal.state.files.values()} - ENGINE_COLLECTIONS)
