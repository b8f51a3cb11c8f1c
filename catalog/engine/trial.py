"""A step tried on a scratch copy: every row verified, whatever breaks a rule set aside, and the rest taken on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from time import perf_counter

from catalog.actions import Frame
from catalog.engine import events
from catalog.engine.cutting import cut
from catalog.engine.execution import Execution
from catalog.engine.links import Links
from catalog.engine.made import Keys, Made, add_keys
from catalog.engine.parts import live_rows
from catalog.engine.plan import StepPlan, describe
from catalog.engine.progress import Counts, Meter
from catalog.engine.step import Runner
from catalog.engine.types import ENGINE_COLLECTIONS
from catalog.engine.verdict import CollectionVerdict, Outcome, StepVerdict
from catalog.engine.violations import Violations
from catalog.errors import UnwrittenStepError
from catalog.log.protocol import State
from catalog.project import MigrationModule
from catalog.stash.view import Bases, load_view

_RUNS_MAX = 5
"""A step that refuses stored rows runs again without them; a sound one then refuses none."""


@dataclass(slots=True)
class Trial:
    """Takes a scratch copy from one version to the next, whatever its rows are like."""

    runner: Runner
    dead: Keys = field(default_factory=dict)
    """Rows that were taken out so far."""

    def run(self, module: MigrationModule) -> StepVerdict:
        """Take the copy one version on; raises if the step cannot run at all."""
        began, journal = perf_counter(), self.runner.journal
        plan = describe(module, journal.state, journal.version)
        meter = Meter(self.runner.observer, plan)
        meter.begin()
        number = events.begin(journal, plan, str(self.runner.project.build))
        tried = _Tried(journal.state, journal.state)
        made = self._made(module, plan, meter, tried)
        committing = perf_counter()
        self.runner.commit(plan, number, made)
        tried.own_s += perf_counter() - committing
        self._compare_frames(plan, tried, made)
        cut(journal, made.spoilt, made.doubled)
        add_keys(self.dead, made.spoilt)
        self._leave_out(tried, plan.version)
        meter.commit(made.counts)
        return StepVerdict(
            name=plan.name,
            previous=plan.previous,
            version=plan.version,
            summary=plan.summary,
            outcome=Outcome.FAILED if tried.violations else Outcome.OK,
            seconds=perf_counter() - began,
            own_s=tried.own_s,
            collections=tuple(self._collections(plan, tried, made)),
            violations=tuple(tried.violations.listed),
            counts=dict(tried.violations.counts),
            left_out=tried.left_out.total(),
            bytes_written=sum(file.size for file in made.adds),
        )

    def _made(self, module: MigrationModule, plan: StepPlan, meter: Meter, tried: _Tried) -> Made:
        """What the step makes of the rows that it takes; the others, and what refers to them, are taken out first."""
        journal = self.runner.journal
        for _ in range(_RUNS_MAX):
            running, tried.last = perf_counter(), journal.state
            source = replace(self.runner.source(meter), faults_max=None, sample=1, dead=self.dead)
            made = Execution(source, describe(module, journal.state, plan.previous), journal.state).run()
            tried.violations.merge([made.violations])
            if not made.faulty:
                only_checked = made.sampled_s / made.task_s if made.task_s else 0.0
                tried.own_s = (perf_counter() - running) * (1 - only_checked)
                tried.set_aside += made.set_aside
                return made
            journal.log.delete([file.path for file in made.adds])
            tried.set_aside.update({name: len(keys) for name, keys in made.faulty.items()})
            cut(journal, made.faulty)
            add_keys(self.dead, made.faulty)
            self._leave_out(tried, plan.previous)
        raise UnwrittenStepError(plan.name, f"it refused other rows each of {_RUNS_MAX} times that it ran")

    def _leave_out(self, tried: _Tried, version: int) -> None:
        """Take out whatever refers to rows that were taken out."""
        if not self.dead:
            return
        journal = self.runner.journal
        view = load_view(Bases(journal.log), journal.state)
        left = Links(self.runner.project, version).left_out(view, self.dead)
        tried.left_out.update({name: len(keys) for name, keys in left.items()})
        cut(journal, left)
        add_keys(self.dead, left)

    def _compare_frames(self, plan: StepPlan, tried: _Tried, made: Made) -> None:
        """Count what a frame did to the rows that it replaced, by their keys."""
        log, after = self.runner.journal.log, self.runner.journal.state
        for name in _framed(plan):
            old, new = (load_view(Bases(log), state, (name,)).rows(name) for state in (tried.last, after))
            counts, spoilt = made.counts[name], made.spoilt.get(name, set())
            counts.changed, counts.deleted = _compared(old, new, spoilt)
            counts.inserted = counts.rows_after + made.set_aside[name] + counts.deleted - counts.rows_before

    def _collections(self, plan: StepPlan, tried: _Tried, made: Made) -> Iterator[CollectionVerdict]:
        forms: dict[str, list[str]] = {}
        for work in plan.works:
            own = forms.setdefault(work.collection, [])
            own += [work.form] if work.form not in own else []
        log, after = self.runner.journal.log, self.runner.journal.state
        for name in (*forms, *sorted(({*tried.set_aside, *tried.left_out} - forms.keys()) - ENGINE_COLLECTIONS)):
            files = [
                [file for file in state.files.values() if file.collection == name] for state in (tried.first, after)
            ]
            rows_before, rows_after = (live_rows(log, own) for own in files)
            bytes_before, bytes_after = (sum(file.size for file in own) for own in files)
            counts = made.counts.get(name, Counts())
            yield CollectionVerdict(
                name,
                ", ".join(forms.get(name, [])),
                rows_before,
                rows_after,
                bytes_before,
                bytes_after,
                changed=counts.changed,
                inserted=counts.inserted,
                deleted=counts.deleted,
                set_aside=tried.set_aside[name],
                left_out=tried.left_out[name],
            )


@dataclass(slots=True)
class _Tried:
    """What is known of a step while it is tried."""

    first: State
    last: State
    """What its last run read: without the stored rows that it refuses."""
    violations: Violations = field(default_factory=Violations)
    set_aside: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    own_s: float = 0.0


def _framed(plan: StepPlan) -> frozenset[str]:
    """The collections whose rows frames replace."""
    return frozenset(name for action in plan.actions if isinstance(action, Frame) for name in action.writes)


def _compared(
    old: Iterator[tuple[bytes, bytes]], new: Iterator[tuple[bytes, bytes]], spoilt: set[bytes]
) -> tuple[int, int]:
    """How many rows, in the order of keys, have another value under their key, and how many are gone."""
    changed = deleted = 0
    following = next(new, None)
    for key, value in old:
        while following is not None and following[0] < key:
            following = next(new, None)
        if following is not None and following[0] == key:
            changed += following[1] != value
        elif key in spoilt:
            changed += 1
        else:
            deleted += 1
    return changed, deleted
