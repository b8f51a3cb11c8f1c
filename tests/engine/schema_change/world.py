"""A store of tables, processes that write and change it at once, and what must be true whatever happens.

Everything is drawn from one seed. At each point of a log where a process reads or writes, another one may act first,
and the process may stop or lose an answer. Every commit that lands is applied to the oracle as it lands, whoever learns
of it; then all invariants are checked. `RULES` lists what a process may do: another rule is one more entry.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias
from unittest.mock import patch

from catalog.engine.log.protocol import FaultPoint
from catalog.engine.schema_change import tables_pb2 as pb
from catalog.engine.schema_change.folding import FoldingTask
from catalog.engine.schema_change.maintenance import reorganise
from catalog.engine.schema_change.replica import BULK_WRITE, TablesReplica
from catalog.engine.schema_change.schema import TableState
from catalog.engine.schema_change.steps import ChangeStatus, StoppedByOthersError
from catalog.engine.schema_change.store import Draft, put
from catalog.errors import CatalogError, CommitFailedError, IndeterminateError
from catalog.errors.tables import ChangeOvertakenError, ChangeStatusError, NotRevertibleError
from tests.engine.log.places import Crash
from tests.engine.schema_change.invariants import check_state
from tests.engine.schema_change.observer import Observer
from tests.engine.schema_change.oracle import State
from tests.engine.schema_change.sessions import Session
from tests.engine.schema_change.stores import Disk, Point, Process, ReadPoint
from tests.engine.schema_change.wishes import Wish, Wishing
from tests.memory_log import LostResponseError, MemoryLog

MEMBERS = 3
STEPS = 36
STAGES = 12
ROUNDS_MAX = 400
"""Of steps by which all changes come to their end."""
LOSABLE = frozenset(
    {
        FaultPoint.COMMIT_BEFORE_LOG,
        FaultPoint.COMMIT_AFTER_LOG,
        FaultPoint.COMMIT_AFTER_SYNC,
        FaultPoint.COMMIT_PROBE,
        FaultPoint.COMMIT_SEAL,
    }
)


Doing: TypeAlias = "Callable[[World, int], None]"
"""Something that a member does, by its number."""


@dataclass
class World:
    chance: random.Random
    first: int = 0
    """The number of the operation that it begins with."""
    rules: Mapping[Doing, int] | None = None
    """What members do, and how often; by default all that they can."""
    meeting_rates: tuple[float, ...] = (0.0, 0.05, 0.2)
    disk: Disk = field(default_factory=Disk)
    members: list[Process] = field(default_factory=list)
    sessions: dict[int, Session] = field(default_factory=dict)
    """The open transaction of each member."""
    due: tuple[Point, BaseException] | None = None
    """A fault that comes at the next such point."""
    fault_rate: float = 0.0
    meeting_rate: float = 0.0
    _busy: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.wishing = Wishing(self.chance)
        self.members = [self._started(number) for number in range(MEMBERS)]
        self.observer = Observer(TablesReplica.open(MemoryLog(self.disk.memory)), self.disk.items.names)
        self.disk.memory.landed = self.observer.landed

    @property
    def state(self) -> State:
        return self.observer.state

    @property
    def covered(self) -> Counter[str]:
        return self.observer.covered

    def play(self, steps: int = STEPS) -> None:
        """Begin with two tables, let everything happen, and bring all of it to its end."""
        with patch("catalog.engine.schema_change.building.CHUNK_ROWS", 2):
            self._play(steps)

    def _play(self, steps: int) -> None:
        for _ in range(2):
            self.ddl(self.wishing.create_table())
        for make in self.chance.sample([self.wishing.create_index, self.wishing.add_parent], self.chance.randint(0, 2)):
            self.ddl(make(self.chance.choice(list(self.state.values())), self.state))
        for _ in range(3):
            self.write(0)
        self.submit(0, self.first)
        self.fault_rate = self.chance.choice([0.0, 0.0, 0.004, 0.02])
        self.meeting_rate = self.chance.choice(self.meeting_rates)
        try:
            for _ in range(steps):
                self.act(self.chance.randrange(MEMBERS))
                self.observer.raise_violation()
            self.fault_rate = self.meeting_rate = 0.0
            self.end()
        except Exception:
            self.observer.raise_violation()  # which came first
            raise

    def ddl(self, wish: Wish) -> None:
        self.observer.wishes[wish.sql] = wish
        self.members[0].ddl(wish.sql)
        self.observer.raise_violation()

    def act(self, number: int) -> None:
        """Let a member do one thing, from its beginning to its end, unless it stops midway."""
        rules, weights = zip(*(self.rules or RULES).items(), strict=True)
        rule = self.chance.choices(rules, weights)[0]
        self._busy.append(number)
        try:
            rule(self, number)
            self.covered[rule.__name__] += 1
        except Crash:
            self.covered["crash"] += 1
            self.members[number] = self._started(number)
            self.sessions.pop(number, None)
        except (CommitFailedError, IndeterminateError) as error:
            self.covered[type(error).__name__] += 1
            self.sessions.pop(number, None)
        finally:
            self._busy.pop()

    # Rules of transactions

    def begin(self, number: int) -> None:
        self.sessions[number] = Session(self.observer, self.members[number], self.chance)

    def use(self, number: int) -> None:
        """Read or write something in an open transaction."""
        if number not in self.sessions:
            self.begin(number)
        self.sessions[number].use()

    def commit(self, number: int) -> None:
        session = self.sessions.pop(number, None)
        if session is not None:
            session.commit()

    def write(self, number: int) -> None:
        """Do a whole transaction at once, beside an open one; its last call is a write."""
        session = Session(self.observer, self.members[number], self.chance)
        for _ in range(self.chance.choice([0, 0, 1, 2])):
            session.use()
        session.write()
        session.commit()

    # Rules of schema changes

    def submit(self, number: int, maker: int | None = None) -> None:
        """Submit any statement, unless enough of them are under way."""
        if len(self._unfinished(self.members[number])) < MEMBERS:
            wish = self.wishing.wish(self.state, maker)
            self.observer.wishes[wish.sql] = wish
            with self.refused_if((CatalogError,)):
                self.members[number].submit(wish.sql, patience_s=self.chance.choice([0, 3600]))

    def step(self, number: int) -> None:
        """Make one step of a change, mostly as its owner; else it is adopted."""
        member = self.members[number]
        running = {
            change: row
            for change, row in self._unfinished(member).items()
            if ChangeStatus(row.status) not in {ChangeStatus.PAUSED, ChangeStatus.HOLDING}
        }
        own = [change for change, row in running.items() if row.owner == member.name]
        wanted = own if own and self.chance.random() < 0.9 else list(running)
        if wanted:
            self._step(member, self.chance.choice(wanted))

    def carry_out(self, number: int) -> None:
        """Make many steps of a change, as many as most of them have."""
        running = list(self._unfinished(self.members[number]))
        for _ in range(STAGES if running else 0):
            self._step(self.members[number], running[0])

    def pause(self, number: int) -> None:
        if wanted := list(self._unfinished(self.members[number])):
            with self.refused_if((NotRevertibleError, ChangeStatusError, ChangeOvertakenError)):
                self.members[number].tables.pause(self.chance.choice(wanted))

    def resume(self, number: int) -> None:
        if wanted := list(self._unfinished(self.members[number])):
            with self.refused_if((NotRevertibleError, ChangeStatusError, ChangeOvertakenError)):
                self.members[number].tables.resume(self.chance.choice(wanted), detach=True)

    def cancel(self, number: int) -> None:
        if wanted := list(self._unfinished(self.members[number])):
            with self.refused_if((NotRevertibleError, ChangeStatusError, ChangeOvertakenError)):
                self.members[number].tables.cancel(self.chance.choice(wanted))

    def pin(self, number: int) -> None:
        """Register a bulk write that never comes to write anything, or let one go."""
        member = self.members[number]
        member.store.refresh()
        held = list(member.store.replica.bulk_writes())

        def draft(replica: TablesReplica) -> Draft | None:
            tables = [schema for schema in replica.schemas.values() if schema.state is TableState.PUBLIC]
            if held:
                rows = put(replica, BULK_WRITE, pb.BulkWriteKey(id=held[0]), None)
                return Draft(rows={BULK_WRITE: rows}) if rows else None
            pins = [pb.Pin(table=schema.id, version=schema.cur) for schema in tables]
            value = pb.BulkWriteValue(pins=pins, who=member.name)
            key = pb.BulkWriteKey(id=f"bulk-{replica.state.version}")
            return Draft(rows={BULK_WRITE: put(replica, BULK_WRITE, key, value)}) if pins else None

        member.store.commit(draft)

    # Rules of files

    def reorganise(self, number: int) -> None:
        """Merge, spill or fold the files of a collection."""
        member = self.members[number]
        member.store.refresh()
        changed = [s for s in member.store.replica.schemas.values() if s.change] if self.chance.random() < 0.5 else []
        names = sorted({e.collection for s in changed for e in s.stores} or member.store.view.collections())
        collection, task = self.chance.choice(names), self.chance.choice(list(FoldingTask))
        with member.store.own():
            reorganise(member.store.replica, collection, task)

    def arrive(self, _number: int) -> None:
        """Let a commit arrive whose answer was lost."""
        if self.disk.memory.in_flight:
            self.disk.memory.land(*self.disk.memory.in_flight.pop(0))
            self.covered["late arrival"] += 1

    # The end

    def end(self) -> None:
        """Let everything come to its end; then nothing is left of what was not to stay."""
        self.disk.memory.in_flight.clear()
        self.sessions.clear()
        for member in self.members:
            while member.store.replica.bulk_writes():
                self.pin(self.members.index(member))
                member.store.refresh()
        last = self.members[0]
        for _ in range(ROUNDS_MAX):
            unfinished = self._unfinished(last)
            if not unfinished:
                break
            for change, row in unfinished.items():
                if ChangeStatus(row.status) in {ChangeStatus.PAUSED, ChangeStatus.HOLDING}:
                    last.tables.resume(change, detach=True)
                elif not ChangeStatus(last.tables.change_message(change).status).is_over:
                    self._step(last, change)
                self.observer.raise_violation()
        assert not self._unfinished(last), f"changes that never end: {self._unfinished(last)}"
        for schema in last.store.replica.schemas.values():
            assert (schema.change, schema.state) == (0, TableState.PUBLIC), f"{schema.name} is not at rest"
        items, wanted = self.disk.items.names, {s.id: s.name for s in last.store.replica.schemas.values()}
        assert items == wanted, f"the items are {items}, and the tables {wanted}"
        check_state(TablesReplica.open(MemoryLog(self.disk.memory)), self.state)

    # How processes meet

    def _started(self, number: int) -> Process:
        return self.disk.open(f"host-{number}:{number}", lambda point: self._reached(number, point))

    def _reached(self, number: int, point: Point) -> None:
        if self.due is not None and point == self.due[0]:
            error, self.due = self.due[1], None
            raise error
        if self.fault_rate and self._busy and point is not ReadPoint.HEAD and self.chance.random() < self.fault_rate:
            if point in LOSABLE and self.chance.random() < 0.6:
                self.covered[f"lost at {point}"] += 1
                raise LostResponseError(f"no answer at {point}")
            self.covered[f"crash at {point}"] += 1
            raise Crash(point)
        if self.meeting_rate and 0 < len(self._busy) < MEMBERS and self.chance.random() < self.meeting_rate:
            others = [other for other in range(MEMBERS) if other not in self._busy and other != number]
            if others:
                self.covered[f"met at {point}"] += 1
                self.act(self.chance.choice(others))

    def _unfinished(self, member: Process) -> dict[int, pb.SchemaChangeValue]:
        member.store.refresh()
        changes = member.store.replica.changes().items()
        return {number: row for number, row in changes if not ChangeStatus(row.status).is_over}

    def _step(self, member: Process, change: int) -> None:
        if ChangeStatus(member.tables.change_message(change).status).is_over:
            return
        with self.refused_if((StoppedByOthersError, ChangeOvertakenError)):
            member.owner.step(change)

    @contextmanager
    def refused_if(self, errors: tuple[type[BaseException], ...]) -> Iterator[None]:
        """Take some errors for an answer."""
        try:
            yield
        except errors as error:
            self.covered[type(error).__name__] += 1


RULES: dict[Doing, int] = {
    World.begin: 1,
    World.use: 8,
    World.commit: 3,
    World.write: 8,
    World.submit: 5,
    World.step: 20,
    World.carry_out: 1,
    World.pause: 1,
    World.resume: 2,
    World.cancel: 1,
    World.pin: 2,
    World.reorganise: 4,
    World.arrive: 1,
}
"""What members do, and how often. Bulk writes will be further rules: derive, rebase, commit, die."""


WRITING: dict[Doing, int] = {World.write: 6, World.submit: 2, World.step: 12}
"""Of those the ones that make rows and constraints meet."""
READING: dict[Doing, int] = {World.use: 10, World.commit: 2, World.write: 5, World.submit: 4, World.carry_out: 4}
"""Of those the ones by which transactions read what others write or drop."""


def make_world(seed: int, rules: Mapping[Doing, int] | None = None, *meeting_rates: float) -> World:
    world = World(random.Random(seed), seed, rules)  # noqa: S311 - no secret
    world.meeting_rates = meeting_rates or world.meeting_rates
    return world
