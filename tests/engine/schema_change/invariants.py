"""The invariants of tables and of their schema changes, judged at one state of the log against the oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from catalog.engine.schema_change import tables_pb2 as pb
from catalog.engine.schema_change.expressions import columns_of
from catalog.engine.schema_change.replica import TablesReplica
from catalog.engine.schema_change.rows import RowCodec
from catalog.engine.schema_change.schema import STORING, Element, ElementKind, TableColumn, TableSchema, TableState
from catalog.engine.schema_change.schema import State as PartState
from catalog.engine.schema_change.types import Value
from tests.engine.schema_change.oracle import Fields, Key, RefusedError, Rule, RuleKind, State, Table, violations
from tests.engine.schema_change.wishes import Wish

KINDS = {
    ElementKind.INDEX: RuleKind.INDEX,
    ElementKind.UNIQUE: RuleKind.UNIQUE,
    ElementKind.CHECK: RuleKind.CHECK,
    ElementKind.NOT_NULL: RuleKind.NOT_NULL,
    ElementKind.FOREIGN_KEY: RuleKind.FOREIGN_KEY,
}
Shown = tuple[RuleKind, str, tuple[str, ...]]


def check_state(replica: TablesReplica, state: State) -> None:
    """Check all that must be true at every version."""
    schemas = [schema for schema in replica.schemas.values() if schema.state is TableState.PUBLIC]
    by_name = {schema.name: schema for schema in schemas}
    leaving = {schema.name for schema in replica.schemas.values()} - by_name.keys()
    known = {table.name for table in state.values()}
    assert by_name.keys() <= known, f"tables that nobody made: {by_name.keys() - known}"
    assert known - leaving <= by_name.keys(), f"tables that are gone: {known - leaving - by_name.keys()}"
    for table in state.values():
        if table.name in by_name:
            _check_table(replica, by_name[table.name], table)
            for rule in table.rules:
                broken = violations(state, table, rule)
                assert not broken, f"{rule} of {table.name} is public, and {broken} violate it"
    elements = {e.collection for schema in replica.schemas.values() for e in schema.elements if e.kind in STORING}
    found = {name for name in replica.view.collections() if name[:1] == "e" and name[1:].isdecimal()}
    assert found <= elements, f"files of elements that are gone: {found - elements}"


def _check_table(replica: TablesReplica, schema: TableSchema, table: Table) -> None:
    assert 0 <= schema.cur - schema.min <= 1, f"{schema.name} has the versions {schema.min} to {schema.cur}"
    parts: list[TableColumn | Element] = [*schema.columns, *schema.elements]
    assert all(part.since <= schema.cur for part in parts), f"{schema.name}: since > cur"
    _check_definition(schema, table)
    codec = replica.codecs.of(schema)
    stored = [codec.row(key, value) for key, value in replica.view.rows(schema.collection)]
    names = {column.id: column.name for column in schema.readable if not column.hidden}
    rows = [{name: row.get(number) for number, name in names.items()} for row in stored]
    wanted = [table.named(row) for row in table.rows.values()]
    assert _sorted(rows) == _sorted(wanted), f"{table.name} has {rows}, and the oracle {wanted}"
    for element in schema.elements:
        if element.kind is ElementKind.INDEX and (element.built or element.state is PartState.PUBLIC):
            _check_index(replica, codec, element, stored)


def _check_index(replica: TablesReplica, codec: RowCodec, element: Element, rows: list[dict[int, Value]]) -> None:
    own = codec.schema.element_by_id(element.support)
    if element.support and own is not None and own.state is not PartState.PUBLIC:
        return  # its entries lead to rows by a key that is not yet there
    found = list(replica.view.rows(element.collection))
    wanted = sorted(codec.entry(element, row) for row in rows)
    assert found == wanted, f"{element.name} of {codec.schema.name} has {found}, its rows give {wanted}"


def _check_definition(schema: TableSchema, table: Table) -> None:
    columns = {(column.name, column.type.text) for column in schema.readable if not column.hidden}
    assert columns == {(column.name, str(column.kind)) for column in table.columns}, f"{schema.name}: other columns"
    key = tuple(schema.names[number] for number in schema.primary.columns)
    assert key == tuple(column.name for uid in table.key if (column := table.by_uid(uid))), f"{schema.name}: other key"
    names = {column.id: column.name for column in schema.readable}
    shown = {
        _shown(KINDS[element.kind], element.name, [names[number] for number in columns_used(element)])
        for element in schema.elements
        if element.kind in KINDS and not element.hidden and element.state is PartState.PUBLIC
        if names.keys() >= {*columns_used(element)}  # it comes with a column that is not there yet
    }
    own = {column.uid: column.name for column in table.columns}
    wanted = {_shown(rule.kind, rule.name, [own[uid] for uid in rule.columns]) for rule in table.rules}
    assert shown == wanted, f"{schema.name} has {shown}, and the oracle {wanted}"
    if not schema.change:
        _check_rest(schema)


def columns_used(element: Element) -> tuple[int, ...]:
    return element.columns if element.check is None else tuple(columns_of(element.check))


def _shown(kind: RuleKind, name: str, columns: list[str]) -> Shown:
    return kind, "" if kind is RuleKind.NOT_NULL else name, tuple(columns)


def _check_rest(schema: TableSchema) -> None:
    """No change works on the table: nothing of any is left in it."""
    assert schema.cur == schema.min, f"{schema.name} is between two versions, and nobody closes it"
    parts: list[TableColumn | Element] = [*schema.columns, *schema.elements]
    unfinished = [part.name for part in parts if part.state is not PartState.PUBLIC]
    assert not unfinished, f"{schema.name} has {unfinished} of no change"
    supports = {element.support for element in schema.elements}
    alone = [e.name for e in schema.elements if e.hidden and e.kind is ElementKind.INDEX and e.id not in supports]
    assert not alone, f"{schema.name} has {alone}, which serve nothing"


def check_items(replica: TablesReplica, items: Mapping[int, str]) -> None:
    """Check that whoever can write a table can find it."""
    lost = [s.name for s in replica.schemas.values() if s.state is TableState.PUBLIC and s.id not in items]
    assert not lost, f"tables without a name: {lost}"


def check_failure(row: pb.SchemaChangeValue, wish: Wish, state: State, numbers: Iterator[int]) -> None:
    """Check that what a change failed by was there, at the ts that it names."""
    failure = row.failure
    if failure.rule in {"item", "refused"}:
        return
    try:
        after = wish.effect(state, numbers)
    except RefusedError:
        return  # a value that cannot be converted
    changed = [table for uid, table in after.items() if table is not state.get(uid)]
    lost = any(len(table.rows) < len(state[table.uid].rows) or _has_null(table) for table in changed)
    broken = [r for t in changed for r in t.rules if r.name == failure.element and violations(after, t, r)]
    nulls = [r for t in changed for r in t.rules if r.kind is RuleKind.NOT_NULL and violations(after, t, r)]
    assert failure.keys, f"{row.statement} failed, and names no row"
    assert broken or nulls or lost, f"{row.statement} failed at {failure.at_ts} without a reason: {failure.why}"


def _has_null(table: Table) -> bool:
    return any(None in key for key in table.rows)


def closed_rules(
    schema: TableSchema, table: Table, state: State, tables: Mapping[int, str], banned: Mapping[str, Value]
) -> list[Rule]:
    """Return the rules that every writer is checked by, though rows from before may violate them."""
    names = {column.name: column.uid for column in table.columns}
    rules = []
    for element in schema.elements:
        kind = KINDS.get(element.kind)
        is_closed = element.state is PartState.CHECK and schema.counts(element) and not element.hidden
        if kind is None or not is_closed or (element.name not in banned and kind is RuleKind.CHECK):
            continue
        columns = tuple(names.get(schema.names[number], 0) for number in columns_used(element))
        target = next((t.uid for t in state.values() if t.name == tables.get(element.target)), 0)
        if all(columns):
            rules.append(Rule(kind, element.name, columns, banned.get(element.name), target))
    return rules


def is_unseen(schema: TableSchema, element: Element) -> bool:
    """Tell if writers are checked by a rule that is hidden, or is over a column that is not public yet."""
    readable = {column.id for column in schema.readable}
    return element.state >= PartState.CHECK and (element.hidden or not readable >= {*columns_used(element)})


def check_written(before: State, after: State, rules: Mapping[int, list[Rule]]) -> None:
    """Check that rows which a transaction wrote keep the rules that were closed by then."""
    for uid, own in rules.items():
        table, was = after[uid], before[uid].rows
        for rule in own:
            broken = violations(after, table, rule, _written(table, was, rule))
            assert not broken, f"{rule} is closed, and rows written since violate it: {broken}"


def _written(table: Table, was: Mapping[Key, Fields], rule: Rule) -> Callable[[Key], bool]:
    """Return which rows were written; of a unique rule, only those whose own value is another one now."""

    def own(row: Fields | None) -> object:
        return row if row is None or rule.kind is not RuleKind.UNIQUE else [row.get(uid) for uid in rule.columns]

    return lambda key: own(was.get(key)) != own(table.rows.get(key))


def _sorted(rows: list[dict[str, Value]]) -> list[list[tuple[str, str]]]:
    return sorted(sorted((name, repr(value)) for name, value in row.items()) for row in rows)
