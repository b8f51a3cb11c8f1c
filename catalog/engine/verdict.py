"""What a check of an upgrade answers, as plain data: `dataclasses.asdict` of it is JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from catalog.engine.violations import Rule, Violation
from catalog.stash.findings import Code, Finding, Severity


class Outcome(StrEnum):
    OK = "ok"
    FAILED = "failed"
    NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a step could not run at all."""

    what: str
    why: str
    next: str


@dataclass(frozen=True, slots=True)
class CollectionVerdict:
    """What became of one collection: `rows_after` is `rows_before`, and `inserted`, without the last three."""

    collection: str
    form: str
    """The forms of the actions that name it; empty if none does, and only rows of it were taken out."""
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


@dataclass(frozen=True, slots=True)
class StepVerdict:
    name: str
    previous: int
    version: int
    summary: str
    outcome: Outcome
    seconds: float = 0.0
    own_s: float = 0.0
    """Of those, what the step itself needs: its last run and its commit, without what only a check looks at."""
    error: Trouble | None = None
    collections: tuple[CollectionVerdict, ...] = ()
    violations: tuple[Violation, ...] = ()
    """The first of each rule."""
    counts: Mapping[Rule, int] = field(default_factory=dict)
    """All of them, by rule."""
    left_out: int = 0
    bytes_written: int = 0


@dataclass(frozen=True, slots=True)
class BuiltinsVerdict:
    """What becomes of the builtins when a leader starts, after all steps."""

    outcome: Outcome
    error: Trouble | None = None
    evolved: tuple[str, ...] = ()
    """They get another schema, and their rows stay."""
    replaced: tuple[str, ...] = ()
    """Their rows are given up."""
    created: tuple[str, ...] = ()
    given_up: tuple[str, ...] = ()
    """They are no longer there at all."""


@dataclass(frozen=True, slots=True)
class Look:
    """What was found in all rows of a version, whatever steps look at."""

    version: int
    findings: tuple[Finding, ...]
    counts: Mapping[Code, int]
    """All of them, by code."""
    set_aside: int = 0
    left_out: int = 0

    @property
    def ok(self) -> bool:
        return all(finding.severity is not Severity.ERROR for finding in self.findings)


@dataclass(frozen=True, slots=True)
class Verdict:
    store: str
    id: str
    version: int
    """Of the store; it stays there."""
    target: int
    ts: int
    """What was checked is the store as it was at this ts."""
    ok: bool
    """Whether a start of this build would take the store to `target`, with `reapply` if that is needed."""
    steps: tuple[StepVerdict, ...]
    before: Look | None
    """None: its rows are older than protobuf, and the first step looks at each of them."""
    after: Look | None
    """None: nothing was upgraded, or not to the end."""
    builtins: BuiltinsVerdict | None
    """None: the project has none."""
    mismatches: tuple[str, ...]
    """Applied steps that are not those of this build: nothing is applied after them."""
    needs_reapply: bool
    """Somebody undid the step that is due: a start must be told to apply it again."""
    startup_s: float
    """About how long an upgrade will take: `own_s` of all steps that ran, and the start of Spark as it took this time,
    which is nothing if a session was given or none is needed. Waiting for another leader is not in it, nor is reading
    the store from where it is: the steps were measured on a copy."""
    extra_bytes: int
    """About how much room an upgrade will need beside the present files, which stay until retention ends."""
    seconds: float
    """What the check took."""
