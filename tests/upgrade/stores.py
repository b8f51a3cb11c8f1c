"""Stores as tests of upgrades make them and look at them, from outside."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path

from catalog.engine.base.project import Project
from catalog.engine.log.data_files import rows_table
from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.protocol import AppTxn, Commit, CommitRequest, FileKind, Operation
from catalog.engine.stash.constraints import Constraints
from catalog.engine.stash.registry import Registry, encode
from catalog.engine.stash.stash import Stash
from catalog.engine.stash.view import BaseFileCache, load_view
from catalog.engine.storage.base import open_storage
from catalog.engine.storage.identity import make_identity
from catalog.upgrade import PROJECT
from tests.migrations.plain import ENGINE, Store, Stored, plain, stored


def load(store: Path, version: int, rows: Store, project: Project = PROJECT) -> None:
    """Make a store of a version that holds these rows, as one that was initialised does: by one commit."""
    log = log_of(store)
    log.create(uuid.uuid4().hex)
    registry = Registry.of(project.types(max(version, project.first_proto)))
    stash = Stash.open(log, registry, Constraints())
    fence = stash.take_over(0, "loader")
    assert fence is not None
    config = registry.named("config")
    number = (encode(config.key_type(name="stash_version")), encode(config.value_type(number=version)))
    ts = stash.ts + 1
    files = [
        log.write(name, FileKind.TAIL, fence, rows_table([(key, value, ts, 1) for key, value in own]))
        for name, own in {**stored(version, rows), "config": [number]}.items()
        if own
    ]
    change = CommitRequest(
        Operation.TRANSACTION, uuid.uuid4().hex, tuple(files), app_txns={AppTxn.STASH_VERSION: version}
    )
    log.compare_and_append(stash.state, change)
    make_identity(open_storage(str(store), {}), project.name)


def log_of(store: Path) -> DeltaLog:
    return DeltaLog(f"{store}/stash")


def rows_at(store: Path, ts: int | None = None) -> Stored:
    """The rows at a ts, by default now, as bytes; the engine's own are left out."""
    log = log_of(store)
    view = load_view(BaseFileCache(log), log.state(log.verify() if ts is None else ts))
    return {name: list(view.rows(name)) for name in sorted(view.collections() - ENGINE)}


def plain_at(store: Path, version: int, ts: int | None = None) -> Store:
    """The rows at a ts, by default now, read with the types of a version; collections that it lacks are refused."""
    rows = rows_at(store, ts)
    read = plain(version, rows)
    assert rows.keys() <= read.keys()
    return read


def steps_of(store: Path) -> dict[int, Commit]:
    """The commits that took a store on, by the version that each led to."""
    log = log_of(store)
    commits = log.commits(0, log.verify())
    return {c.app_txns[AppTxn.STASH_VERSION]: c for c in commits if c.operation is Operation.MIGRATE}


def files_of(store: Path) -> dict[str, bytes]:
    """Every file of a store and what is in it."""
    return {str(path.relative_to(store)): path.read_bytes() for path in sorted(store.rglob("*")) if path.is_file()}


def digest(rows: Mapping[str, Iterable[tuple[bytes, bytes]]]) -> str:
    """A hash of rows, whatever files they are in: collection, key and value of each, in order."""
    found = hashlib.sha256()
    for name in sorted(rows):
        for row in sorted(rows[name]):
            for part in (name.encode(), *row):
                found.update(len(part).to_bytes(8, "big") + part)
    return f"sha256:{found.hexdigest()}"
