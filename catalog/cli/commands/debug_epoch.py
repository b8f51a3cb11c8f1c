"""`catalog debug epoch`: the leader of a store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult

if TYPE_CHECKING:
    from catalog.cli.app import Invocation


@dataclass(frozen=True, slots=True)
class Epoch:
    store: str
    deploy_generation: int
    epoch: int
    holder: str
    sign: str
    """The state of the leader's heartbeat: `beating` (it may still run), `released` (it ended) or `none`."""


def epoch(run: Invocation) -> CommandResult:
    """Read the newest fence, and the heartbeat of the leader that holds it."""
    look = run.target.look()
    fence = look.state.fence
    return CommandResult(Epoch(look.place.uri, fence.generation, fence.epoch, look.holder, look.leader_status))
