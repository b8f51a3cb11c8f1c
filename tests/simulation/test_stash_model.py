"""The stash against plain dictionaries: whatever two processes do to it, crashes and lost answers included.

The model keeps every row at every ts. A failure prints the steps that lead to it and how to repeat them; `SEED=7`
starts from a seed of one's own, and the `soak` profile tries more.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import NamedTuple

import pytest
from google.protobuf.message import Message
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from catalog.constraints import CONSTRAINTS
from catalog.errors import (
    CatalogError,
    ConstraintError,
    DanglingReferenceError,
    DuplicateError,
    FencedError,
    IndeterminateError,
    KeyExistsError,
    NoSuchRowError,
    RetiredError,
    RetryableError,
    TransactionConflictError,
)
from catalog.generated import objects_pb2 as types
from catalog.log.maintenance import Policy, clean, vacuum
from catalog.log.memory import LostResponseError
from catalog.log.protocol import Commit, Fence, Log, Mark, Operation, Point
from catalog.stash.collections import Registry, encode
from catalog.stash.consolidation import Shape
from catalog.stash.stash import Stash
from catalog.stash.transaction import Transaction
from catalog.stash.view import View
from tests.contract.places import Crash, DeltaPlace, MemoryPlace, Place

SOAK = settings.get_current_profile_name() == "soak"
REGISTRY = Registry.of(types)
POLICY = Policy(checkpoint_every=3, clean_every=8, retention_ms=60_000, orphan_ms=30_000)
FOLDER_POLICY = replace(POLICY, orphan_ms=10**9)
"""Files are dated by the machine's own clock, and `wait` would make those of a running transaction old."""
SHAPE = Shape(tail_files_max=3, tail_share_max=1.5)
KEY_TYPES: dict[str, type[Message]] = {
    "setting": types.SettingKey,
    "role": types.RoleKey,
    "database": types.DatabaseKey,
    "schema": types.SchemaKey,
    "item": types.ItemKey,
}
PARENTS = {"role": "role", "schema": "database", "item": "schema"}
OWNED = {"database", "schema", "item"}


class Name(NamedTuple):
    """Which row: the model's own key."""

    collection: str
    number: int


class Row(NamedTuple):
    """What a row says, as far as the model goes; 0 refers to nothing."""

    text: str
    parent: int = 0
    owner: int = 0


Rows = Mapping[Name, Row]


class Step(NamedTuple):
    verb: str
    name: Name
    row: Row


@dataclass(frozen=True)
class Outcome:
    """What a transaction is to do, by the model."""

    error: type[CatalogError] | None = None
    changed: Mapping[Name, Row | None] = field(default_factory=dict)
    read: frozenset[Name] = frozenset()
    scanned: frozenset[str] = frozenset()

    def conflicts_with(self, other: Outcome) -> bool:
        touched = other.changed.keys()
        return bool(self.read & touched) or any(name.collection in self.scanned for name in touched)


def applied(rows: Rows, changed: Mapping[Name, Row | None]) -> Rows:
    return {name: row for name, row in {**rows, **changed}.items() if row is not None}


def violated(rows: Rows) -> type[CatalogError] | None:
    """The constraint that these rows break, if they break one."""
    named = Counter((name.collection, row.parent if name.collection in {"schema", "item"} else 0, row.text)
                    for name, row in rows.items() if name.collection != "setting")  # fmt: skip
    if any(count > 1 for count in named.values()):
        return DuplicateError
    for name, row in rows.items():
        parent = Name(PARENTS.get(name.collection, ""), row.parent)
        if (row.parent and parent not in rows) or (row.owner and Name("role", row.owner) not in rows):
            return DanglingReferenceError
    return None


def plan(rows: Rows, script: list[Step]) -> Outcome:
    """What a transaction does to these rows, if nobody comes between."""
    after: dict[Name, Row] = dict(rows)
    read, scanned = set[Name](), set[str]()
    for step in script:
        if step.verb == "scan":
            scanned.add(step.name.collection)
            continue
        read.add(step.name)
        if step.verb == "insert" and step.name in after:
            return Outcome(KeyExistsError)
        if step.verb in {"update", "delete"} and step.name not in after:
            return Outcome(NoSuchRowError)
        if step.verb == "delete":
            del after[step.name]
        elif step.verb != "get":
            after[step.name] = step.row
    changed = {name: after.get(name) for name in read if after.get(name) != rows.get(name)}
    return Outcome(violated(after) if changed else None, changed, frozenset(read), frozenset(scanned))


def act(tx: Transaction, rows: Rows, script: list[Step]) -> None:
    """Do the same to the stash; on the way it shows what the model has."""
    now: dict[Name, Row] = dict(rows)
    for step in script:
        key, value = messages(step.name, step.row)
        match step.verb:
            case "get":
                found = tx.get(key)
                assert found == (messages(step.name, now[step.name])[1] if step.name in now else None)
            case "scan":
                scanned = {encode(key): encode(value) for key, value in tx.rows(KEY_TYPES[step.name.collection])}
                assert scanned == stored(now, step.name.collection)
            case "delete":
                tx.delete(key)
                del now[step.name]
            case verb:
                {"insert": tx.insert, "update": tx.update, "upsert": tx.upsert}[verb](key, value)
                now[step.name] = step.row


@cache
def messages(name: Name, row: Row) -> tuple[Message, Message]:
    owner = types.RoleId(user=1000 + row.owner)
    match name.collection:
        case "setting":
            return types.SettingKey(name=f"s{name.number}"), types.SettingValue(value=row.text)
        case "role":
            member_of = [types.RoleId(user=1000 + row.parent)] if row.parent else []
            key = types.RoleKey(id=types.RoleId(user=1000 + name.number))
            return key, types.RoleValue(name=row.text, member_of=member_of)
        case "database":
            return types.DatabaseKey(id=name.number), types.DatabaseValue(name=row.text, owner_id=owner)
        case "schema":
            value = types.SchemaValue(name=row.text, owner_id=owner, database_id=row.parent or None)
            return types.SchemaKey(id=name.number), value
        case _:
            return types.ItemKey(id=name.number), types.ItemValue(name=row.text, schema_id=row.parent, owner_id=owner)


def stored(rows: Rows, collection: str) -> dict[bytes, bytes]:
    """Rows of the model as the stash is to hold them."""
    pairs = (messages(name, row) for name, row in rows.items() if name.collection == collection)
    return {encode(key): encode(value) for key, value in pairs}


def check_view(view: View, rows: Rows) -> None:
    """Exactly these rows, each once and in order, by scans and by key."""
    for collection in KEY_TYPES:
        found, wanted = list(view.rows(collection)), stored(rows, collection)
        assert found == sorted(wanted.items())
        assert all(view.get(collection, key) == value for key, value in wanted.items())


class Faults:
    """What happens at the points that a log passes: something of another process, a crash or a lost answer."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.points: tuple[Point, ...] = ()
        self.skip_count = 0
        self.crash = False
        self.meanwhile: tuple[Point, Callable[[], None]] | None = None

    def __call__(self, point: Point) -> None:
        if self.meanwhile is not None and self.meanwhile[0] is point:
            do, self.meanwhile = self.meanwhile[1], None
            do()
        if point not in self.points:
            return
        self.skip_count -= 1
        if self.skip_count < 0:
            raise Crash(point) if self.crash else LostResponseError(f"no answer at {point}")


@dataclass
class Process:
    """A handle on the stash, as a process of its own would have it."""

    stash: Stash
    faults: Faults

    @classmethod
    def start(cls, place: Place) -> Process:
        faults = Faults()
        policy = POLICY if isinstance(place, MemoryPlace) else FOLDER_POLICY
        stash = Stash.open(place.open(faults), REGISTRY, CONSTRAINTS, policy)
        stash.shape = SHAPE
        stash.join()
        return cls(stash, faults)

    def begin(self) -> Transaction:
        self.stash.refresh()
        return Transaction(REGISTRY, self.stash.view())


COLLECTIONS = ["setting", "setting", "item", "item", "schema", "database", "role"]
VERBS = ["upsert"] * 8 + ["delete"] * 2 + ["insert", "update", "get", "scan"]
RACING_VERBS = ["upsert", "upsert", "upsert", "get", "scan"]
ROUTINE = [Point.WRITE_BEFORE_FILE, Point.WRITE_AFTER_FILE, Point.COMMIT_BEFORE_LOG, Point.COMMIT_AFTER_LOG]
"""The points that every write passes; the others only some."""


@st.composite
def steps(draw: st.DrawFn, verbs: list[str] = VERBS) -> Step:
    """Mostly what may be done, so that enough of it is."""
    name = Name(draw(st.sampled_from(COLLECTIONS)), draw(st.integers(1, 4)))
    parents = [1, 1, 1, 2, 3] if name.collection == "item" else [0, 1, 1, 2]
    parent = draw(st.sampled_from(parents)) if name.collection in PARENTS else 0
    owner = draw(st.sampled_from([1, 1, 1, 1, 2, 3])) if name.collection in OWNED else 0
    return Step(draw(st.sampled_from(verbs)), name, Row(draw(st.sampled_from("abcdefgh")), parent, owner))


scripts = st.lists(steps(), min_size=1, max_size=4)
racing_scripts = st.lists(steps(RACING_VERBS), min_size=1, max_size=3)
races = st.tuples(
    racing_scripts,
    racing_scripts,
    st.none() | steps(["upsert"]),
    st.sampled_from([None, Point.WRITE_AFTER_FILE, Point.COMMIT_BEFORE_LOG]),
)
Race = tuple[list[Step], list[Step], Step | None, Point | None]
which = st.integers(0, 1)
faults = st.tuples(
    st.one_of(
        st.sampled_from([(point,) for point in ROUTINE]),
        st.sampled_from([(point,) for point in Point if not point.startswith("create")]),
        st.sampled_from([(Point.COMMIT_BEFORE_LOG, Point.COMMIT_SEAL), (Point.COMMIT_AFTER_LOG, Point.COMMIT_PROBE)]),
    ),
    st.sampled_from([0, 0, 1, 2, 4]),
    st.booleans(),
)
Fault = tuple[tuple[Point, ...], int, bool]


class StashMachine(RuleBasedStateMachine):
    """Two processes on one store; `history[ts]` is what the store must have held at each ts."""

    def __init__(self) -> None:
        super().__init__()
        self.place: Place = self.make_place()
        self.history: list[Rows] = [{}]
        self.times_ms: list[int] = [0]
        self.frontier, self.fence = 0, Fence(0, 0)
        self.in_doubt: dict[str, Mapping[Name, Row | None]] = {}
        self.observer: Log = self.place.open()
        self.observer.create("made")
        self.processes = [Process.start(self.place), Process.start(self.place)]

    def make_place(self) -> Place:
        return MemoryPlace()

    @initialize()
    def furnish(self) -> None:
        """Something to refer to."""
        self.processes[0].stash.take_over(1, "test")
        self.absorb({})
        self.replace_fenced()
        self.run(self.processes[0], [
            Step("insert", Name("role", 1), Row("a")), Step("insert", Name("role", 2), Row("b", 1)),
            Step("insert", Name("database", 1), Row("a", 0, 1)), Step("insert", Name("schema", 1), Row("a", 1, 1)),
        ])  # fmt: skip

    @rule(several=st.lists(st.tuples(which, scripts), min_size=1, max_size=6))
    def transact(self, several: list[tuple[int, list[Step]]]) -> None:
        """A transaction does what the model says, or is refused and does nothing."""
        for process, script in several:
            self.run(self.processes[process], script)

    @rule(process=which, script=scripts, fault=faults)
    def transact_in_trouble(self, process: int, script: list[Step], fault: Fault) -> None:
        """A process that crashes or gets no answer leaves a transaction wholly in or wholly out."""
        used = self.processes[process]
        used.faults.points, used.faults.skip_count, used.faults.crash = fault
        self.run(used, script)
        used.faults.clear()
        self.replace_fenced()

    @rule(several=st.lists(races, min_size=1, max_size=4))
    def race(self, several: list[Race]) -> None:
        """Of two transactions that saw the same, the second lands only if it depends on nothing the first did."""
        for first, second, shared, point in several:
            if shared is None:
                self.race_once(first, second, point)
            else:
                self.race_once([*first, shared], [shared._replace(verb="get"), *second], point)

    def race_once(self, first: list[Step], second: list[Step], point: Point | None) -> None:
        rows, (winner, loser) = self.rows, self.processes
        planned, late = plan(rows, first), plan(rows, second)
        one, other = self.prepared(winner, first), self.prepared(loser, second)

        def win() -> None:
            if one is not None:
                self.finish(winner, one, planned)

        if other is None or point is None or late.error is not None or not late.changed:
            win()
        else:
            loser.faults.meanwhile = (point, win)
        if other is not None:
            won = planned.error is None and bool(planned.changed)
            if won and late.changed and late.conflicts_with(planned):
                late = Outcome(TransactionConflictError)
            elif won and late.changed:
                late = Outcome(violated(applied(applied(rows, planned.changed), late.changed)), late.changed)
            self.finish(loser, other, late)
        assert loser.faults.meanwhile is None

    @rule(process=which, collection=st.sampled_from(sorted(KEY_TYPES)), fault=st.none() | faults)
    def consolidate(self, process: int, collection: str, fault: Fault | None) -> None:
        """Files change, rows do not, wherever it stops."""
        self.maintain(process, lambda stash: stash.consolidate(collection), fault)

    @rule(process=which, ms=st.sampled_from([0, 40_000, 100_000]), fault=st.none() | faults)
    def clean(self, process: int, ms: int, fault: Fault | None) -> None:
        """What is not retained goes, nothing else does, wherever it stops."""
        self.place.wait(ms)
        self.maintain(process, lambda stash: clean(stash.head.log, stash.head.state, stash.policy), fault)

    @rule(process=which)
    def vacuum(self, process: int) -> None:
        """Nothing that a retained ts needs is deleted."""
        self.maintain(process, lambda stash: vacuum(stash.head.log, stash.head.state, stash.policy), None)

    @rule(generation=st.integers(0, 1), fault=st.none() | faults)
    def take_over(self, generation: int, fault: Fault | None) -> None:
        """A new leader, or one that did not get so far; whoever was before cannot write again."""
        newer = Process.start(self.place)
        if fault is not None:
            newer.faults.points, newer.faults.skip_count, newer.faults.crash = fault
        try:
            newer.stash.take_over(self.fence.generation + generation, "newer")
        except (CatalogError, LostResponseError, Crash):
            assert fault is not None
            self.absorb({})
        else:
            before = self.fence
            self.absorb({})
            assert self.fence == (before.generation + generation, before.epoch + 1) == newer.stash.head.fence
            newer.faults.clear()
        self.replace_fenced()
        if newer.stash.head.fence == self.fence:
            newer.faults.clear()
            self.processes[0] = newer

    @rule(process=which)
    def reopen(self, process: int) -> None:
        """A process that starts again sees what it saw."""
        self.processes[process] = Process.start(self.place)
        check_view(self.processes[process].stash.view(), self.rows)

    @rule(ms=st.sampled_from([1, 40_000, 100_000]))
    def wait(self, ms: int) -> None:
        self.place.wait(ms)

    @precondition(lambda self: isinstance(self.place, MemoryPlace) and bool(self.place.memory.in_flight))
    @rule()
    def deliver(self) -> None:
        """A commit that was given up for unknown arrives after all, unless its version is taken."""
        assert isinstance(self.place, MemoryPlace)
        self.place.memory.deliver()
        self.absorb({})
        self.replace_fenced()

    @rule(several=st.lists(scripts, min_size=2, max_size=4), after=scripts, share=st.floats(0, 1))
    def sleep(self, several: list[list[Step]], after: list[Step], share: float) -> None:
        """A process that has not looked for longer than anything is retained goes on as if it had."""
        busy, asleep = self.processes
        for script in several:
            self.run(busy, script)
            self.place.wait(2 * POLICY.retention_ms)
            self.maintain(0, lambda stash: clean(stash.head.log, stash.head.state, stash.policy), None)
        self.check_at(asleep.stash, round(share * (len(self.history) - 1)))
        self.check_feed(asleep.stash, round(share * (len(self.history) - 1)))
        self.run(asleep, after)

    @rule(process=which, share=st.floats(0, 1))
    def travel(self, process: int, share: float) -> None:
        """Any ts is as it was, or said to be retired, however long the process has not looked."""
        self.check_at(self.processes[process].stash, round(share * (len(self.history) - 1)))

    @rule(process=which, share=st.floats(0, 1))
    def follow(self, process: int, share: float) -> None:
        """A feed from any ts leads through every ts since."""
        self.check_feed(self.processes[process].stash, round(share * (len(self.history) - 1)))

    def teardown(self) -> None:
        stash = Process.start(self.place).stash
        assert stash.ts == len(self.history) - 1
        for ts in range(len(self.history)):
            self.check_at(stash, ts)
        for ts in {0, self.frontier, (self.frontier + stash.ts) // 2}:
            self.check_feed(stash, ts)
        self.check_multiplicities()

    @property
    def rows(self) -> Rows:
        return self.history[-1]

    def run(self, process: Process, script: list[Step]) -> None:
        planned = plan(self.rows, script)
        tx = self.prepared(process, script)
        if tx is not None:
            self.finish(process, tx, planned)

    def prepared(self, process: Process, script: list[Step]) -> Transaction | None:
        """A transaction that has done its steps; none if one of them was refused, as it had to be."""
        planned, tx = plan(self.rows, script), process.begin()
        if planned.error not in {KeyExistsError, NoSuchRowError}:
            act(tx, self.rows, script)
            return tx
        with pytest.raises(planned.error):
            act(tx, self.rows, script)
        return None

    def finish(self, process: Process, tx: Transaction, planned: Outcome) -> None:
        """Commit; check that it did what it said, and said what it did."""
        error: BaseException | None = None
        try:
            process.stash.commit(tx)
        except (CatalogError, LostResponseError, Crash) as raised:
            error = raised
        landed = self.absorb(planned.changed)
        if error is None or (planned.error is not None and isinstance(error, planned.error)):
            assert (error is None) == (planned.error is None), f"{planned.error} was to be raised"
            assert landed == (error is None and bool(planned.changed))
        else:
            assert process.faults.points, f"refused for no reason: {error!r}"
            denied = isinstance(error, (RetryableError, ConstraintError))
            assert not (landed and denied), f"it happened, and was denied: {error!r}"
        self.recover(process, error, planned.changed)

    def maintain(self, process: int, do: Callable[[Stash], object], fault: Fault | None) -> None:
        used = self.processes[process]
        used.stash.refresh()
        if fault is not None:
            used.faults.points, used.faults.skip_count, used.faults.crash = fault
        error: BaseException | None = None
        try:
            do(used.stash)
        except (CatalogError, LostResponseError, Crash) as raised:
            assert fault is not None
            error = raised
        used.faults.clear()
        assert not self.absorb({})
        self.recover(used, error, {})
        self.replace_fenced()

    def recover(self, process: Process, error: BaseException | None, changed: Mapping[Name, Row | None]) -> None:
        """Go on with the same process, unless it crashed; it sees what the model has."""
        if isinstance(error, IndeterminateError):
            self.in_doubt[error.txid] = changed
        if isinstance(error, Crash):
            self.processes[self.processes.index(process)] = process = Process.start(self.place)
        process.faults.clear()
        process.stash.refresh()
        check_view(process.stash.view(), self.rows)

    def replace_fenced(self) -> None:
        """Whoever is fenced learns it each time it tries to write; another process takes its place."""
        for number, process in enumerate(self.processes):
            if process.stash.head.fence != self.fence:
                for _ in range(2):
                    with pytest.raises(FencedError), process.stash.transaction() as tx:
                        tx.upsert(types.SettingKey(name="late"), types.SettingValue(value="late"))
                self.processes[number] = Process.start(self.place)

    def absorb(self, pending: Mapping[Name, Row | None]) -> bool:
        """Put what was committed since into the history; answer whether the pending transaction is in it."""
        landed, known = False, len(self.history) - 1
        for commit in self.observer.commits(known + 1, self.observer.head(known)):
            rows = self.rows
            if commit.txid in self.in_doubt:
                rows = applied(rows, self.in_doubt.pop(commit.txid))
            elif commit.operation is Operation.TRANSACTION:
                assert pending, "nobody asked for this"
                assert not landed, "committed twice"
                landed, rows = True, applied(rows, pending)
            self.check_marks(commit)
            self.history.append(rows)
            self.times_ms.append(commit.timestamp_ms)
        return landed

    def check_marks(self, commit: Commit) -> None:
        if commit.operation is Operation.FENCE:
            self.fence = Fence(commit.marks[Mark.DEPLOY_GENERATION], commit.marks[Mark.EPOCH])
        if commit.operation is Operation.RETAIN:
            ended_ms, due = commit.timestamp_ms - POLICY.retention_ms, self.frontier
            while due + 1 < len(self.history) and self.times_ms[due + 1] <= ended_ms:
                due += 1
            assert commit.marks[Mark.FRONTIER] == due > self.frontier
            self.frontier = due

    def check_at(self, stash: Stash, ts: int) -> None:
        if ts >= self.frontier:
            check_view(stash.view(ts), self.history[ts])
            return
        if ts == stash.ts:  # what a process has in hand it may keep, until it looks
            stash.refresh()
        with pytest.raises(RetiredError) as caught:
            check_view(stash.view(ts), self.history[ts])
        assert caught.value.earliest == self.frontier

    def check_feed(self, stash: Stash, since: int) -> None:
        if since < self.frontier:
            with pytest.raises(RetiredError) as caught:
                list(stash.subscribe(types.SettingKey, since))
            assert caught.value.earliest == self.frontier
            return
        for collection, key_type in KEY_TYPES.items():
            rows, at = stored(self.history[since], collection), since
            for key, value, ts, diff in stash.subscribe(key_type, since):
                assert ts >= at
                for passed in range(at, ts):
                    assert rows == stored(self.history[passed], collection)
                at = ts
                if diff > 0:
                    assert encode(key) not in rows
                    rows[encode(key)] = encode(value)
                else:
                    assert rows.pop(encode(key)) == encode(value)
            assert rows == stored(self.rows, collection)

    def check_multiplicities(self) -> None:
        """The live files add up to each row once, and to nothing else."""
        counted: Counter[tuple[str, bytes, bytes]] = Counter()
        for file in self.observer.state(len(self.history) - 1).files.values():
            for row in self.observer.read(file).to_pylist():
                counted[file.collection, row["key"], row["value"]] += row["diff"]
        found = {name: count for name, count in counted.items() if count and name[0] in KEY_TYPES}
        assert found == {(name, *pair): 1 for name in KEY_TYPES for pair in stored(self.rows, name).items()}


class DeltaStashMachine(StashMachine):
    def make_place(self) -> Place:
        self.folder = tempfile.TemporaryDirectory(prefix="stash-model-")
        return DeltaPlace(f"{self.folder.name}/stash")

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            self.folder.cleanup()


def simulate(machine: type[StashMachine], example_count: int, step_count: int) -> None:
    if "SEED" in os.environ:
        machine = seed(int(os.environ["SEED"]))(machine)
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=example_count * (100 if SOAK else 1),
            stateful_step_count=step_count,
            deadline=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_a_stash_in_memory_is_what_the_model_says() -> None:
    """Every retained ts equals the model's history, every retired one says so, and a feed reproduces the rows."""
    simulate(StashMachine, example_count=50, step_count=40)


def test_a_stash_on_delta_is_what_the_model_says() -> None:
    """The same on a folder, where a crash leaves files behind."""
    simulate(DeltaStashMachine, example_count=12, step_count=25)
