"""`catalog tables`: the tables of a store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult
from catalog.cli.commands.table_show import RowCount, bytes_of, count_rows
from catalog.cli.store_tables import tables_to_read
from catalog.engine.schema_change.schema import ElementKind, TableState

if TYPE_CHECKING:
    from catalog.cli.app import Invocation
    from catalog.engine.schema_change.layers import LayeredView
    from catalog.engine.schema_change.schema import TableSchema


@dataclass(frozen=True, slots=True)
class TableLine:
    name: str
    columns: int
    indexes: int
    rows: RowCount
    bytes: int
    change: int | None
    """The number of the schema change that works on it."""


@dataclass(frozen=True, slots=True)
class TablesListed:
    store: str
    ts: int | None
    """None if the store has had no table yet."""
    tables: tuple[TableLine, ...]


def tables(run: Invocation) -> CommandResult:
    """List the tables by name."""
    with tables_to_read(run.target) as found:
        if found is None:
            return CommandResult(TablesListed(run.target.place.uri, None, ()))
        replica = found.store.replica
        schemas = sorted(replica.schemas.values(), key=lambda schema: schema.name)
        lines = tuple(_line(replica.view, schema) for schema in schemas if schema.state is TableState.PUBLIC)
        return CommandResult(TablesListed(run.target.place.uri, replica.state.version, lines))


def _line(view: LayeredView, schema: TableSchema) -> TableLine:
    return TableLine(
        schema.name,
        sum(not column.hidden for column in schema.readable),
        sum(element.kind is ElementKind.INDEX for element in schema.elements),
        count_rows(view, schema.collection),
        sum(bytes_of(view, element.collection) for element in schema.elements),
        schema.change or None,
    )
