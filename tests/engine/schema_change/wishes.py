"""Wishes: statements of the world's own choice, each with what it means to the oracle once it is visible."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count

from catalog.engine.schema_change.types import Value
from tests.engine.schema_change.oracle import (
    Column,
    Kind,
    Rule,
    RuleKind,
    State,
    Table,
    added_one,
    converted,
    named_table,
)

Effect = Callable[[State, Iterator[int]], dict[int, Table]]
"""Returns the tables after a statement; takes new numbers for what it makes."""
VALUES: dict[Kind, tuple[Value, ...]] = {Kind.BIGINT: (0, 1, 2, None), Kind.STRING: ("0", "1", "x", None)}


@dataclass(frozen=True)
class Wish:
    """A statement with its meaning."""

    sql: str
    operation: str
    effect: Effect
    banned: Value = None
    """The value that a check of it does not allow."""


def literal(value: Value) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


def edited(name: str, edit: Callable[[Table, Iterator[int]], Table]) -> Effect:
    """Return the effect of a statement on one table."""

    def effect(state: State, numbers: Iterator[int]) -> dict[int, Table]:
        table = named_table(state, name)
        return {**state, table.uid: replace(edit(table, numbers), stamp=table.stamp + 1)}

    return effect


def ruled(name: str, make: Callable[[Table], Rule]) -> Effect:
    """Return the effect of a statement that adds a rule."""
    return edited(name, lambda table, _: replace(table, rules=(*table.rules, make(table))))


def columns_put(table: Table, columns: tuple[Column, ...]) -> Table:
    return replace(table, columns=columns)


class Wishing:
    """The choice of statements that make sense for the tables of now; later they may no longer."""

    def __init__(self, chance: random.Random, names: Iterator[int] | None = None) -> None:
        self.chance = chance
        self.names = names or count(1)

    def wish(self, state: State, maker: int | None = None) -> Wish:
        """Return a statement over one of the tables, of any operation or of one by its number."""
        if maker is not None:
            return self.makers[maker % len(self.makers)](next(iter(state.values())), state)
        if not state or (len(state) < 2 and self.chance.random() < 0.6):
            return self.create_table()
        table = self.chance.choice(list(state.values()))
        if len(table.rules) > 1 and self.chance.random() < 0.3:
            return self.drop_rule(table, state)
        return self.chance.choice(self.makers)(table, state)

    @property
    def makers(self) -> list[Callable[[Table, State], Wish]]:
        """Every operation on a table that is there."""
        return [
            self.create_index,
            self.create_unique_index,
            self.add_unique,
            self.add_check,
            self.add_foreign_key,
            self.set_not_null,
            self.add_column,
            self.add_not_null_column,
            self.add_filled_column,
            self.add_computed_column,
            self.drop_column,
            self.rename_column,
            self.change_type,
            self.set_default,
            self.change_primary_key,
            self.rename_table,
            self.drop_table,
        ]

    def name(self, prefix: str) -> str:
        return f"{prefix}{next(self.names)}"

    def column(self, table: Table, *, plain: bool = False) -> Column:
        wanted = [c for c in table.columns if c.uid not in table.key and not (plain and c.source)]
        return self.chance.choice(wanted or list(table.columns))

    def some_columns(self, table: Table) -> list[Column]:
        """Return one column, or two in any order."""
        return self.chance.sample(table.columns, min(self.chance.choice([1, 1, 2]), len(table.columns)))

    def create_table(self) -> Wish:
        name = self.name("t")

        def effect(state: State, numbers: Iterator[int]) -> dict[int, Table]:
            number, key, value, text = (next(numbers) for _ in range(4))
            columns = (Column(key, "id", Kind.BIGINT), Column(value, "v", Kind.BIGINT), Column(text, "w", Kind.STRING))
            return {**state, number: Table(number, f"public.{name}", columns, (key,))}

        sql = f"CREATE TABLE {name} (id BIGINT, v BIGINT, w STRING, PRIMARY KEY (id))"
        return Wish(sql, "create_table", effect)

    def drop_table(self, table: Table, _state: State) -> Wish:
        def effect(state: State, _numbers: Iterator[int]) -> dict[int, Table]:
            return {uid: other for uid, other in state.items() if other.name != table.name}

        return Wish(f"DROP TABLE {table.name}", "drop_table", effect)

    def rename_table(self, table: Table, _state: State) -> Wish:
        name = self.name("t")
        effect = edited(table.name, lambda own, _: replace(own, name=f"public.{name}"))
        return Wish(f"ALTER TABLE {table.name} RENAME TO {name}", "rename_table", effect)

    def create_index(self, table: Table, _state: State) -> Wish:
        columns = [c.name for c in self.some_columns(table)]
        name = self.name("i")
        make = _rule(RuleKind.INDEX, name, *columns)
        stored = self.chance.choice(["", "", f" INCLUDE ({self.column(table).name})"])
        return Wish(
            f"CREATE INDEX {name} ON {table.name} ({', '.join(columns)}){stored}",
            "create_index",
            ruled(table.name, make),
        )

    def create_unique_index(self, table: Table, _state: State) -> Wish:
        column, name = self.column(table), self.name("u")
        make = _rule(RuleKind.UNIQUE, name, column.name)
        return Wish(
            f"CREATE UNIQUE INDEX {name} ON {table.name} ({column.name})",
            "create_unique_index",
            ruled(table.name, make),
        )

    def add_unique(self, table: Table, _state: State) -> Wish:
        column, name = self.column(table), self.name("u")
        sql = f"ALTER TABLE {table.name} ADD CONSTRAINT {name} UNIQUE ({column.name})"
        return Wish(sql, "add_unique", ruled(table.name, _rule(RuleKind.UNIQUE, name, column.name)))

    def add_check(self, table: Table, _state: State) -> Wish:
        column, name = self.column(table), self.name("c")
        banned = self.chance.choice(VALUES[column.kind][:3])
        sql = f"ALTER TABLE {table.name} ADD CONSTRAINT {name} CHECK ({column.name} <> {literal(banned)})"
        return Wish(
            sql, "add_check", ruled(table.name, _rule(RuleKind.CHECK, name, column.name, banned=banned)), banned
        )

    def add_foreign_key(self, table: Table, state: State, of: Column | None = None) -> Wish:
        column, name = of or self.column(table), self.name("f")
        parent = self.chance.choice(list(state.values()))

        def effect(state: State, numbers: Iterator[int]) -> dict[int, Table]:
            target = named_table(state, parent.name).uid
            make = _rule(RuleKind.FOREIGN_KEY, name, column.name, target=target)
            return ruled(table.name, make)(state, numbers)

        sql = f"ALTER TABLE {table.name} ADD CONSTRAINT {name} FOREIGN KEY ({column.name}) REFERENCES {parent.name}"
        return Wish(sql, "add_foreign_key", effect)

    def add_parent(self, table: Table, state: State) -> Wish:
        """Return a foreign key that has the type of what it refers to."""
        column = self._number(table)
        return self.add_foreign_key(table, state, column)

    def set_not_null(self, table: Table, _state: State) -> Wish:
        column = self.column(table)
        if any(rule.kind is RuleKind.NOT_NULL and rule.columns == (column.uid,) for rule in table.rules):
            return self.drop_not_null(table, column)

        def edit(own: Table, _numbers: Iterator[int]) -> Table:
            uid = own.column(column.name).uid
            if uid in own.key or any(r.kind is RuleKind.NOT_NULL and r.columns == (uid,) for r in own.rules):
                return own
            return replace(own, rules=(*own.rules, Rule(RuleKind.NOT_NULL, "", (uid,))))

        sql = f"ALTER TABLE {table.name} ALTER COLUMN {column.name} SET NOT NULL"
        return Wish(sql, "set_not_null", edited(table.name, edit))

    def drop_not_null(self, table: Table, column: Column) -> Wish:
        def edit(own: Table, _numbers: Iterator[int]) -> Table:
            gone = (RuleKind.NOT_NULL, (own.column(column.name).uid,))
            return replace(own, rules=tuple(rule for rule in own.rules if (rule.kind, rule.columns) != gone))

        sql = f"ALTER TABLE {table.name} ALTER COLUMN {column.name} DROP NOT NULL"
        return Wish(sql, "drop_not_null", edited(table.name, edit))

    def drop_rule(self, table: Table, _state: State) -> Wish:
        droppable = [rule for rule in table.rules if rule.name]
        if not droppable:
            return self.create_index(table, _state)
        rule = self.chance.choice(droppable)
        effect = edited(
            table.name, lambda own, _: replace(own, rules=tuple(r for r in own.rules if r.name != rule.name))
        )
        if rule.kind is RuleKind.INDEX:
            return Wish(f"DROP INDEX {rule.name} ON {table.name}", "drop_index", effect)
        return Wish(f"ALTER TABLE {table.name} DROP CONSTRAINT {rule.name}", "drop_constraint", effect)

    def add_column(self, table: Table, _state: State) -> Wish:
        name, default = self.name("n"), self.chance.choice([None, 1])

        def edit(own: Table, numbers: Iterator[int]) -> Table:
            return _added(own, Column(next(numbers), name, Kind.BIGINT, default), lambda _row: default)

        said = "" if default is None else f" DEFAULT {default}"
        return Wish(f"ALTER TABLE {table.name} ADD COLUMN {name} BIGINT{said}", "add_column", edited(table.name, edit))

    def add_not_null_column(self, table: Table, _state: State) -> Wish:
        name, default = self.name("n"), self.chance.choice([None, 1])

        def edit(own: Table, numbers: Iterator[int]) -> Table:
            column = Column(next(numbers), name, Kind.BIGINT, default)
            own = _added(own, column, lambda _row: default)
            return replace(own, rules=(*own.rules, Rule(RuleKind.NOT_NULL, "", (column.uid,))))

        said = "" if default is None else f" DEFAULT {default}"
        sql = f"ALTER TABLE {table.name} ADD COLUMN {name} BIGINT NOT NULL{said}"
        return Wish(sql, "add_not_null_column", edited(table.name, edit))

    def add_filled_column(self, table: Table, _state: State) -> Wish:
        name, of = self.name("n"), self._number(table)
        unique = self.chance.random() < 0.3

        def edit(own: Table, numbers: Iterator[int]) -> Table:
            source, column = own.column(of.name).uid, Column(next(numbers), name, Kind.BIGINT)
            own = _added(own, column, lambda row: added_one(row.get(source)))
            if not unique:
                return own
            return replace(own, rules=(*own.rules, Rule(RuleKind.UNIQUE, f"{name}_unique", (column.uid,))))

        said = " UNIQUE" if unique else ""
        sql = f"ALTER TABLE {table.name} ADD COLUMN {name} BIGINT USING {of.name} + 1{said}"
        return Wish(sql, "add_filled_column", edited(table.name, edit))

    def add_computed_column(self, table: Table, _state: State) -> Wish:
        name, of = self.name("n"), self._number(table)

        def edit(own: Table, numbers: Iterator[int]) -> Table:
            source = own.column(of.name).uid
            column = Column(next(numbers), name, Kind.BIGINT, source=source)
            return _added(own, column, lambda row: added_one(row.get(source)))

        sql = f"ALTER TABLE {table.name} ADD COLUMN {name} BIGINT GENERATED ALWAYS AS ({of.name} + 1)"
        return Wish(sql, "add_computed_column", edited(table.name, edit))

    def drop_column(self, table: Table, _state: State) -> Wish:
        column = self.column(table)

        def edit(own: Table, _numbers: Iterator[int]) -> Table:
            gone = own.column(column.name).uid
            rules = tuple(rule for rule in own.rules if gone not in rule.columns)
            kept = replace(own, columns=tuple(c for c in own.columns if c.uid != gone), rules=rules)
            return kept.with_rows([{u: v for u, v in row.items() if u != gone} for row in own.rows.values()])

        return Wish(f"ALTER TABLE {table.name} DROP COLUMN {column.name}", "drop_column", edited(table.name, edit))

    def rename_column(self, table: Table, _state: State) -> Wish:
        column, name = self.chance.choice(table.columns), self.name("n")

        def edit(own: Table, _numbers: Iterator[int]) -> Table:
            return _put(own, replace(own.column(column.name), name=name))

        sql = f"ALTER TABLE {table.name} RENAME COLUMN {column.name} TO {name}"
        return Wish(sql, "rename_column", edited(table.name, edit))

    def change_type(self, table: Table, _state: State) -> Wish:
        column = self.column(table, plain=True)
        kind = Kind.STRING if column.kind is Kind.BIGINT else Kind.BIGINT

        def edit(own: Table, numbers: Iterator[int]) -> Table:
            old, number = own.column(column.name), next(numbers)
            new = replace(old, uid=number, kind=kind, default=converted(old.default, kind), replaces=old.uid)
            columns = tuple(new if c.uid == old.uid else c for c in own.columns)
            rules = tuple(
                replace(rule, columns=tuple(number if uid == old.uid else uid for uid in rule.columns))
                for rule in own.rules
            )
            after = replace(own, columns=columns, rules=rules)
            rows = ({**row, number: converted(row.get(old.uid), kind)} for row in own.rows.values())
            return after.with_rows([after.computed(row) for row in rows])

        sql = f"ALTER TABLE {table.name} ALTER COLUMN {column.name} TYPE {kind}"
        return Wish(sql, "change_type", edited(table.name, edit))

    def set_default(self, table: Table, _state: State) -> Wish:
        column = self.column(table, plain=True)
        default = None if column.default is not None else VALUES[column.kind][1]

        def edit(own: Table, _numbers: Iterator[int]) -> Table:
            return _put(own, replace(own.column(column.name), default=default))

        said = "DROP DEFAULT" if default is None else f"SET DEFAULT {literal(default)}"
        sql = f"ALTER TABLE {table.name} ALTER COLUMN {column.name} {said}"
        return Wish(sql, "set_default", edited(table.name, edit))

    def change_primary_key(self, table: Table, _state: State) -> Wish:
        columns = [c.name for c in self.some_columns(table)]  # refused, if one is computed

        def edit(own: Table, _numbers: Iterator[int]) -> Table:
            key = tuple(own.column(name).uid for name in columns)
            if key == own.key:
                return own
            rules = tuple(r for r in own.rules if r.kind is not RuleKind.NOT_NULL or r.columns[0] not in key)
            return replace(own, key=key, rules=rules).with_rows(own.rows.values())

        name = self.name("p")
        sql = f"ALTER TABLE {table.name} ADD CONSTRAINT {name} PRIMARY KEY ({', '.join(columns)})"
        return Wish(sql, "change_primary_key", edited(table.name, edit))

    def _number(self, table: Table) -> Column:
        numbers = [c for c in table.columns if c.kind is Kind.BIGINT and not c.source]
        return self.chance.choice(numbers or list(table.columns))


def _rule(kind: RuleKind, name: str, *columns: str, banned: Value = None, target: int = 0) -> Callable[[Table], Rule]:
    def make(table: Table) -> Rule:
        return Rule(kind, name, tuple(table.column(own).uid for own in columns), banned, target)

    return make


def _put(table: Table, column: Column) -> Table:
    return replace(table, columns=tuple(column if c.uid == column.uid else c for c in table.columns))


def _added(table: Table, column: Column, value: Callable[[dict[int, Value]], Value]) -> Table:
    after = replace(table, columns=(*table.columns, column))
    return after.with_rows([{**row, column.uid: value(dict(row))} for row in table.rows.values()])
