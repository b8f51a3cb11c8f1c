"""The check of the shards of a store: each by itself, and against the rows that refer to them. Reads only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from catalog.engine.base.fence import Fence
from catalog.engine.builtins.declaration import fingerprint
from catalog.engine.builtins.migrate import BuiltinMigrator
from catalog.engine.builtins.replacement_shards import MIGRATION_SHARD
from catalog.engine.builtins.tables import process_of
from catalog.engine.log.place import StorePlace
from catalog.engine.shard.batches import read_batch
from catalog.engine.shard.shard import Shard
from catalog.engine.stash.constraints import Constraints
from catalog.engine.stash.registry import Registry
from catalog.engine.stash.stash import Stash
from catalog.engine.storage.layout import SHARDS, shard_ids
from catalog.errors import CatalogError, NoStoreError, RetiredError, ShardFinalizedError, VersionChangedError
from catalog.tools.fsck.findings import (
    NEWER_BUILD,
    REMOVE_SHARD,
    RESTORE_SHARD,
    FsckCode,
    FsckFindings,
    FsckReport,
    Severity,
)
from catalog.tools.fsck.rows import VersionTypes
from catalog.tools.fsck.stash import check

_UNKNOWN = VersionTypes(Registry({}, {}), Constraints(), known=False)
"""The types of rows that are no messages: log, files and checksums are checked."""


@dataclass(frozen=True, slots=True)
class ShardReferences:
    """The shards that the rows of a stash refer to."""

    used: dict[str, str]
    """Shards of builtins, each with its fingerprint."""
    others: frozenset[str]
    """Shards of other objects, shards to be finalised, and shards that a process prepares for an upgrade."""
    settled: bool
    """No build is in the middle of a migration."""


def check_shards(place: StorePlace, stash: Stash | None, findings: FsckFindings) -> Iterator[FsckReport]:
    """Check every shard by itself, and if the stash can be read also that the rows refer to exactly these shards."""
    for shard in sorted(shard_ids(place.storage)):
        own = FsckFindings()
        yield check(place.shard_log(shard), lambda _: _UNKNOWN, own)
        if not own.counts:
            _check_content(Shard.open(place.shard_log(shard), Fence(0, 0)), own)
        findings.take(own, f"{SHARDS}/{shard}/")
    if stash is not None and (process := process_of(place, stash, None)) is not None:
        _check_use_again(place, process, stash, findings)


def _check_content(shard: Shard, findings: FsckFindings) -> None:
    while True:
        try:
            state = shard.replica.catch_up()
            shard.replica.sequence(state)
            for batch in shard.replica.batches(state):
                with shard.replica.retired_if_missing(state.version):
                    read_batch(shard.log, batch)
        except RetiredError:
            continue  # while it was read: there is a newer state
        except ShardFinalizedError:
            return
        except CatalogError as error:
            findings.add(FsckCode.BATCH, "", error.what, RESTORE_SHARD)
        return


def _check_use_again(place: StorePlace, process: BuiltinMigrator, stash: Stash, findings: FsckFindings) -> None:
    """Check the use of shards, and again if the rows that refer to them have changed meanwhile."""
    while True:
        own, ts = FsckFindings(), stash.ts
        try:
            _check_use(process, shard_ids(place.storage), own)
            is_outdated = bool(own.counts) and stash.refresh() != ts
        except RetiredError:
            is_outdated = stash.refresh() != ts
        except VersionChangedError:
            findings.unchecked(SHARDS, "the use of shards was not checked: the version of the store changed meanwhile")
            return
        if not is_outdated:
            findings.take(own, "")
            return


def _check_use(process: BuiltinMigrator, present: frozenset[str], findings: FsckFindings) -> None:
    referred = _referred(process)
    for shard, recorded in sorted(referred.used.items()):
        where = f"shards/{shard}"
        try:
            latest = process.shard(shard).latest()
        except NoStoreError:
            findings.add(FsckCode.SHARD, where, "a builtin uses it, but it does not exist", RESTORE_SHARD)
        except ShardFinalizedError:
            findings.add(FsckCode.SHARD, where, "a builtin uses it, but it was finalised", RESTORE_SHARD)
        except CatalogError:
            continue  # a finding of the shard itself
        else:
            if latest is None or fingerprint(latest.schema) != recorded:
                what = "its latest schema is not the one recorded in the stash"
                repair, severity = (RESTORE_SHARD, Severity.ERROR) if referred.settled else (NEWER_BUILD, Severity.NOTE)
                findings.add(FsckCode.SCHEMA, where, what, repair, severity)
    for shard in sorted(present - referred.used.keys() - referred.others - {MIGRATION_SHARD}):
        with suppress(CatalogError):
            if not process.shard(shard).finalized:
                what = "no object uses it, it was not finalised, and no upgrade prepares it"
                findings.add(FsckCode.UNUSED, f"shards/{shard}", what, REMOVE_SHARD, Severity.SWEEPABLE)


def _referred(process: BuiltinMigrator) -> ShardReferences:
    records = process.begin()
    stored = records.stored(process.declared)
    used = {mapped.shard: mapped.fingerprint for mapped in stored.builtins.values()}
    kept: frozenset[str] = frozenset()
    with suppress(CatalogError):  # a finding of the migration shard itself
        kept = frozenset(entry.shard for entry in process.entries.read())
    others = frozenset(shard.removeprefix(f"{SHARDS}/") for shard in (*records.shards(), *records.unfinalized(), *kept))
    return ShardReferences(used, others, stored.newest == stored.version)
