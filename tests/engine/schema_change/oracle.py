"""The oracle: tables as dictionaries, which know neither files, nor indexes, nor states.

A state of it never changes, so that every version of the log can keep its own. Columns have numbers of the oracle's
own, which outlive renames; a column whose type was changed is another one, which replaces the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from catalog.engine.schema_change.types import Value

Key = tuple[Value, ...]
Fields = Mapping[int, Value]
"""The values of a row by the oracle's numbers of columns."""


class RefusedError(Exception):
    """The oracle refuses what it was asked for, and says why."""


class Kind(StrEnum):
    BIGINT = "BIGINT"
    STRING = "STRING"


@dataclass(frozen=True)
class Column:
    uid: int
    name: str
    kind: Kind
    default: Value = None
    source: int = 0
    """The column whose value plus one it always has; 0 if it is no computed column."""
    replaces: int = 0


class RuleKind(StrEnum):
    INDEX = "index"
    UNIQUE = "unique"
    CHECK = "check"
    NOT_NULL = "not null"
    FOREIGN_KEY = "foreign key"


@dataclass(frozen=True)
class Rule:
    kind: RuleKind
    name: str
    columns: tuple[int, ...]
    banned: Value = None
    """The value that a check does not allow."""
    target: int = 0
    """The table whose key a foreign key refers to."""


@dataclass(frozen=True)
class Table:
    uid: int
    name: str
    columns: tuple[Column, ...]
    key: tuple[int, ...]
    rules: tuple[Rule, ...] = ()
    rows: Mapping[Key, Fields] = field(default_factory=dict)
    stamp: int = 0
    """Counts the definitions that it has had."""

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    def by_uid(self, uid: int) -> Column | None:
        return next((column for column in self.columns if column.uid == uid), None)

    def rule(self, name: str) -> Rule:
        return next(rule for rule in self.rules if rule.name == name)

    def key_of(self, row: Fields) -> Key:
        return tuple(row.get(uid) for uid in self.key)

    def named(self, row: Fields) -> dict[str, Value]:
        return {column.name: row.get(column.uid) for column in self.columns}

    def with_rows(self, rows: Iterable[Fields]) -> Table:
        return replace(self, rows={self.key_of(row): row for row in rows})

    def computed(self, row: Fields) -> dict[int, Value]:
        """Return a row with the values of its computed columns."""
        known = {column.uid: row.get(column.uid) for column in self.columns}
        return known | {c.uid: added_one(known.get(c.source)) for c in self.columns if c.source}


State = Mapping[int, Table]
"""Tables by the oracle's numbers."""


def named_table(state: State, name: str) -> Table:
    return next(table for table in state.values() if table.name == name)


def added_one(value: Value) -> Value:
    return None if value is None else int(str(value)) + 1


def converted(value: Value, kind: Kind) -> Value:
    """Return a value as another type has it; refuse a text that is no number."""
    if value is None:
        return None
    if kind is Kind.STRING:
        return str(value)
    try:
        return int(str(value))
    except ValueError as error:
        raise RefusedError(f"{value!r} is no number") from error


class Verb(StrEnum):
    INSERT = "insert"
    UPSERT = "upsert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True)
class Call:
    """A logical change of a row, by the columns that its transaction knew."""

    verb: Verb
    table: int
    key: Fields
    values: Fields = field(default_factory=dict)


def called(table: Table, call: Call) -> Table:
    """Return a table after a call; refuse one that makes no sense."""
    values = {number: value for uid, value in call.values.items() for number, value in _present(table, uid, value)}
    key = table.key_of(call.key)
    rows, before = dict(table.rows), table.rows.get(key)
    match call.verb:
        case Verb.INSERT if before is not None:
            raise RefusedError("the key is taken")
        case Verb.UPDATE | Verb.DELETE if before is None:
            raise RefusedError("there is no such row")
        case Verb.DELETE:
            del rows[key]
            return replace(table, rows=rows)
        case _:
            pass
    if before is None:
        before = {column.uid: column.default for column in table.columns} | {**call.key}
    after = table.computed({**before, **values})
    moved = table.key_of(after)
    if moved != key and moved in rows:
        raise RefusedError("the key is taken")
    rows.pop(key, None)
    rows[moved] = after
    return replace(table, rows=rows)


def replayed(state: State, calls: Iterable[Call], known: State) -> dict[int, Table]:
    """Return tables after the calls of a transaction that began with others; refuse what has become impossible."""
    after = dict(state)
    for call in calls:
        table = after.get(call.table)
        if table is None or table.key != known[call.table].key:
            raise RefusedError("the table is gone, or has another key")
        after[call.table] = called(table, call)
    return after


def _present(table: Table, uid: int, value: Value) -> Iterator[tuple[int, Value]]:
    """Yield the column that has a value now: its own, or the one that replaced it."""
    if table.by_uid(uid) is not None:
        yield uid, value
        return
    heir = next((column for column in table.columns if column.replaces == uid), None)
    if heir is None:
        raise RefusedError("a column that is set is gone")
    yield heir.uid, converted(value, heir.kind)


def violations(state: State, table: Table, rule: Rule, only: Callable[[Key], bool] = lambda _key: True) -> set[Key]:
    """Return the keys of rows that violate a rule; of a unique one, if any row of a pair is among those asked for."""
    match rule.kind:
        case RuleKind.CHECK:
            wrong = {key for key, row in table.rows.items() if row.get(rule.columns[0]) == rule.banned}
        case RuleKind.NOT_NULL:
            wrong = {key for key, row in table.rows.items() if row.get(rule.columns[0]) is None}
        case RuleKind.FOREIGN_KEY:
            parents = state[rule.target].rows if rule.target in state else {}
            wrong = {
                key
                for key, row in table.rows.items()
                if row.get(rule.columns[0]) is not None and (row[rule.columns[0]],) not in parents
            }
        case RuleKind.UNIQUE:
            by_value: dict[Key, set[Key]] = {}
            for key, row in table.rows.items():
                value = tuple(row.get(uid) for uid in rule.columns)
                if None not in value:
                    by_value.setdefault(value, set()).add(key)
            pairs = (keys for keys in by_value.values() if len(keys) > 1 and any(map(only, keys)))
            return set().union(*pairs)
        case _:
            wrong = set()
    return {key for key in wrong if only(key)}
