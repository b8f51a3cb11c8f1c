"""The page of a check of upgrades: the verdict first, then what each step does to rows, bytes and types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from catalog.cli.commands.debug_upgrade_check import UncheckedStore, UpgradeCheckResult
from catalog.cli.html.charts import (
    AFTER,
    BEFORE,
    BarChart,
    Quantity,
    Series,
    Tone,
    end_to_end,
    part_told,
    side_by_side,
)
from catalog.cli.html.page import Redact, Stamp, render
from catalog.cli.html.schema_diff import Differences, differences
from catalog.cli.text.formats import brief_count, duration, plural, size
from catalog.engine.base.project import Project
from catalog.tools.fsck.findings import MEANINGS, FsckFinding, Severity
from catalog.tools.upgrade_check.report import (
    CollectionReport,
    ErrorSummary,
    FsckSummary,
    StepOutcome,
    StepReport,
    UpgradeReport,
)

SAMPLES_SHOWN = 8
"""The samples of a finding that are visible; the others unfold."""

_TIMES = (Series("the step itself", Tone.STRONG), Series("only this check", Tone.QUIET))


@dataclass(frozen=True, slots=True)
class CheckReason:
    """A reason why a store cannot be upgraded, or a note for the next start."""

    text: str
    target: str
    """The anchor of the details; empty if there are none."""


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """The findings of one kind, with sample rows."""

    id: str
    when: str
    title: str
    severity: str
    count: int
    columns: tuple[str, ...]
    samples: tuple[tuple[str, ...], ...]
    mending: tuple[str, ...]
    """The ways to repair them, without duplicates."""

    @property
    def shown(self) -> tuple[tuple[str, ...], ...]:
        return self.samples[:SAMPLES_SHOWN]

    @property
    def folded(self) -> tuple[tuple[str, ...], ...]:
        return self.samples[SAMPLES_SHOWN:]

    @property
    def unlisted(self) -> int:
        return self.count - len(self.samples)


@dataclass(frozen=True, slots=True)
class StepPart:
    id: str
    verdict: StepReport
    types: Differences


@dataclass(frozen=True, slots=True)
class StorePart:
    id: str
    verdict: UpgradeReport
    headline: str
    reasons: tuple[CheckReason, ...]
    """The reasons why it cannot be upgraded; empty if it can."""
    notes: tuple[CheckReason, ...]
    findings: tuple[FindingGroup, ...]
    charts: tuple[BarChart, ...]
    steps: tuple[StepPart, ...]
    builtins: tuple[tuple[str, tuple[str, ...]], ...]
    """The builtins that change, by kind of change."""
    types: Differences | None
    """Over all steps; None if there is one or none."""
    rows_touched: int
    """Changed, come or gone, over all steps."""

    @property
    def finding_count(self) -> int:
        return sum(own.count for own in self.findings if own.severity == Severity.ERROR)

    @property
    def is_current(self) -> bool:
        return not self.verdict.steps


@dataclass(frozen=True, slots=True)
class UncheckedPart:
    id: str
    unchecked: UncheckedStore


def check_page(project: Project, checked: UpgradeCheckResult, stamp: Stamp, redact: Redact) -> str:
    """Render the page of all stores, including those that could not be checked."""
    stores = [store_part(project, own, f"store-{number}") for number, own in enumerate(checked.verdicts, 1)]
    others = [UncheckedPart(f"unchecked-{number}", own) for number, own in enumerate(checked.unchecked, 1)]
    good = sum(own.verdict.ok for own in stores)
    return render(
        "upgrade_check.html",
        redact,
        stores=stores,
        others=others,
        all_count=len(stores) + len(others),
        good_count=good,
        ok=good == len(stores) and not others,
        stamp=stamp,
        project=project.name,
    )


def store_part(project: Project, verdict: UpgradeReport, id_: str) -> StorePart:
    steps = tuple(
        StepPart(f"{id_}-{own.name}", own, differences(project, own.previous, own.version)) for own in verdict.steps
    )
    findings = tuple(_findings(verdict, id_))
    collections = [own for step in verdict.steps for own in step.collections]
    return StorePart(
        id_,
        verdict,
        _headline(verdict),
        tuple(_reasons(verdict, findings)),
        tuple(_notes(verdict)),
        findings,
        tuple(_charts(verdict, id_)),
        steps,
        tuple(_builtins(verdict)),
        differences(project, verdict.version, verdict.target) if len(steps) > 1 else None,
        sum(own.changed + own.inserted + own.deleted for own in collections),
    )


def _headline(verdict: UpgradeReport) -> str:
    if not verdict.steps and verdict.ok:
        return "Up to date"
    return "Can be upgraded" if verdict.ok else "Cannot be upgraded as it is"


def _reasons(verdict: UpgradeReport, findings: Sequence[FindingGroup]) -> Iterator[CheckReason]:
    if verdict.mismatches and verdict.steps:
        yield CheckReason(f"the checksums of applied steps differ from this build: {', '.join(verdict.mismatches)}", "")
    for own in findings:
        if own.severity == Severity.ERROR:
            yield CheckReason(f"{own.when}: {own.title}" + (f" ({own.count:,})" if own.count > 1 else ""), own.id)
    skipped = [step.name for step in verdict.steps if step.outcome is StepOutcome.NOT_RUN]
    if skipped:
        yield CheckReason(f"not run after that: {', '.join(skipped)}", "")


def _notes(verdict: UpgradeReport) -> Iterator[CheckReason]:
    if verdict.deleted:
        told = ", ".join(f"{name} {rows:,}" for name, rows in verdict.deleted.items())
        yield CheckReason(f"{plural(sum(verdict.deleted.values()), 'row', 'rows')} will be deleted: {told}", "")
    if verdict.needs_reapply:
        yield CheckReason("the next step was undone: start with --reapply", "")
    if verdict.mismatches and not verdict.steps:
        yield CheckReason(f"the checksums of applied steps differ from this build: {', '.join(verdict.mismatches)}", "")
    for when, look in _looks(verdict):
        if look.set_aside:
            yield CheckReason(f"{when}: {plural(look.set_aside, 'row was', 'rows were')} set aside in the copy", "")
        if look.left_out:
            yield CheckReason(
                f"{when}: {plural(look.left_out, 'row refers', 'rows refer')} to those, and were left out", ""
            )
    for step in verdict.steps:
        if step.left_out:
            told = plural(step.left_out, "row refers", "rows refer")
            yield CheckReason(f"{step.name}: {told} to rows that were set aside, and were left out", "")


def _looks(verdict: UpgradeReport) -> Iterator[tuple[str, FsckSummary]]:
    for when, look in (("before the upgrade", verdict.before), ("after the upgrade", verdict.after)):
        if look is not None:
            yield when, look


def _findings(verdict: UpgradeReport, id_: str) -> Iterator[FindingGroup]:
    looks = dict(_looks(verdict))
    if "before the upgrade" in looks:
        yield from _of_look("before the upgrade", looks["before the upgrade"], f"{id_}-before")
    for step in verdict.steps:
        yield from _of_step(step, id_)
        yield from _of_warnings(step, id_)
    if "after the upgrade" in looks:
        yield from _of_look("after the upgrade", looks["after the upgrade"], f"{id_}-after")
    if verdict.builtins is not None and verdict.builtins.error is not None:
        yield _of_trouble("builtins", "cannot be migrated", verdict.builtins.error, f"{id_}-builtins-error")


def _of_look(when: str, look: FsckSummary, id_: str) -> Iterator[FindingGroup]:
    by_kind: dict[tuple[str, str], list[FsckFinding]] = {}
    for finding in look.findings:
        by_kind.setdefault((finding.code, finding.severity), []).append(finding)
    for (code, severity), listed in by_kind.items():
        yield FindingGroup(
            f"{id_}-{code}-{severity}",
            when,
            f"{code}: {MEANINGS[listed[0].code]}",
            severity,
            max(look.counts.get(listed[0].code, 0), len(listed)),
            ("where", "what"),
            tuple((own.where, own.what) for own in listed),
            tuple(dict.fromkeys(own.repair for own in listed)),
        )


def _of_step(step: StepReport, id_: str) -> Iterator[FindingGroup]:
    if step.error is not None:
        yield _of_trouble(step.name, "could not run", step.error, f"{id_}-{step.name}-error")
    for number, (rule, total) in enumerate(step.counts.items(), 1):
        listed = [own for own in step.violations if own.rule == rule]
        yield FindingGroup(
            f"{id_}-{step.name}-rule-{number}",
            step.name,
            f"broken: {rule}",
            Severity.ERROR,
            total,
            ("collection", "key", "found"),
            tuple((own.collection, own.key, own.found) for own in listed),
            (),
        )


def _of_warnings(step: StepReport, id_: str) -> Iterator[FindingGroup]:
    if step.warnings:
        yield FindingGroup(
            f"{id_}-{step.name}-warnings",
            step.name,
            "warnings: what is probably not meant",
            Severity.NOTE,
            len(step.warnings),
            ("warning",),
            tuple((own,) for own in step.warnings),
            (),
        )


def _of_trouble(when: str, what: str, trouble: ErrorSummary, id_: str) -> FindingGroup:
    title = f"{what}: {trouble.what}"
    return FindingGroup(id_, when, title, Severity.ERROR, 1, ("why",), ((trouble.why,),), (trouble.next,))


def _builtins(verdict: UpgradeReport) -> Iterator[tuple[str, tuple[str, ...]]]:
    own = verdict.builtins
    if own is not None:
        for fate, names in (
            ("created", own.created),
            ("evolve, and keep their rows", own.evolved),
            ("replaced, and their rows dropped", own.replaced),
            ("dropped", own.given_up),
        ):
            if names:
                yield fate, names


def _charts(verdict: UpgradeReport, id_: str) -> Iterator[BarChart]:
    """Over the whole upgrade: each collection as the first step that names it finds it, and as the last leaves it."""
    first: dict[str, CollectionReport] = {}
    last: dict[str, CollectionReport] = {}
    for step in verdict.steps:
        for own in step.collections:
            first.setdefault(own.collection, own)
            last[own.collection] = own
    sides = (BEFORE, AFTER)
    if first:
        rows = {name: (own.rows_before, last[name].rows_after) for name, own in first.items()}
        sizes = {name: (own.bytes_before, last[name].bytes_after) for name, own in first.items()}
        shown = [Quantity(name, own, _before_after(*map(brief_count, own))) for name, own in rows.items()]
        yield side_by_side(f"{id_}-rows", "Rows", sides, shown)
        shown = [Quantity(name, own, _before_after(*map(size, own))) for name, own in sizes.items()]
        yield side_by_side(f"{id_}-bytes", "Bytes", sides, shown)
    ran = [step for step in verdict.steps if step.outcome is not StepOutcome.NOT_RUN]
    if ran:
        times = [
            Quantity(
                own.name,
                (own.own_s, max(own.seconds - own.own_s, 0)),
                part_told(duration(own.own_s), duration(own.seconds)),
            )
            for own in ran
        ]
        yield end_to_end(f"{id_}-time", "Time", _TIMES, times)


def _before_after(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"
