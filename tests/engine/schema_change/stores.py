"""Tables on the log in memory: processes over one store, names in a dictionary, and signs of life as tests want them.

A `Process` is all that one process holds. Several over one `Disk` meet only in its log and its names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from typing import Any

from catalog.engine.log.protocol import Commit, CommitRequest, FaultPoint, LogState
from catalog.engine.schema_change.change import SchemaChange
from catalog.engine.schema_change.names import DEFAULT_SCHEMA
from catalog.engine.schema_change.owner import Owner
from catalog.engine.schema_change.plan import ItemChange, ItemVerb
from catalog.engine.schema_change.schema import TableSchema
from catalog.engine.schema_change.store import TablesStore
from catalog.engine.schema_change.tables import Tables
from catalog.engine.schema_change.transaction import TableTransaction
from catalog.engine.schema_change.types import Value
from catalog.errors.tables import TableExistsError
from tests.memory_log import Memory, MemoryLog

GENERATION = 1
Row = dict[str, Value]


class ReadPoint(StrEnum):
    """A place where a process looks at what others may change, beside the points of a write."""

    HEAD = "read:head"
    NAMES_BEFORE = "names:before"
    NAMES_AFTER = "names:after"


Point = FaultPoint | ReadPoint
Hook = Callable[[Point], None]
Landed = Callable[[Commit, Any], None]
"""Told of a commit, and of the purpose that its process gave it."""


def pass_by(_point: Point) -> None:
    """Let nothing happen."""


def unobserved(_commit: Commit, _intent: object) -> None:
    """Look at nothing."""


class Observed(Memory):
    """A memory that tells of every commit that lands, and what the process that made it was about."""

    def __init__(self) -> None:
        super().__init__(now_ms=1_000_000)
        self.landed: Landed = unobserved
        self.intents: dict[str, Any] = {}

    def land(self, expected: LogState, commit: Commit) -> bool:
        is_taken = super().land(expected, commit)
        if is_taken:
            self.landed(commit, self.intents.get(commit.txid))
        return is_taken


class MeetingLog(MemoryLog):
    """The log of one process, which others may overtake whenever it looks at the head."""

    def __init__(self, memory: Observed, hook: Hook = pass_by) -> None:
        super().__init__(memory, reached=hook)
        self._hook, self._observed = hook, memory
        self.intent: Any = None
        """The purpose of the commits that follow, for the observer of the memory."""

    def head(self, known: int) -> int:
        self._hook(ReadPoint.HEAD)
        return super().head(known)

    def compare_and_append(self, expected: LogState, change: CommitRequest) -> Commit:
        self._observed.intents[change.txid] = self.intent
        return super().compare_and_append(expected, change)


@dataclass(slots=True)
class Items:
    """The items of a catalog that outlive processes: the names of tables by id."""

    names: dict[int, str] = field(default_factory=dict)
    numbers: count[int] = field(default_factory=lambda: count(1))


@dataclass(slots=True)
class MemoryNames:
    """Names as those of a stash: each change of an item is done whole or not at all, and twice is once."""

    items: Items
    hook: Hook = pass_by

    def canonical(self, name: str) -> str:
        schema, _, own = name.rpartition(".")
        return f"{schema or DEFAULT_SCHEMA}.{own}".lower()

    def table_id(self, name: str) -> int | None:
        wanted = self.canonical(name)
        return next((number for number, own in self.items.names.items() if own == wanted), None)

    def new_id(self) -> int:
        return next(self.items.numbers)

    def apply(self, change: ItemChange) -> None:
        self.hook(ReadPoint.NAMES_BEFORE)
        match change.verb:
            case ItemVerb.INSERT:
                self._put(change.id, change.name)
            case ItemVerb.DELETE:
                self.items.names.pop(change.id, None)
            case ItemVerb.RENAME if change.id in self.items.names:
                self._put(change.id, change.name)
            case ItemVerb.RENAME:
                pass
        self.hook(ReadPoint.NAMES_AFTER)

    def undo(self, change: ItemChange) -> None:
        self.hook(ReadPoint.NAMES_BEFORE)
        if change.verb is ItemVerb.INSERT:
            self.items.names.pop(change.id, None)
        elif change.verb is ItemVerb.RENAME and change.id in self.items.names:
            self._put(change.id, change.was)
        self.hook(ReadPoint.NAMES_AFTER)

    def _put(self, number: int, name: str) -> None:
        wanted = self.canonical(name)
        if self.table_id(wanted) not in {None, number}:
            raise TableExistsError(wanted)
        self.items.names[number] = wanted


@dataclass(slots=True)
class TestSigns:
    """Signs of life: one is dead when a test says so."""

    __test__ = False
    gone: set[str] = field(default_factory=set)

    def show(self, name: str, **_facts: int) -> None:
        self.gone.discard(name)

    def facts(self, _name: str) -> dict[str, int]:
        return {}

    def dead(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name in self.gone]

    def end(self, _name: str) -> None:
        pass


@dataclass(slots=True)
class Disk:
    """All that outlives processes."""

    memory: Observed = field(default_factory=Observed)
    items: Items = field(default_factory=Items)
    signs: TestSigns = field(default_factory=TestSigns)

    def open(self, name: str = "host-1:1", hook: Hook = pass_by) -> Process:
        """Start a process that may write."""
        return Process(self, name, hook)


class Process:
    """One process with its own view of the store."""

    def __init__(self, disk: Disk, name: str, hook: Hook) -> None:
        self.disk, self.name = disk, name
        self._scopes: list[AbstractContextManager[TableTransaction]] = []
        self.log = MeetingLog(disk.memory, hook)
        store = TablesStore.create(self.log, GENERATION, name)
        store.join()
        self.tables = Tables(store, MemoryNames(disk.items, hook), disk.signs, name)
        self.owner = Owner(store, self.tables.names, disk.signs, name, wait=lambda _seconds: None)

    @property
    def store(self) -> TablesStore:
        return self.tables.store

    def ddl(self, *statements: str) -> SchemaChange:
        """Carry out statements one after the other; return the change of the last one."""
        return [self.tables.execute(statement, patience_s=0) for statement in statements][-1]

    def submit(self, statement: str, *, hold: bool = False, patience_s: float = 0) -> SchemaChange:
        """Begin a change that waits for an owner."""
        return self.tables.submit(statement, patience_s=patience_s, hold=hold, detach=True)

    def begin(self) -> TableTransaction:
        """Begin a transaction that the test commits itself."""
        scope = self.tables.transaction()
        self._scopes.append(scope)  # one that is let go ends its transaction
        return scope.__enter__()

    def commit(self, transaction: TableTransaction) -> int:
        return self.store.commit(transaction.draft)

    def write(self, work: Callable[[TableTransaction], object]) -> int:
        """Do something in a transaction of its own; return the ts of its commit."""
        with self.tables.transaction() as transaction:
            work(transaction)
        return self.store.ts

    def insert(self, table: str, *rows: Row) -> int:
        def work(tx: TableTransaction) -> None:
            for row in rows:
                tx.insert(table, row)

        return self.write(work)

    def rows(self, table: str, as_of: int | None = None) -> list[Row]:
        return list(self.tables[table].rows(as_of))

    def schema(self, table: str) -> TableSchema:
        return self.tables.schema(table)

    def collections(self) -> set[str]:
        """Return the collections of elements that have files."""
        self.store.refresh()
        return {name for name in self.store.view.collections() if name.startswith("e")}
