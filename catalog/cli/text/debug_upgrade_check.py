"""`catalog debug upgrade-check` as text: the verdict first, then the steps and findings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table

from catalog.cli.commands.debug_upgrade_check import UpgradeCheckResult
from catalog.cli.text.causes import cause_of, grouped, more_like_it
from catalog.cli.text.formats import plural, size
from catalog.tools.upgrade_check.report import StepOutcome

if TYPE_CHECKING:
    from catalog.tools.upgrade_check.report import BuiltinsReport, FsckSummary, StepReport, UpgradeReport


def render(data: UpgradeCheckResult) -> Iterator[RenderableType]:
    for number, verdict in enumerate(data.verdicts):
        if number:
            yield ""
        yield from _verdict(verdict)
    for own in data.unchecked:
        yield f"\nFAIL: {own.store}: {own.what}"
        yield f"  why:  {own.why}"
        yield f"  next: {own.next}"
    if data.page is not None:
        yield f"the page was written to {data.page}"


def _verdict(verdict: UpgradeReport) -> Iterator[RenderableType]:
    count = verdict.warning_count
    warned = f" with {plural(count, 'warning', 'warnings')}" if count else ""
    yield (
        f"{'PASS' if verdict.ok else 'FAIL'}{warned}: {verdict.store}, from version {verdict.version} to"
        f" {verdict.target}, as it was at ts {verdict.ts}{_deleted(verdict)}"
    )
    if not verdict.steps and verdict.ok:
        yield "it is up to date"
    if verdict.mismatches:
        names = ", ".join(verdict.mismatches)
        yield f"the upgrade is refused: the checksums of these steps differ from this build: {names}"
    if verdict.needs_reapply:
        yield "the next step was undone: start with --reapply"
    yield from _look("before the upgrade", verdict.before)
    if verdict.steps:
        yield _steps(verdict.steps)
    for step in verdict.steps:
        yield from _fields(step)
        yield from _problems(step)
    yield from _look("after the upgrade", verdict.after)
    yield from _builtins(verdict.builtins)
    if verdict.steps:
        yield (
            f"a start will take about {verdict.startup_s:.0f} s, and {size(verdict.extra_bytes)} of disk space"
            f" besides the present files; this check took {verdict.seconds:.0f} s"
        )


def _deleted(verdict: UpgradeReport) -> str:
    """Return how many rows will be deleted, for the line of the verdict."""
    if not verdict.deleted:
        return ""
    told = ", ".join(f"{name} {rows:,}" for name, rows in verdict.deleted.items())
    return f"; {plural(sum(verdict.deleted.values()), 'row', 'rows')} will be deleted: {told}"


def _fields(step: StepReport) -> Iterator[str]:
    """Yield the fields of which the number of rows that have them set changes."""
    for own in step.collections:
        changed = [field for field in own.fields if field.before != field.after]
        if changed:
            told = (f"{field.path} {_count(field.before)} → {_count(field.after)}" for field in changed)
            yield f"{step.name}: rows of {own.collection} that have a field set: {', '.join(told)}"


def _count(rows: int | None) -> str:
    return "no field" if rows is None else f"{rows:,}"


def _steps(steps: tuple[StepReport, ...]) -> RenderableType:
    """For each step its time, then its collections: rows and bytes before and after, and what became of the rows."""
    made = Table("collection", box=SIMPLE_HEAD, padding=0, pad_edge=False)
    for name in ("rows", "after", "changed", "new", "gone", "aside", "bytes", "after"):
        made.add_column(name, justify="right", no_wrap=True)
    for step in steps:
        told = f"{step.seconds:.1f} s" if step.outcome is StepOutcome.OK else str(step.outcome)
        made.add_row(f"{step.name} ({told})", style="bold")
        for own in step.collections:
            aside = own.set_aside + own.left_out
            counts = (own.rows_before, own.rows_after, own.changed, own.inserted, own.deleted, aside)
            sizes = (size(own.bytes_before), size(own.bytes_after))
            made.add_row(f"  {own.collection}", *(f"{count:,}" for count in counts), *sizes)
    return made


def _problems(step: StepReport) -> Iterator[str]:
    if step.error is not None:
        yield f"{step.name} could not run: {step.error.what}"
        yield f"  why:  {step.error.why}"
        yield f"  next: {step.error.next}"
    for rule, count in step.counts.items():
        yield f"{step.name}: {count:,} times broken: {rule}"
        listed = [violation for violation in step.violations if violation.rule == rule]
        examples = grouped(listed, lambda own: (own.collection, cause_of(own.found)), count)
        yield from (f"  {violation}{more_like_it(alike)}" for violation, alike in examples)
        if count > (told := sum(alike for _, alike in examples)):
            yield f"  and {count - told:,} more"
    for warning in step.warnings:
        yield f"{step.name}: warning: {warning}"
    if step.left_out:
        yield f"{step.name}: {step.left_out:,} rows refer to those that were set aside, and were left out with them"


def _builtins(builtins: BuiltinsReport | None) -> Iterator[str]:
    if builtins is None:
        return
    if builtins.error is not None:
        yield f"builtins cannot be migrated: {builtins.error.what}"
        yield f"  why:  {builtins.error.why}"
        yield f"  next: {builtins.error.next}"
    for names, what in (
        (builtins.created, "will be created"),
        (builtins.evolved, "will evolve, and keep their rows"),
        (builtins.replaced, "will be replaced, and their rows dropped"),
        (builtins.given_up, "will be dropped"),
    ):
        if names:
            yield f"builtins that {what}: {', '.join(names)}"


def _look(when: str, look: FsckSummary | None) -> Iterator[str]:
    if look is None:
        return
    for code in dict.fromkeys(finding.code for finding in look.findings):
        own = [finding for finding in look.findings if finding.code == code]
        examples = grouped(own, lambda one: (cause_of(one.where), cause_of(one.what)), look.counts.get(code))
        for finding, alike in examples:
            yield f"{when}: {code} {finding.where}: {finding.what}{more_like_it(alike)}"
        if (count := look.counts.get(code, 0)) > (told := sum(alike for _, alike in examples)):
            yield f"{when}: {count - told:,} more of {code}"
    if look.set_aside:
        yield f"{when}: {look.set_aside:,} rows were set aside, and the upgrade was tried with the rest"
    if look.left_out:
        yield f"{when}: {look.left_out:,} rows refer to those that were set aside, and were left out with them"
