"""A step, executed but not committed: its files written and verified, and what their commit is to say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from catalog.actions import Columnar, Delete, Frame, Insert, PerRow, Retire
from catalog.engine.frames import frame_job
from catalog.engine.made import Keys, Made, Source, add_keys
from catalog.engine.naming import Naming
from catalog.engine.parts import Division, divide, live_rows
from catalog.engine.plan import StepPlan, added_by, touched
from catalog.engine.prints import Kind, Wanted, key_kind, unique_kind
from catalog.engine.progress import Counts
from catalog.engine.tasks import InsertTask, Report, Setting, Task, gather, kinds_of
from catalog.engine.types import ENGINE_COLLECTIONS, registry_of, row_types
from catalog.engine.violations import LISTED_MAX, Rule
from catalog.engine.work import FED, feed, work, work_insert, work_shuffled
from catalog.errors import UnwrittenStepError
from catalog.log.protocol import FileKind, State
from catalog.stash.collections import Collection, encode
from catalog.stash.view import Bases, load_view

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROWS_PER_BUCKET = 500_000
_BUCKETS_MAX = 64
ALLOCATORS = "id_alloc"


class Execution:
    def __init__(self, source: Source, plan: StepPlan, state: State) -> None:
        self.source, self.plan, self.state = source, plan, state
        self.made = Made()
        self.lost: frozenset[str] = frozenset()
        """Collections of which keys may be gone."""
        self.new = registry_of(source.project, plan.version)
        self.constraints = source.project.constraints.at(plan.version)
        self.actions = _rewriting(plan)
        self.framed = [action for action in plan.actions if isinstance(action, Frame)]
        self.added = frozenset(name for action in plan.actions for name in added_by(action))
        self.changed = frozenset(
            {*self.actions, *self.added, *(name for action in self.framed for name in action.writes)}
        )
        self.setting = self._setting()

    def run(self) -> Made:
        """Execute; violations are answered and not raised."""
        if self.changed:
            self._rewrite()
        if self._is_repeated:
            return self.made
        self.made.removes = [file for file in self.state.files.values() if file.collection in self._replaced()]
        self._check_collections()
        self._count()
        self.made.depends = frozenset({*touched(self.plan.actions), *self._read()} - ENGINE_COLLECTIONS)
        return self.made

    @property
    def _is_repeated(self) -> bool:
        """Whether nothing that is made counts: the step runs again without the stored rows that break a rule."""
        return self.source.is_thorough and bool(self.made.faulty)

    def _read(self) -> Iterator[str]:
        """The collections that the step relied on and left as they are."""
        for action in self.plan.actions:
            if isinstance(action, PerRow | Frame) and action.ids:
                yield ALLOCATORS
            if isinstance(action, Frame):
                yield from action.reads
        for reference in self.constraints.references:
            if reference.collection in self.changed:
                yield reference.target
            if reference.target in self.lost:
                yield reference.collection

    def _setting(self) -> Setting:
        source, state = self.source, self.state
        stored = {file.collection for file in state.files.values()}
        wanted = {name: Wanted.all_of(self.constraints, name) for name in self.changed}
        for target in {reference.target for own in wanted.values() for reference in own.references} - wanted.keys():
            wanted[target] = Wanted(keys=True)
        compared = self._compared(wanted)
        for name, own in compared.items():
            rest = tuple(unique for unique in wanted[name].uniques if unique not in own.uniques)
            wanted[name] = replace(wanted[name], keys=not own.keys, uniques=rest)
        return Setting(
            log=source.log,
            project=source.project.name,
            old=self.plan.previous,
            new=self.plan.version,
            fence=source.fence,
            base_ts=state.version,
            commit_ts=state.version + 1,
            created=frozenset(self.changed - stored),
            wanted={name: own for name, own in wanted.items() if own},
            compared=compared,
            buckets=self._buckets(wanted),
            faults_max=source.faults_max,
            sample=source.sample,
        )

    def _buckets(self, wanted: Mapping[str, Wanted]) -> int:
        """As many as there are prints for; of references there are few that differ."""
        printed = {name for name, own in wanted.items() if own.keys or own.uniques}
        rows = sum(file.rows for file in self.state.files.values() if file.collection in printed)
        return min(_BUCKETS_MAX, rows // _ROWS_PER_BUCKET + 1)

    def _compared(self, wanted: Mapping[str, Wanted]) -> dict[str, Wanted]:
        """What is in order after a columnar action if it was before and no row differs in it.

        Keys that others refer to are needed in any case; and whoever wants to know of every fault trusts nothing.
        """
        if self.source.is_thorough:
            return {}
        referred = {reference.target for own in wanted.values() for reference in own.references}
        return {
            name: Wanted(
                keys=name not in referred,
                uniques=tuple(unique for unique in wanted[name].uniques if unique.since <= self.plan.previous),
            )
            for name, actions in self.actions.items()
            if isinstance(actions[0], Columnar) and name not in self.added
        }

    def _rewrite(self) -> None:
        divisions = {name: divide(self.source.log, self.state, name) for name in self.actions}
        planned = {
            name: (division, self._tasks(name, division, self._first_ids(name, division)))
            for name, division in divisions.items()
        }
        for name in self.setting.wanted.keys() - self._replaced():
            division = divide(self.source.log, self.state, name)
            planned[name] = division, [Task(part) for part in division.parts]
        frames, count = self._frames(self.setting, planned)
        inserts = self._inserts()
        if inserts:
            frames.append(self.source.jobs.tasks(partial(work_insert, self.setting), inserts))
        for action in self.framed:
            next_id = self._allocated(action.ids) if action.ids else None
            frames += frame_job(self.source.jobs, self.setting, action, self.state, self.source.place, next_id=next_id)
        reports, findings = self._collect(frames, self.setting, count)
        if self._is_repeated:
            self.made.adds = [file for report in reports for file in report.files]
            return
        self._take(reports, divisions)
        framed = (name for action in self.framed for name in action.writes)  # no report tells of a frame without rows
        changed = (report.collection for report in reports if report.keys_changed)
        self.lost = frozenset({*framed, *changed, *self.made.spoilt})
        differing = frozenset[Kind]().union(*(report.differing for report in reports))
        self._name([*findings, *self._scan(differing)])

    def _tasks(self, name: str, division: Division, first_ids: Sequence[int] = (), *, dry: bool = False) -> list[Task]:
        ids = first_ids or [0] * len(division.parts)
        return [Task(part, self.actions[name], ids[part.number], dry) for part in division.parts]

    def _frames(
        self, setting: Setting, planned: Mapping[str, tuple[Division, Sequence[Task]]]
    ) -> tuple[list[DataFrame], int]:
        """The frames that do the tasks of some collections, and how many of them read their parts themselves."""
        direct = [task for division, tasks in planned.values() for task in tasks if not division.shuffled]
        frames = [self.source.jobs.tasks(partial(work, setting), direct)] if direct else []
        frames += [self._shuffled(setting, *own) for own in planned.values() if own[0].shuffled]
        return frames, len(direct)

    def _shuffled(self, setting: Setting, division: Division, tasks: Sequence[Task]) -> DataFrame:
        log, lows = self.source.log, [task.part.low for task in tasks]
        pieces = [(file, number) for file in division.shuffled for number in range(len(log.groups(file)))]
        working = partial(work_shuffled, setting, tuple(tasks))
        return self.source.jobs.shuffled(partial(feed, log, lows), pieces, FED, working)

    def _first_ids(self, name: str, division: Division) -> Sequence[int]:
        """The first id of each part, so that ids are dense and in the order of keys."""
        action = next((action for action in self.actions[name] if isinstance(action, PerRow) and action.ids), None)
        if action is None or action.ids is None:
            return ()
        start = self._allocated(action.ids)
        if len(division.parts) < 2:  # noqa: PLR2004 - nothing to be divided
            return [start] * len(division.parts)
        frames, count = self._frames(self.setting, {name: (division, self._tasks(name, division, dry=True))})
        reports = self.source.jobs.collect(frames, self.source.watch, count=count).reports
        used = {report.number: report.ids for report in reports}
        return list(accumulate((used.get(part.number, 0) for part in division.parts[:-1]), initial=start))

    def _inserts(self) -> list[InsertTask]:
        tasks = []
        for action in self.plan.actions:
            if isinstance(action, Insert):
                rows = [(encode(key), encode(value)) for key, value in action.rows()]
                if rows:
                    tasks.append(InsertTask(action.collection, tuple(rows)))
        return tasks

    def _collect(self, frames: Sequence[DataFrame], setting: Setting, count: int) -> tuple[list[Report], list[Any]]:
        listed_max = None if self.source.is_thorough else LISTED_MAX
        gathering = partial(gather, kinds_of(setting.wanted), listed_max) if setting.wanted else None
        done = self.source.jobs.collect(
            frames, self.source.watch, gather=gathering, buckets=setting.buckets, count=count
        )
        for report in done.reports:
            self.made.take_stored(report.judge)
            self.made.task_s += report.seconds
        if not self._is_repeated:
            for report in done.reports:
                self.made.take_made(report.judge)
        return done.reports, done.findings

    def _take(self, reports: Sequence[Report], divisions: Mapping[str, Division]) -> None:
        """Take in what tasks report, and see that it adds up."""
        for report in reports:
            if report.collection in self.changed:
                self._take_report(report)
        for name in divisions:
            self._check_taken(name, [report for report in reports if report.collection == name])
        for name, actions in self.actions.items():
            own = [report for report in reports if report.collection == name]
            counts = self.made.counts.setdefault(name, Counts())
            made_rows = counts.rows_after + self.made.set_aside[name] - counts.inserted
            if isinstance(actions[0], Columnar) and made_rows != counts.rows_before:
                self._violate(Rule.ROWS, name, f"{counts.rows_before} rows became {made_rows}")
            if isinstance(actions[0], PerRow) and actions[0].ids:
                self._allocate(actions[0].ids, sum(report.ids for report in own))
        for action in self.framed:
            if action.ids:
                self._take_frame_ids(action.ids, [report for report in reports if report.ids and report.id_bounds])

    def _take_report(self, report: Report) -> None:
        self.made.adds += report.files
        counts = self.made.counts.setdefault(report.collection, Counts())
        counts.rows_before += report.rows_before
        counts.changed += report.changed
        counts.deleted += report.deleted
        for name, rows in report.inserted.items():
            self.made.counts.setdefault(name, Counts()).inserted += rows
        for name, rows in report.rows_after.items():
            self.made.counts.setdefault(name, Counts()).rows_after += rows

    def _check_taken(self, name: str, reports: Sequence[Report]) -> None:
        if self.made.violations and not self.source.is_thorough:
            return  # tasks stopped early
        files = [file for file in self.state.files.values() if file.collection == name]
        for kind, taken in (
            (FileKind.BASE, sum(report.taken.base for report in reports)),
            (FileKind.TAIL, sum(report.taken.tail for report in reports)),
        ):
            stored = sum(file.rows for file in files if file.kind is kind)
            if stored != taken:
                self._violate(Rule.ROWS, name, f"{taken} of {stored} rows of its {kind} files were read")

    def _take_frame_ids(self, allocator: str, reports: Sequence[Report]) -> None:
        start, used = self._allocated(allocator), sum(report.ids for report in reports)
        if used:
            low = min(report.id_bounds[0] for report in reports if report.id_bounds)
            high = max(report.id_bounds[1] for report in reports if report.id_bounds)
            if (low, high) != (start, start + used - 1):
                told = f"{used} new ids reach from {low} to {high}, and should be dense from {start}"
                self._violate(Rule.KEY, allocator, told)
        self._allocate(allocator, used)

    def _scan(self, differing: frozenset[Kind]) -> list[Any]:
        """What the rows after the step have to be looked at for.

        That is whatever was compared and differs, and references from collections that stay to rows that may be gone.
        """
        wanted = {
            name: Wanted(
                keys=key_kind(name) in differing,
                uniques=tuple(unique for unique in own.uniques if unique_kind(unique) in differing),
            )
            for name, own in self.setting.compared.items()
        }
        stored = {file.collection for file in self.state.files.values()}
        for reference in self.constraints.references:
            if reference.target in self.lost and reference.collection in stored - self.changed - self._replaced():
                own = wanted.get(reference.collection, Wanted())
                wanted[reference.collection] = replace(own, references=(*own.references, reference))
                wanted[reference.target] = replace(wanted.get(reference.target, Wanted()), keys=True)
        wanted = {name: own for name, own in wanted.items() if own}
        if not wanted or (self.made.violations and not self.source.is_thorough):
            return []
        setting = replace(self.setting, wanted=wanted, buckets=self._buckets(wanted))
        divisions = {name: divide(self.source.log, self._after(), name) for name in wanted}
        planned = {name: (division, [Task(part) for part in division.parts]) for name, division in divisions.items()}
        frames, count = self._frames(setting, planned)
        return self._collect(frames, setting, count)[1]

    def _name(self, findings: Sequence[Any]) -> None:
        if findings:
            stays = {file.path for file in self.made.adds if file.kind is FileKind.TAIL}
            after = self._after()
            whole = replace(after, files={path: file for path, file in after.files.items() if path not in stays})
            additions = [file for file in self.made.adds if file.path in stays]
            dead: Keys = {}
            add_keys(dead, self.source.dead)
            add_keys(dead, self.made.spoilt)
            naming = Naming(self.source.log, whole, additions, self.new, self.constraints, dead)
            named = naming.name(findings, is_thorough=self.source.is_thorough)
            self.made.take_named(named)

    def _after(self) -> State:
        """The state as the commit would leave it, as far as files go."""
        replaced = self._replaced()
        files = {path: file for path, file in self.state.files.items() if file.collection not in replaced}
        return replace(self.state, files={**files, **{file.path: file for file in self.made.adds}})

    def _replaced(self) -> frozenset[str]:
        retired = {action.collection for action in self.plan.actions if isinstance(action, Retire)}
        framed = {name for action in self.framed for name in action.writes}
        return frozenset({*self.actions, *retired, *framed})

    def _check_collections(self) -> None:
        known = {*self.new.by_name, *ENGINE_COLLECTIONS}
        for name in sorted({file.collection for file in self._after().files.values()} - known):
            told = f"version {self.plan.version} has no such collection, and nothing retires it"
            self._violate(Rule.COLLECTION, name, told)
            left = [file for file in self.state.files.values() if file.collection == name]
            self.made.set_aside[name] += live_rows(self.source.log, left)
            self.made.removes += left

    def _count(self) -> None:
        retired = {action.collection for action in self.plan.actions if isinstance(action, Retire)}
        for name in touched(self.plan.actions):
            counts = self.made.counts.setdefault(name, Counts())
            before = [file for file in self.state.files.values() if file.collection == name]
            after = [file for file in self._after().files.values() if file.collection == name]
            counts.bytes_before, counts.bytes_after = (sum(file.size for file in files) for files in (before, after))
            if name not in self.actions:
                counts.rows_before = live_rows(self.source.log, before)
                added = sum(file.rows for file in self.made.adds if file.collection == name)
                kept = 0 if name in self._replaced() else counts.rows_before
                counts.rows_after = kept + added
                counts.deleted = counts.rows_before if name in retired else 0

    def _allocated(self, allocator: str) -> int:
        """The lowest id that is free before the step, or after the actions before this one."""
        if allocator in self.made.next_ids:
            return self.made.next_ids[allocator]
        if ALLOCATORS in self.changed:
            raise UnwrittenStepError(self.plan.name, "it gives out ids and rewrites their allocators at once")
        kind = row_types(self.source.project, self.plan.previous)[ALLOCATORS]
        if not isinstance(kind, Collection):
            raise UnwrittenStepError(self.plan.name, "it gives out ids before rows are protobuf")
        view = load_view(Bases(self.source.log), self.state, (ALLOCATORS,))
        found = view.get(ALLOCATORS, encode(kind.key_type(name=allocator)))
        return 1 if found is None else int(kind.value_type.FromString(found).next_id)  # type: ignore[attr-defined]

    def _allocate(self, allocator: str, used: int) -> None:
        self.made.next_ids[allocator] = self._allocated(allocator) + used

    def _violate(self, rule: Rule, collection: str, found: str) -> None:
        self.made.violations.add(rule, collection, "", found)


def _rewriting(plan: StepPlan) -> dict[str, tuple[Columnar | PerRow | Delete, ...]]:
    found: dict[str, tuple[Columnar | PerRow | Delete, ...]] = {}
    for action in plan.actions:
        if isinstance(action, Columnar | PerRow | Delete):
            found[action.collection] = (*found.get(action.collection, ()), action)
    return found
