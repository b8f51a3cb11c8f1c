"""`catalog repair`: repair what a crash can leave behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult
from catalog.engine.log.damaged_entry import Remedy
from catalog.engine.storage.layout import stash_uri, tables_uri
from catalog.errors import CatalogError, ChecksumError, FindingsError, LossNotAcceptedError, NotRepairableError
from catalog.tools.repair import Diagnosis, Repaired, diagnose
from catalog.tools.repair import repair as repair_store

if TYPE_CHECKING:
    from catalog.cli.app import Invocation


@dataclass(frozen=True, slots=True)
class RepairResult:
    store: str
    diagnosis: Diagnosis
    repaired: Repaired | None
    """None if nothing was repaired: nothing is wrong, or it was a dry run."""


def repair(run: Invocation, *, checksums: bool, accept_loss: bool, dry_run: bool, yes: bool) -> CommandResult:
    """Diagnose a store and, after confirmation, repair what can be repaired."""
    target = run.target
    uri, found = target.place.uri, diagnose(target.place)
    result, error = RepairResult(uri, found, None), _problem(uri, found, checksums=checksums, accept_loss=accept_loss)
    if dry_run or not _is_repairable(found, checksums=checksums) or isinstance(error, LossNotAcceptedError):
        return CommandResult(result, error)
    run.screen.preview(result)
    run.screen.confirm(f"This will be repaired in {target.store}.", yes=yes)
    repaired = repair_store(target.place, found, checksums=checksums, accept_loss=accept_loss)
    left = error if isinstance(error, ChecksumError) else None
    return CommandResult(RepairResult(target.place.uri, found, repaired), left)


def _problem(uri: str, found: Diagnosis, *, checksums: bool, accept_loss: bool) -> CatalogError | None:
    """Return the error that a dry run reports; it also says what a repair would not change."""
    damaged = [(stash_uri(uri), found.damaged)] if found.damaged else []
    damaged += [(f"{uri}/shards/{shard.id}", shard.damaged) for shard in found.shards]
    damaged += [(tables_uri(uri), found.tables)] if found.tables else []
    for place, entry in damaged:
        if entry.obstacle:
            return NotRepairableError(place, entry.version, entry.obstacle)
        if entry.remedy is Remedy.LEAVE_OUT and not accept_loss:
            return LossNotAcceptedError(place, entry.version, entry.lost)
    if found.checksums and not checksums:
        return ChecksumError(", ".join(own.step for own in found.checksums))
    if found.is_sound:
        return None
    if lost_rows := [str(own) for own in found.contradictions if not own.is_mendable]:
        return FindingsError(
            uri, len(lost_rows), f"restore a copy of the store; the log does not say what should be in {lost_rows[0]}"
        )
    count = (
        len(found.dead)
        + len(found.checksums)
        + len(found.shards)
        + len(found.contradictions)
        + (found.damaged is not None)
        + (found.tables is not None)
    )
    return FindingsError(uri, count + bool(found.stray_step), "`catalog repair` without --dry-run repairs them")


def _is_repairable(found: Diagnosis, *, checksums: bool) -> bool:
    if found.damaged is not None and found.damaged.obstacle:
        return False
    own = found.damaged or found.dead or found.stray_step or found.mendable_shards or found.mendable_rows
    return bool(own or found.mendable_tables or (checksums and found.checksums))
