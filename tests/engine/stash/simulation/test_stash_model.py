"""The stash against plain dictionaries: whatever two processes do to it, crashes and lost answers included.

The model keeps every row at every ts. A failure prints the steps that lead to it and how to repeat them; `SEED=7`
starts from a seed of one's own, and the `soak` profile goes on for a few minutes.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from catalog.engine.base.fence import Fence
from catalog.engine.log.maintenance import clean
from catalog.engine.log.protocol import AppTxn, Commit, FaultPoint, Log, Operation
from catalog.engine.stash.registry import encode
from catalog.engine.stash.stash import Stash
from catalog.engine.stash.transaction import Transaction
from catalog.errors import (
    CatalogError,
    ConstraintError,
    FencedError,
    IndeterminateError,
    KeyExistsError,
    NoSuchRowError,
    RetiredError,
    RetryableError,
    TransactionConflictError,
)
from catalog.generated import objects_pb2 as types
from tests.engine.log.places import Crash, DeltaPlace, MemoryPlace, Place
from tests.engine.stash.simulation.model import (
    KEY_TYPES,
    Name,
    Outcome,
    Row,
    Rows,
    Step,
    act,
    applied,
    check_view,
    plan,
    stored,
    violated,
)
from tests.engine.stash.simulation.process import POLICY, Process
from tests.engine.stash.simulation.scripts import Fault, Race, faults, races, scripts, which
from tests.memory_log import LostResponseError
from tests.volatile import volatile_folder

SOAK_S = 600 if settings.get_current_profile_name() == "soak" else 0


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

    def race_once(self, first: list[Step], second: list[Step], point: FaultPoint | None) -> None:
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
        self.maintain(process, lambda stash: clean(stash.log, stash.state, stash.policy), fault)

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
            assert self.fence == (before.generation + generation, before.epoch + 1) == newer.stash.fence
            newer.faults.clear()
        self.replace_fenced()
        if newer.stash.fence == self.fence:
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
            self.maintain(0, lambda stash: clean(stash.log, stash.state, stash.policy), None)
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
            if process.stash.fence != self.fence:
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
            self.fence = Fence(commit.app_txns[AppTxn.DEPLOY_GENERATION], commit.app_txns[AppTxn.EPOCH])
        if commit.operation is Operation.RETAIN:
            ended_ms, due = commit.timestamp_ms - POLICY.retention_ms, self.frontier
            while due + 1 < len(self.history) and self.times_ms[due + 1] <= ended_ms:
                due += 1
            assert commit.app_txns[AppTxn.FRONTIER] == due
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
        self.folder = volatile_folder()
        return DeltaPlace(f"{self.folder.name}/stash")

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            self.folder.cleanup()


def simulate(machine: type[StashMachine], example_count: int, step_count: int) -> None:
    chosen = settings(
        max_examples=example_count,
        stateful_step_count=step_count,
        deadline=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    if "SEED" in os.environ:
        machine = seed(int(os.environ["SEED"]))(machine)
    ends, rounds = time.monotonic() + SOAK_S, 0
    while rounds == 0 or time.monotonic() < ends:
        run_state_machine_as_test(machine, settings=chosen)
        rounds += 1
    print(f"soak: {rounds * example_count} runs of up to {step_count} steps of {machine.__name__}")  # noqa: T201


def test_a_stash_in_memory_is_what_the_model_says() -> None:
    """Every retained ts equals the model's history, every retired one says so, and a feed reproduces the rows."""
    simulate(StashMachine, example_count=12, step_count=40)


def test_a_stash_on_delta_is_what_the_model_says() -> None:
    """The same on a folder, where a crash leaves files behind."""
    simulate(DeltaStashMachine, example_count=4, step_count=25)
