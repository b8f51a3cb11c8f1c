"""The observer of the world: follows the log commit by commit, keeps the oracle beside it, and checks all invariants.

It learns of a commit as it lands, before the process that made it does, and whether or not that one ever does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol

from catalog.engine.log.protocol import Commit, Operation
from catalog.engine.schema_change import tables_pb2 as pb
from catalog.engine.schema_change.replica import SCHEMA_CHANGE, TablesReplica
from catalog.engine.schema_change.schema import TableState
from catalog.engine.schema_change.steps import UNDONE, ChangeStatus
from tests.engine.schema_change.invariants import (
    check_failure,
    check_items,
    check_state,
    check_written,
    closed_rules,
    is_unseen,
)
from tests.engine.schema_change.oracle import Call, Rule, State, replayed
from tests.engine.schema_change.wishes import Wish


class Intent(Protocol):
    """A transaction as the observer knows it, when a commit of it lands."""

    @property
    def calls(self) -> Sequence[Call]: ...

    @property
    def known(self) -> State:
        """Return the tables as they were when it began."""

    def check_reads(self, now: State) -> None:
        """Check that it would read the same now."""


@dataclass(frozen=True)
class Past:
    """What was true at one version of the log."""

    state: State
    closed: Mapping[int, list[Rule]]
    """By table: the rules that writers were checked by, and that were not public yet."""
    is_checking: bool
    """Writers were checked by a rule that nobody sees, such as that a new primary key is unique."""
    leaving: frozenset[str]
    """Tables that were being made or dropped."""


@dataclass
class Observer:
    replica: TablesReplica
    items: Mapping[int, str]
    """The names of tables, by id."""
    state: State = field(default_factory=dict)
    past: dict[int, Past] = field(default_factory=dict)
    wishes: dict[str, Wish] = field(default_factory=dict)
    """Every statement that was ever submitted."""
    touched: dict[int, list[int]] = field(default_factory=dict)
    """By table: the versions at which rows of it were changed."""
    covered: Counter[str] = field(default_factory=Counter)
    violation: BaseException | None = None
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    _seen: dict[int, pb.SchemaChangeValue] = field(default_factory=dict)
    _owners: dict[tuple[int, int], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._keep()

    def landed(self, commit: Commit, intent: Intent | None) -> None:
        try:
            self._observe(commit, intent)
        except BaseException as error:  # noqa: BLE001 - the process under way would take it for an answer of its log
            self.violation = self.violation or error

    def _observe(self, commit: Commit, intent: Intent | None) -> None:
        rules = self.past[self.replica.state.version].closed
        self.replica.follow()
        before = self.state
        if intent is not None and commit.operation is Operation.TRANSACTION:  # others maintain its files
            intent.check_reads(before)
            self.state = replayed(before, intent.calls, intent.known)
            check_written(before, self.state, rules)
            for uid in {call.table for call in intent.calls}:
                self.touched.setdefault(uid, []).append(commit.version)
        if any(file.collection == SCHEMA_CHANGE for file in commit.adds):
            self._follow_changes()
        self._keep()
        check_state(self.replica, self.state)
        check_items(self.replica, self.items)

    def _keep(self) -> None:
        """Keep what is true at this version, for those that are refused because of it."""
        schemas = self.replica.schemas.values()
        by_name, names = {schema.name: schema for schema in schemas}, {schema.id: schema.name for schema in schemas}
        banned = {wish.sql.split()[5]: wish.banned for wish in self.wishes.values() if wish.banned is not None}
        closed = {
            uid: closed_rules(by_name[table.name], table, self.state, names, banned)
            for uid, table in self.state.items()
            if table.name in by_name
        }
        hidden = any(is_unseen(schema, element) for schema in schemas for element in schema.elements)
        leaving = frozenset(schema.name for schema in schemas if schema.state is not TableState.PUBLIC)
        self.past[self.replica.state.version] = Past(self.state, closed, hidden, leaving)

    def _follow_changes(self) -> None:
        for number, row in self.replica.changes().items():
            was = self._seen.get(number, pb.SchemaChangeValue())
            if was == row:
                continue
            owner = self._owners.setdefault((number, row.owner_epoch), row.owner)
            assert row.owner in {"", owner} or ChangeStatus(row.status).is_over, (
                f"two owners of epoch {row.owner_epoch}"
            )
            status = ChangeStatus(row.status)
            begun = status is ChangeStatus.SUCCEEDED and not was.is_visible
            if (row.is_visible and not was.is_visible) or begun:
                wish = self.wishes[row.statement]
                if row.stages:
                    self.state = wish.effect(self.state, self.numbers)
                self.covered[wish.operation] += 1
            if status.is_over and not ChangeStatus(was.status or ChangeStatus.PENDING).is_over:
                self.covered[status.name] += 1
                if status in UNDONE:
                    self.covered[f"undone at stage {row.stage}"] += 1
                if status is ChangeStatus.FAILED and row.stages:
                    past = self.past[row.failure.at_ts].state
                    check_failure(row, self.wishes[row.statement], past, self.numbers)
                    self.covered["failed by rows"] += 1
            if any(s.cur != s.min for s in self.replica.schemas.values()):
                self.covered["adjacent"] += 1
            self._seen[number] = row

    def raise_violation(self) -> None:
        if self.violation is not None:
            raise self.violation
