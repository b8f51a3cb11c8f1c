"""`catalog apply` as text: the steps that ran, or their plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from catalog.cli.commands.apply import Applied, Planned, PlannedStep, PlannedWork
from catalog.cli.screen import Sentence
from catalog.cli.text.formats import size
from catalog.cli.text.table import NONE, TextTable, table
from catalog.cli.upgrade_recorder import StepDone

if TYPE_CHECKING:
    from rich.console import RenderableType


def render(data: Applied) -> Iterator[RenderableType]:
    if not data.steps and data.builtins is not None:
        yield Sentence(
            f"{data.store} is at version {data.version}; its builtins were migrated to build {data.builtins}"
        )
        return
    if not data.steps:
        yield Sentence(f"nothing to do: {data.store} is at version {data.version}")
        return
    yield steps_table(data.steps)
    left = data.current - data.version
    rest = f"; {left} more to apply" if left else ""
    yield Sentence(f"{data.store} went from version {data.version_before} to {data.version}{rest}")


def render_plan(data: Planned) -> Iterator[RenderableType]:
    if not data.steps:
        yield Sentence(f"nothing to do: {data.store} is at version {data.version}")
        return
    yield Sentence(f"{data.store} would go from version {data.version} to {data.until}; nothing was written")
    yield plan_table(data.steps)
    yield Sentence(
        f"{data.rows_to_rewrite:,} rows and {size(data.bytes_to_rewrite)} to rewrite; - means that no file is replaced"
    )


def steps_table(steps: Sequence[StepDone]) -> TextTable:
    made = table(["step"], ["rows before", "rows after", "bytes", "seconds"])
    for step in steps:
        sizes = f"{size(step.bytes_before)} to {size(step.bytes_after)}"
        made.add_row(step.name, f"{step.rows_before:,}", f"{step.rows_after:,}", sizes, f"{step.seconds:.1f}")
    return made


def plan_table(steps: Sequence[PlannedStep]) -> TextTable:
    """Each step by the forms of its actions, with the files that it replaces as they are now."""
    made = table(["step", "form", "collections"], ["files", "rows", "bytes"])
    for step in steps:
        nothing = PlannedWork("no change", (step.reason,), 0, 0, 0, replaces=False)
        for number, work in enumerate(step.works or (nothing,)):
            sums = (f"{work.files:,}", f"{work.rows:,}", size(work.size)) if work.replaces else (NONE,) * 3
            made.add_row("" if number else step.name, work.form, ", ".join(work.collections), *sums)
    return made
