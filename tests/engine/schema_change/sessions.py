"""The transactions of the world: each call is made to a table and to the oracle, and both must answer alike."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from catalog.engine.schema_change.transaction import TableTransaction
from catalog.engine.schema_change.types import Value
from catalog.errors import KeyExistsError, NoSuchRowError, TransactionConflictError
from catalog.errors.base import CatalogError, ConstraintError
from catalog.errors.tables import ExpressionFailedError, SchemaChangedError, UnknownTableError
from tests.engine.schema_change.observer import Observer
from tests.engine.schema_change.oracle import (
    Call,
    Fields,
    Key,
    RefusedError,
    RuleKind,
    State,
    Table,
    Verb,
    called,
    replayed,
    violations,
)
from tests.engine.schema_change.stores import Process
from tests.engine.schema_change.wishes import VALUES

KEYS = 3


@dataclass(frozen=True)
class Read:
    """Rows of a table that were read: those for which a condition holds."""

    table: int
    holds: Callable[[Table, Fields], bool]
    found: dict[Key, Fields]


@dataclass(slots=True, eq=False)
class Session:
    observer: Observer
    process: Process
    chance: random.Random
    known: State = field(init=False)
    """The tables as they were when it began."""
    local: dict[int, Table] = field(init=False)
    """The tables as it sees them, with its own changes."""
    transaction: TableTransaction = field(init=False)
    began: int = field(init=False)
    calls: list[Call] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    used: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.transaction = self.process.begin()
        self.began = self.transaction.view.state.version
        self.known = self.observer.past[self.began].state
        self.local = dict(self.known)

    def use(self) -> None:
        drawn = self.chance.random()
        if drawn < 0.5:
            self.write()
        elif drawn < 0.6:
            self.get()
        elif drawn < 0.9:
            self.find()
        else:
            self.scan()

    def write(self) -> None:
        table = self._table()
        if table is None:
            return
        chance = self.chance
        verb = chance.choice(list(Verb))
        key = self._key(table)
        settable = [c for c in table.columns if c.uid not in table.key and not c.source]
        values: dict[int, Value] = {}
        if verb is not Verb.DELETE:
            chosen = chance.sample(settable, chance.randint(0, len(settable)))
            values = {column.uid: chance.choice(VALUES[column.kind]) for column in chosen}
        if verb is Verb.UPDATE and chance.random() < 0.2:
            values.update(self._key(table))
        call = Call(verb, table.uid, key, values if verb in {Verb.UPDATE, Verb.DELETE} else {**key, **values})
        self.make(table, call)

    def make(self, table: Table, call: Call) -> None:
        names = {column.uid: column.name for column in table.columns}
        key = {names[uid]: value for uid, value in call.key.items()}
        values = {names[uid]: value for uid, value in call.values.items()}
        try:
            after, error = called(table, call), None
        except RefusedError as refused:
            after, error = table, refused
        try:
            match call.verb:
                case Verb.INSERT:
                    self.transaction.insert(table.name, values)
                case Verb.UPSERT:
                    self.transaction.upsert(table.name, values)
                case Verb.UPDATE:
                    self.transaction.update(table.name, key, values)
                case Verb.DELETE:
                    self.transaction.delete(table.name, key)
        except (KeyExistsError, NoSuchRowError) as refused:
            if error is None:
                raise AssertionError(f"{call} is refused for no reason") from refused
            self.used.add(table.uid)  # it has learnt something of the row
            return
        except CatalogError as refused:
            self._check_gone(table, refused)
            return
        assert error is None, f"{call} is refused by the oracle alone: {error}"
        self.local[table.uid] = after
        self.used.add(table.uid)
        self.calls.append(call)

    def get(self) -> None:
        table = self._table()
        if table is None:
            return
        wanted = self._key(table)
        names = {column.uid: column.name for column in table.columns}
        key = table.key_of(wanted)
        try:
            found = self.transaction.get(table.name, {names[uid]: value for uid, value in wanted.items()})
        except CatalogError as refused:
            self._check_gone(table, refused)
            return
        row = table.rows.get(key)
        assert found == (None if row is None else table.named(row)), f"get {key} of {table.name}: {found}"
        self._note(table, lambda own, row: own.key_of(row) == key)

    def find(self) -> None:
        """Look rows up by an index, or by the beginning of the primary key."""
        table = self._table()
        if table is None:
            return
        kinds = {RuleKind.INDEX, RuleKind.UNIQUE}
        firsts = [rule.columns[0] for rule in table.rules if rule.kind in kinds] + [table.key[0]]
        column = table.by_uid(self.chance.choice(firsts))
        assert column is not None
        value = self.chance.choice(VALUES[column.kind])
        try:
            found = self.transaction.find(table.name, **{column.name: value})
        except CatalogError as refused:
            self._check_gone(table, refused)
            return
        uid = column.uid

        def holds(_own: Table, row: Fields) -> bool:
            return value is not None and row.get(uid) == value

        wanted = [table.named(row) for row in table.rows.values() if holds(table, row)]
        assert _sorted(found) == _sorted(wanted), f"find {column.name}={value!r} of {table.name}: {found}, not {wanted}"
        self._note(table, holds)

    def scan(self) -> None:
        table = self._table()
        if table is None:
            return
        try:
            found = list(self.transaction.rows(table.name))
        except CatalogError as refused:
            self._check_gone(table, refused)
            return
        wanted = [table.named(row) for row in table.rows.values()]
        assert _sorted(found) == _sorted(wanted), f"rows of {table.name}: {found}, not {wanted}"
        self._note(table, lambda _own, _row: True)

    def commit(self) -> None:
        """Commit; a refusal must have a reason that the oracle shares."""
        if not self.transaction.has_changes:
            return
        self.process.log.intent = self
        try:
            self.process.commit(self.transaction)
        except TransactionConflictError:
            self._count("conflict")
            changed = [at for uid in self.used for at in self.observer.touched.get(uid, ()) if at > self.began]
            assert changed, f"a conflict over tables that nobody wrote: {self.used}"
        except SchemaChangedError as error:
            self._count("schema changed")
            at = self.observer.past[self.process.store.ts]
            same = [u for u in self.used if u in at.state and at.state[u].stamp == self.known[u].stamp]
            left = [u for u in same if at.state[u].name in at.leaving]
            if len(same) - len(left) == len(self.used):
                raise AssertionError(f"nothing has changed of {self.used}") from error
        except (ConstraintError, ExpressionFailedError) as error:
            self._count(type(error).__name__)
            self._check_violated(error)
        else:
            self._count("committed")
        finally:
            self.process.log.intent = None
            self.transaction.end()

    def check_reads(self, now: State) -> None:
        """Check, as it is committed, that it would read the same: it is as if it had begun just now."""
        for read in self.reads:
            table = now.get(read.table)
            assert table is not None, "a table that was read is gone"
            rows = {
                key: row for key, row in self.known[read.table].rows.items() if read.holds(self.known[read.table], row)
            }
            common = {c.uid for c in table.columns} & {c.uid for c in self.known[read.table].columns}
            if all(uid in common for uid in self.known[read.table].key):
                again = {key: row for key, row in table.rows.items() if read.holds(table, row)}
                assert _cut(rows, common) == _cut(again, common), f"it read {rows}, and commits over {again}"

    def _check_violated(self, error: CatalogError) -> None:
        """Check that what it wanted does break a rule that is public or closed, or cannot be computed."""
        at = self.observer.past[self.process.store.ts]
        try:
            after = replayed(at.state, self.calls, self.known)
        except RefusedError:
            return
        if isinstance(error, ExpressionFailedError):
            texts = {value for uid in self.used for row in after[uid].rows.values() for value in row.values()}
            assert "x" in texts, f"everything can be computed: {error.what}"
            return
        if any(None in key for uid in self.used for key in after[uid].rows):
            return
        rules = [(table, rule) for uid, table in after.items() for rule in (*table.rules, *at.closed.get(uid, ()))]
        broken = [rule for table, rule in rules if violations(after, table, rule)]
        assert broken or at.is_checking, f"nothing is violated: {error.what}"

    def _check_gone(self, table: Table, error: CatalogError) -> None:
        """Check that a table which is refused goes by another name, or is not there any more."""
        assert isinstance(error, (UnknownTableError, SchemaChangedError)), f"{table.name}: {error.what}"

    def _note(self, table: Table, holds: Callable[[Table, Fields], bool]) -> None:
        self.used.add(table.uid)
        self.reads.append(Read(table.uid, holds, {}))

    def _table(self) -> Table | None:
        return self.chance.choice(list(self.local.values())) if self.local else None

    def _key(self, table: Table) -> dict[int, Value]:
        chance = self.chance
        key: dict[int, Value] = {}
        for uid in table.key:
            column = table.by_uid(uid)
            assert column is not None
            key[uid] = chance.choice(VALUES[column.kind][:KEYS])
        return key

    def _count(self, outcome: str) -> None:
        self.observer.covered[outcome] += 1


def _cut(rows: dict[Key, Fields], common: set[int]) -> dict[Key, dict[int, Value]]:
    return {key: {uid: value for uid, value in row.items() if uid in common} for key, row in rows.items()}


def _sorted(rows: list[dict[str, Value]]) -> list[list[tuple[str, str]]]:
    return sorted(sorted((name, repr(value)) for name, value in row.items()) for row in rows)
