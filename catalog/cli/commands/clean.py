"""`catalog clean`: remove a store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from catalog.cli.answer import CommandResult
from catalog.engine.store.leadership import holder
from catalog.tools.remove import plan_removal, remove_store

if TYPE_CHECKING:
    from catalog.cli.app import Invocation


@dataclass(frozen=True, slots=True)
class Cleaned:
    store: str
    done: bool
    files: int
    size: int
    left: tuple[str, ...] = ()
    """Files at the same place that are not part of the store, and stay."""
    unfenced: str | None = None
    """The reason why the leader could not be fenced: it may have written files since."""


def clean(run: Invocation, *, dry_run: bool, name: str | None) -> CommandResult:
    """Remove a store once its name is confirmed; leave other files at its place alone."""
    place = run.target.place
    plan = plan_removal(place)
    planned = Cleaned(place.uri, done=False, files=len(plan.files), size=plan.bytes, left=plan.others)
    if dry_run:
        return CommandResult(planned)
    expected = place.uri.rstrip("/").rpartition("/")[2]
    if name is not None and name != expected:
        raise click.UsageError(f"--name {name} is not the name of this store, which is {expected}")
    run.screen.preview(planned)
    question = "The leader will be fenced, and the store removed for ever."
    run.screen.confirm(question, yes=name == expected, expected=expected, flag=f"--name {expected}")
    done = remove_store(place, holder())
    return CommandResult(
        Cleaned(done.uri, done=True, files=done.files, size=done.bytes, left=done.others, unfenced=done.unfenced)
    )
