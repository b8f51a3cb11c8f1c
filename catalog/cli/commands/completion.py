"""`catalog completion`: the script by which a shell completes commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult
from catalog.cli.completion import Shell, script_of

if TYPE_CHECKING:
    from catalog.cli.app import Invocation


def completion(run: Invocation, *, shell: str) -> CommandResult:
    """Return the script; as text unless --format is given, because a shell evaluates it."""
    if run.settings.all["format"].source != "--format":
        run.screen.format = "text"
    return CommandResult({"shell": shell, "script": script_of(Shell(shell))})
