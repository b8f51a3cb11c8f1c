"""`catalog debug edit`: replace the value of a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from catalog.cli.answer import CommandResult
from catalog.cli.store_reader import parse_key, parse_object
from catalog.tools.edit import RowEdit, apply_edit, plan_edit

if TYPE_CHECKING:
    from catalog.cli.app import Invocation


@dataclass(frozen=True, slots=True)
class Edited:
    store: str
    collection: str
    key: Any
    before: Any
    after: Any
    ts: int | None
    """None if nothing was committed, because nothing differs."""


def edit(run: Invocation, *, collection: str, key: str, value: str, protected: bool, yes: bool) -> CommandResult:
    """Show the change, ask for confirmation, and commit it."""
    new = parse_object("the value", value)
    planned = plan_edit(run.target.place, collection, parse_key(key), new, protected=protected)
    return write(run, planned, yes=yes)


def write(run: Invocation, planned: RowEdit, *, yes: bool) -> CommandResult:
    """Commit a planned change after confirmation; fences the leader unless there is nothing to change."""
    target, ts = run.target, None
    if not planned.is_same:
        run.screen.preview(planned, renderer="render_plan")
        run.screen.confirm(f"The leader of {target.store} will be fenced, and this change committed.", yes=yes)
        ts = apply_edit(target.place, planned, target.leadership)
    return CommandResult(Edited(target.place.uri, planned.collection, planned.key, planned.before, planned.after, ts))
