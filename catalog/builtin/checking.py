"""Whether the shards of a store are whole, and whether they are those that the stash tells of. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from catalog.builtin.declared import fingerprint
from catalog.builtin.entries import MIGRATION_SHARD
from catalog.builtin.keeping import process_of
from catalog.builtin.run import Process
from catalog.errors import CatalogError, NoStoreError, ShardFinalizedError
from catalog.log.delta import DeltaLog
from catalog.log.protocol import Fence
from catalog.log.storage import SHARDS, Storage
from catalog.project import Place
from catalog.shard.batches import read_batch
from catalog.shard.shard import Shard, shard_ids, shard_uri
from catalog.stash.collections import Registry
from catalog.stash.constraints import Constraints
from catalog.stash.encodings import Types
from catalog.stash.findings import (
    NEWER_BUILD,
    REMOVE_SHARD,
    RESTORE_SHARD,
    Code,
    Findings,
    Report,
    Severity,
)
from catalog.stash.fsck import check
from catalog.stash.stash import Stash

_UNKNOWN = Types(Registry({}, {}), Constraints(), known=False)
"""Of rows that are no messages: log, files and sums are checked."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a stash tells of shards."""

    used: dict[str, str]
    """Those of builtins: the fingerprint of each."""
    others: frozenset[str]
    """Those of other objects, those given up, and those that a process keeps for an upgrade."""
    settled: bool
    """No build is in the middle of a migration."""


def check_shards(place: Place, storage: Storage, stash: Stash | None, findings: Findings) -> Iterator[Report]:
    """Check every shard by itself, and if the stash can be read also whether they are the ones it tells of."""
    present = shard_ids(storage)
    for shard in sorted(present):
        own = Findings()
        yield check(DeltaLog(shard_uri(place.uri, shard), place.options), lambda _: _UNKNOWN, own)
        if not own.counts:
            _check_content(Shard.open(DeltaLog(shard_uri(place.uri, shard), place.options), Fence(0, 0)), own)
        findings.take(own, f"shards/{shard}/")
    if stash is not None and (process := process_of(place, stash, None)) is not None:
        _check_use(process, present, findings)


def _check_content(shard: Shard, findings: Findings) -> None:
    try:
        state = shard.head.catch_up()
        shard.head.sequence(state)
        for batch in shard.head.batches(state):
            read_batch(shard.head.log, batch)
    except ShardFinalizedError:
        return
    except CatalogError as error:
        findings.add(Code.BATCH, "", error.what, RESTORE_SHARD)


def _check_use(process: Process, present: frozenset[str], findings: Findings) -> None:
    told = _told(process)
    for shard, recorded in sorted(told.used.items()):
        where = f"shards/{shard}"
        try:
            latest = process.shard(shard).latest()
        except NoStoreError:
            findings.add(Code.SHARD, where, "a builtin uses it, and it is not there", RESTORE_SHARD)
        except ShardFinalizedError:
            findings.add(Code.SHARD, where, "a builtin uses it, and it was given up", RESTORE_SHARD)
        except CatalogError:
            continue  # told of the shard itself
        else:
            if latest is None or fingerprint(latest.schema) != recorded:
                what = "its latest schema is not the one that the stash has recorded"
                repair, severity = (RESTORE_SHARD, Severity.ERROR) if told.settled else (NEWER_BUILD, Severity.NOTE)
                findings.add(Code.SCHEMA, where, what, repair, severity)
    for shard in sorted(present - told.used.keys() - told.others - {MIGRATION_SHARD}):
        with suppress(CatalogError):
            if not process.shard(shard).finalized:
                what = "no object uses it, nobody gave it up, and no upgrade keeps it"
                findings.add(Code.UNUSED, f"shards/{shard}", what, REMOVE_SHARD, Severity.SWEEPABLE)


def _told(process: Process) -> Told:
    records = process.begin()
    stored = records.stored(process.declared)
    used = {mapped.shard: mapped.fingerprint for mapped in stored.builtins.values()}
    kept: frozenset[str] = frozenset()
    with suppress(CatalogError):  # told of the migration shard itself
        kept = frozenset(entry.shard for entry in process.entries.read())
    others = frozenset(shard.removeprefix(f"{SHARDS}/") for shard in (*records.shards(), *records.unfinalized(), *kept))
    return Told(used, others, stored.newest == stored.version)
