"""ALTER COLUMN … SET DEFAULT and DROP DEFAULT: of rows that are written from then on."""

from __future__ import annotations

from dataclasses import replace

from catalog.engine.schema_change.expressions import Expression, RawExpression, resolve
from catalog.engine.schema_change.operations.context import Planning
from catalog.engine.schema_change.plan import Plan, PutColumn, publish
from catalog.engine.schema_change.statements import SetDefault
from catalog.engine.schema_change.types import ColumnType
from catalog.errors.tables import RefusedChangeError


def plan(planning: Planning, statement: SetDefault) -> Plan:
    schema = planning.table(statement.table)
    column = schema.column(statement.column)
    if column.computed is not None:
        raise RefusedChangeError(schema.name, f"{column.name} is computed", "a computed column has no default")
    default = write_default(statement.default, column.type)
    text = f"{column.name} has {'no' if default is None else 'another'} default"
    return Plan((publish(text, PutColumn(schema.id, replace(column, write_default=default))),), (schema.id,))


def write_default(raw: RawExpression | None, kind: ColumnType) -> Expression | None:
    """Return a default, which names no column; the time may be asked for."""
    return None if raw is None else resolve(raw, {}, clock=True, wanted=kind)
