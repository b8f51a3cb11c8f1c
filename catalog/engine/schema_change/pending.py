"""The change of one row inside a transaction, as it was asked for: which columns are set, of which row.

It says nothing about indexes and constraints. What it means under a newer schema than the one it was made under is
found out here: columns go by their ids, and a column whose type was changed leads on to its heir.
"""

from __future__ import annotations

from dataclasses import dataclass

from catalog.engine.schema_change.evaluation import evaluate_row
from catalog.engine.schema_change.layers import LayeredView
from catalog.engine.schema_change.replica import TablesReplica
from catalog.engine.schema_change.rows import RowCodec, RowValues
from catalog.engine.schema_change.schema import State, TableSchema, TableState
from catalog.engine.schema_change.types import Value
from catalog.errors.tables import SchemaChangedError


@dataclass(slots=True)
class PendingRow:
    """The change of one row: the columns that are set, or its removal."""

    schema: TableSchema
    key: RowValues
    values: dict[int, Value] | None
    """The columns that are set, those of the key among them; none removes the row."""
    is_new: bool = False
    """It replaces a row that this transaction removed: nothing of that one is kept."""
    origin: RowValues | None = None
    """The key that the row had before it was given this one."""


def kept_row(view: LayeredView, codec: RowCodec, pending: PendingRow) -> dict[int, Value] | None:
    """Return the stored row whose values a change keeps where it sets none; none if it makes a new row."""
    key = codec.key(pending.origin or pending.key)
    stored = None if pending.is_new else view.get(codec.schema.collection, key)
    return None if stored is None else codec.row(key, stored)


def present_schema(replica: TablesReplica, known: TableSchema) -> TableSchema:
    """Return the newest schema of a table; refuse if rows are kept by another key, or not at all."""
    ts = replica.state.version
    found = replica.schemas.get(known.id)
    if found is None or found.state is not TableState.PUBLIC:
        raise SchemaChangedError(known.name, ts, "it is being dropped")
    if found.primary.id != known.primary.id:
        raise SchemaChangedError(known.name, ts, "it has another primary key")
    found.require_known_features()
    return found


def translated(schema: TableSchema, known: TableSchema, values: RowValues, ts: int) -> dict[int, Value]:
    """Return values under a newer schema: of a column whose type was changed, its new value."""
    translated: dict[int, Value] = {}
    for number, value in values.items():
        column = schema.column_by_id(number)
        if column is not None and schema.counts(column):
            translated[number] = value
            continue
        heir = next((c for c in schema.columns if c.replaces == number and c.state is State.PUBLIC), None)
        if heir is None or heir.up is None:
            raise SchemaChangedError(known.name, ts, f"its column {known.names.get(number, number)} is gone")
        translated[heir.id] = evaluate_row(heir.up, values)
    return translated
