"""`catalog table show`: the columns, indexes and constraints of a table, and the change that works on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult
from catalog.cli.schema_changes import ChangeShown
from catalog.cli.store_tables import tables_to_read
from catalog.engine.log.protocol import FileKind
from catalog.engine.schema_change.expressions import expression_text
from catalog.engine.schema_change.schema import STORING, Element, ElementKind, State, TableColumn, TableSchema
from catalog.engine.schema_change.validating import rule_text
from catalog.errors import UnknownTableError

if TYPE_CHECKING:
    from catalog.cli.app import Invocation
    from catalog.engine.schema_change.layers import LayeredView
    from catalog.engine.schema_change.tables import Tables

COUNTED_MAX = 1_000_000
"""So many stored rows are counted; of more it is only known how many are stored, earlier values included."""


@dataclass(frozen=True, slots=True)
class RowCount:
    number: int
    is_exact: bool


@dataclass(frozen=True, slots=True)
class ColumnShown:
    name: str
    type: str
    nullable: bool
    default: str | None
    """The SQL of the default."""
    computed: str | None
    """The SQL of the value, if it is computed from other columns."""
    state: State


@dataclass(frozen=True, slots=True)
class IndexShown:
    name: str
    kind: str
    """`primary key`, `unique index` or `index`."""
    columns: tuple[str, ...]
    stored: tuple[str, ...]
    state: State
    complete: bool
    """True if it has an entry for every row."""
    hidden: bool
    """True if it serves a constraint only."""
    bytes: int


@dataclass(frozen=True, slots=True)
class ConstraintShown:
    name: str
    rule: str
    state: State


@dataclass(frozen=True, slots=True)
class TableShown:
    store: str
    name: str
    version: int
    closed_version: int
    """The earlier of two versions while bulk writes of it are waited for; else the same."""
    ts: int
    rows: RowCount
    bytes: int
    columns: tuple[ColumnShown, ...]
    indexes: tuple[IndexShown, ...]
    constraints: tuple[ConstraintShown, ...]
    change: ChangeShown | None


def show(run: Invocation, *, name: str) -> CommandResult:
    """Show a table as it is now."""
    with tables_to_read(run.target) as tables:
        if tables is None:
            raise UnknownTableError(name, ())
        schema = tables.schema(name)
        view = tables.store.view
        stores = [element for element in schema.elements if element.kind in STORING]
        change = ChangeShown.of(tables, tables.change(schema.change)) if schema.change else None
        shown = TableShown(
            run.target.place.uri,
            schema.name,
            schema.cur,
            schema.min,
            view.state.version,
            count_rows(view, schema.collection),
            sum(bytes_of(view, element.collection) for element in stores),
            tuple(_column(schema, column) for column in schema.columns if not column.hidden),
            tuple(_index(view, schema, element) for element in stores),
            tuple(_constraints(tables, schema)),
            change,
        )
        return CommandResult(shown)


def count_rows(view: LayeredView, collection: str) -> RowCount:
    """Count the rows of a collection; of a large one with changes on top, return how many are stored."""
    files = view.files_of(collection)
    stored = sum(file.rows for file in files)
    if all(file.kind is FileKind.BASE for file in files):
        return RowCount(stored, is_exact=True)
    if stored > COUNTED_MAX:
        return RowCount(stored, is_exact=False)
    return RowCount(sum(part.num_rows for part in view.tables(collection)), is_exact=True)


def bytes_of(view: LayeredView, collection: str) -> int:
    return sum(file.size for file in view.files_of(collection))


def _column(schema: TableSchema, column: TableColumn) -> ColumnShown:
    required = {e.columns[0] for e in schema.elements if e.kind is ElementKind.NOT_NULL and e.state is State.PUBLIC}
    default, computed = column.write_default, column.computed
    return ColumnShown(
        column.name,
        column.type.text,
        column.id not in required | {*schema.primary.columns},
        None if default is None else expression_text(default, schema.names),
        None if computed is None else expression_text(computed, schema.names),
        column.state,
    )


def _index(view: LayeredView, schema: TableSchema, element: Element) -> IndexShown:
    is_primary = element.kind is ElementKind.PRIMARY
    uniques = {own.support for own in schema.elements if own.kind is ElementKind.UNIQUE}
    kind = "primary key" if is_primary else "unique index" if element.id in uniques else "index"
    is_current = element.id == schema.primary.id
    return IndexShown(
        element.name,
        kind,
        tuple(schema.names[number] for number in element.columns),
        tuple(schema.names[number] for number in element.stored),
        element.state,
        is_current or element.built or element.state is State.PUBLIC,
        element.hidden,
        bytes_of(view, element.collection),
    )


def _constraints(tables: Tables, schema: TableSchema) -> Iterator[ConstraintShown]:
    for element in schema.elements:
        if element.kind in STORING:
            continue
        rule = rule_text(schema, element)
        target = tables.store.replica.schemas.get(element.target)
        if element.kind is ElementKind.FOREIGN_KEY and target is not None:
            referred = target.element_by_id(element.target_element)
            names = () if referred is None else [target.names[own] for own in referred.columns]
            rule = f"{rule} references {target.name} ({', '.join(names)})"
        yield ConstraintShown(element.name, rule, element.state)
