"""Rows and keys of tables as people read them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from decimal import Decimal

from catalog.engine.schema_change.schema import TableSchema
from catalog.engine.schema_change.types import Value


def row_key_text(schema: TableSchema, row: Mapping[int, Value]) -> str:
    """Return the key of a row as errors show it: JSON in one line."""
    return row_text({column.name: row.get(column.id) for column in schema.key_columns()})


def row_text(row: Mapping[str, Value]) -> str:
    """Return a row by its columns' names as JSON in one line."""
    return json.dumps({name: json_value(value) for name, value in row.items()}, ensure_ascii=False)


def json_value(value: Value) -> object:
    """Return a value as JSON holds it: decimals, dates and bytes as texts."""
    match value:
        case bytes():
            return value.hex()
        case Decimal():
            return str(value)
        case date():
            return value.isoformat()
        case list():
            return [json_value(one) for one in value]
        case _:
            return value
