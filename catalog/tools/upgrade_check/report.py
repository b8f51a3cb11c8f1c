"""The report of an upgrade check, as plain data: `dataclasses.asdict` of it is JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from catalog.engine.migrate.violations import RowRule, Violation
from catalog.tools.fsck.findings import FsckCode, FsckFinding, Severity


class StepOutcome(StrEnum):
    OK = "ok"
    FAILED = "failed"
    NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class ErrorSummary:
    """The reason why a step could not run at all."""

    what: str
    why: str
    next: str


@dataclass(frozen=True, slots=True)
class FieldReport:
    """The number of rows that have a field set, before and after a step."""

    path: str
    """Such as `value.owner_id`."""
    before: int | None
    """None if the earlier types have no such field."""
    after: int | None
    """None if the later types have no such field."""
    lost: int = 0
    """Rows that lose it though they stay."""
    is_accepted: bool = False
    """True if the migration names it in `empties`."""

    @property
    def is_warning(self) -> bool:
        return self.lost > 0 and not self.is_accepted


@dataclass(frozen=True, slots=True)
class CollectionReport:
    """The counts of one collection: `rows_after` is `rows_before` plus `inserted`, minus the last three."""

    collection: str
    form: str
    """The forms of its actions; empty if it has none, and rows of it were only taken out."""
    rows_before: int
    rows_after: int
    bytes_before: int
    bytes_after: int
    changed: int
    inserted: int
    deleted: int
    set_aside: int
    """Rows that break a rule."""
    left_out: int
    """Rows that refer to those, or to such rows in turn."""
    fields: tuple[FieldReport, ...] = ()
    """Every field of either version, if the step rewrites the collection."""


@dataclass(frozen=True, slots=True)
class StepReport:
    name: str
    previous: int
    version: int
    summary: str
    outcome: StepOutcome
    seconds: float = 0.0
    own_s: float = 0.0
    """Of those, the time of the step itself: its last run and its commit, without the additional verification."""
    error: ErrorSummary | None = None
    collections: tuple[CollectionReport, ...] = ()
    violations: tuple[Violation, ...] = ()
    """The first of each rule."""
    counts: Mapping[RowRule, int] = field(default_factory=dict)
    """All of them, by rule."""
    left_out: int = 0
    bytes_written: int = 0
    warnings: tuple[str, ...] = ()
    """Sentences about probable mistakes that break no rule."""


@dataclass(frozen=True, slots=True)
class BuiltinsReport:
    """The migration of the builtins, which a leader runs after all steps."""

    outcome: StepOutcome
    error: ErrorSummary | None = None
    evolved: tuple[str, ...] = ()
    """Builtins with a new schema whose rows stay."""
    replaced: tuple[str, ...] = ()
    """Builtins whose rows are dropped."""
    created: tuple[str, ...] = ()
    given_up: tuple[str, ...] = ()
    """Builtins that no longer exist."""


@dataclass(frozen=True, slots=True)
class FsckSummary:
    """The findings of fsck in all rows of a version."""

    version: int
    findings: tuple[FsckFinding, ...]
    counts: Mapping[FsckCode, int]
    """All of them, by code."""
    set_aside: int = 0
    left_out: int = 0

    @property
    def ok(self) -> bool:
        return all(finding.severity is not Severity.ERROR for finding in self.findings)


@dataclass(frozen=True, slots=True)
class UpgradeReport:
    store: str
    id: str
    version: int
    """The version of the store, which the check does not change."""
    target: int
    ts: int
    """The ts of the state that was checked."""
    ok: bool
    """True if a start of this build would take the store to `target`, with `reapply` if that is needed."""
    steps: tuple[StepReport, ...]
    before: FsckSummary | None
    """None if its rows are older than protobuf: the first step verifies each of them."""
    after: FsckSummary | None
    """None if nothing was upgraded, or not to the end."""
    builtins: BuiltinsReport | None
    """None if the project has no builtins."""
    mismatches: tuple[str, ...]
    """Applied steps whose checksum is not of this build: no step is applied after them."""
    needs_reapply: bool
    """True if the step that is due was undone: a start applies it only with `reapply`."""
    startup_s: float
    """About how long an upgrade will take: `own_s` of all steps that ran, and the start of Spark, which is 0 if a
    session was given or none is needed. It contains neither the wait for another leader nor the time to read the store
    from where it is: the steps were measured on a copy."""
    extra_bytes: int
    """About how many bytes an upgrade needs beside the present files, which stay until retention ends."""
    seconds: float
    """The time of the check."""
    deleted: Mapping[str, int] = field(default_factory=dict)
    """The rows that the steps delete, by collection; without those that were set aside."""

    @property
    def warning_count(self) -> int:
        return sum(len(step.warnings) for step in self.steps)
