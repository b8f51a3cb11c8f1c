"""What a check of an upgrade found, as texts and tables for people: the verdict first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.filesize import decimal
from rich.table import Table

from catalog.cli import answers
from catalog.engine.verdict import Outcome

if TYPE_CHECKING:
    from catalog.engine.verdict import BuiltinsVerdict, Look, StepVerdict, Verdict


def verdicts(data: answers.Checked) -> Iterator[RenderableType]:
    for number, verdict in enumerate(data.verdicts):
        if number:
            yield ""
        yield from _verdict(verdict)
    for own in data.unchecked:
        yield f"\nFAIL: {own.store}: {own.what}"
        yield f"  why:  {own.why}"
        yield f"  next: {own.next}"
    if data.page is not None:
        yield f"the page is {data.page}"


def _verdict(verdict: Verdict) -> Iterator[RenderableType]:
    yield (
        f"{'PASS' if verdict.ok else 'FAIL'}: {verdict.store}, from version {verdict.version} to {verdict.target},"
        f" as it was at ts {verdict.ts}"
    )
    if not verdict.steps and verdict.ok:
        yield "it is up to date"
    if verdict.mismatches:
        yield f"an upgrade is refused: these steps are not those of this build: {', '.join(verdict.mismatches)}"
    if verdict.needs_reapply:
        yield "somebody undid the next step: a start must be told --reapply"
    yield from _look("before the upgrade", verdict.before)
    if verdict.steps:
        yield _steps(verdict.steps)
    for step in verdict.steps:
        yield from _problems(step)
    yield from _look("after the upgrade", verdict.after)
    yield from _builtins(verdict.builtins)
    if verdict.steps:
        yield (
            f"a start will take about {verdict.startup_s:.0f} s, and {decimal(verdict.extra_bytes)} beside the present"
            f" files; this check took {verdict.seconds:.0f} s"
        )


def _steps(steps: tuple[StepVerdict, ...]) -> RenderableType:
    """For each step its time, then its collections: rows and bytes before and after, and what became of the rows."""
    made = Table("collection", box=SIMPLE_HEAD, padding=0, pad_edge=False)
    for name in ("rows", "after", "changed", "new", "gone", "aside", "bytes", "after"):
        made.add_column(name, justify="right", no_wrap=True)
    for step in steps:
        told = f"{step.seconds:.1f} s" if step.outcome is Outcome.OK else str(step.outcome)
        made.add_row(f"{step.name} ({told})", style="bold")
        for own in step.collections:
            aside = own.set_aside + own.left_out
            counts = (own.rows_before, own.rows_after, own.changed, own.inserted, own.deleted, aside)
            sizes = (decimal(own.bytes_before), decimal(own.bytes_after))
            made.add_row(f"  {own.collection}", *(f"{count:,}" for count in counts), *sizes)
    return made


def _problems(step: StepVerdict) -> Iterator[str]:
    if step.error is not None:
        yield f"{step.name} could not run: {step.error.what}"
        yield f"  why:  {step.error.why}"
        yield f"  next: {step.error.next}"
    for rule, count in step.counts.items():
        yield f"{step.name}: {count:,} times broken: {rule}"
        listed = [violation for violation in step.violations if violation.rule == rule]
        yield from (f"  {violation}" for violation in listed)
        if count > len(listed):
            yield f"  and {count - len(listed):,} more"
    if step.left_out:
        yield f"{step.name}: {step.left_out:,} rows refer to those that were set aside, and were left out with them"


def _builtins(builtins: BuiltinsVerdict | None) -> Iterator[str]:
    if builtins is None:
        return
    if builtins.error is not None:
        yield f"builtins cannot be migrated: {builtins.error.what}"
        yield f"  why:  {builtins.error.why}"
        yield f"  next: {builtins.error.next}"
    for names, what in (
        (builtins.created, "will be made"),
        (builtins.evolved, "will evolve, and keep their rows"),
        (builtins.replaced, "will be replaced, and their rows given up"),
        (builtins.given_up, "will be given up"),
    ):
        if names:
            yield f"builtins that {what}: {', '.join(names)}"


def _look(when: str, look: Look | None) -> Iterator[str]:
    if look is None:
        return
    for finding in look.findings:
        yield f"{when}: {finding.code} {finding.where}: {finding.what}"
    for code, count in look.counts.items():
        listed = sum(finding.code == code for finding in look.findings)
        if count > listed:
            yield f"{when}: {count - listed:,} more of {code}"
    if look.set_aside:
        yield f"{when}: {look.set_aside:,} rows were set aside, and the upgrade was tried with the rest"
    if look.left_out:
        yield f"{when}: {look.left_out:,} rows refer to those that were set aside, and were left out with them"
