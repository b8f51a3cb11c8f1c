"""`catalog debug vacuum`: delete files that no retained state refers to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult
from catalog.engine.base.duration import parse_seconds
from catalog.engine.log.maintenance import Policy
from catalog.errors import UsageError
from catalog.tools.vacuum import vacuum_store

if TYPE_CHECKING:
    from catalog.cli.app import Invocation
    from catalog.engine.log.place import StorePlace


@dataclass(frozen=True, slots=True)
class Vacuumed:
    store: str
    done: bool
    frontier: int
    files: int
    size: int


def vacuum(run: Invocation, *, retention: str | None, dry_run: bool, yes: bool) -> CommandResult:
    """Move the frontier to where retention ends, and delete; asks first if the retention was given."""
    policy = Policy() if retention is None else replace(Policy(), retention_ms=_retention_ms(retention))
    if retention is not None and not dry_run:
        run.screen.preview(_vacuum(run.target.place, policy, dry_run=True))
        run.screen.confirm("Deleted states cannot be read again, and migrations before them cannot be undone.", yes=yes)
    return CommandResult(_vacuum(run.target.place, policy, dry_run=dry_run))


def _vacuum(place: StorePlace, policy: Policy, *, dry_run: bool) -> Vacuumed:
    done = vacuum_store(place, policy, dry_run=dry_run)
    return Vacuumed(place.uri, not dry_run, done.frontier, done.files, done.bytes)


def _retention_ms(retention: str) -> int:
    try:
        return int(parse_seconds(retention) * 1000)
    except ValueError as error:
        raise UsageError(
            f"--retention {retention}: {error}", "it says how long the past is kept", "write 24h"
        ) from error
