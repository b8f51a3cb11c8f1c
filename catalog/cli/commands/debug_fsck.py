"""`catalog debug fsck`: check everything in a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult
from catalog.errors import FindingsError
from catalog.tools.fsck.store import check_store

if TYPE_CHECKING:
    from catalog.cli.app import Invocation


def fsck(run: Invocation, *, every_state: bool) -> CommandResult:
    """Check a store; findings of severity error make the command fail."""
    place = run.target.place
    uri, report = place.uri, check_store(place, every_state=every_state)
    error = None
    if not report.ok:
        wrong = {finding.code for finding in report.findings if finding.severity == "error"}
        count = sum(max(report.counts.get(code, 0), 1) for code in wrong)
        error = FindingsError(uri, count, "each finding says whether and how it can be repaired")
    return CommandResult({"store": uri, "report": report}, error)
