"""Types of columns by their names: the same types, and the same fingerprints, as in Arrow's terms."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from catalog.engine.builtins.declaration import fingerprint
from catalog.engine.shard.schema import _NAMED, Column, Schema
from catalog.errors import UnfitSchemaError

ZONED = ["timestamp[us, tz=UTC]", "timestamp[ms, tz=Europe/Berlin]"]


@pytest.mark.parametrize("name", [*_NAMED, *ZONED])
def test_a_name_is_a_type(name: str) -> None:
    """Arrow spells the type as it was declared; columns that are declared either way are equal."""
    column = Column(0, "x", name)
    assert isinstance(column.type, pa.DataType)
    assert str(column.type) == name
    other = Column(0, "x", column.type)
    assert (column, hash(column)) == (other, hash(other))
    assert fingerprint(Schema.of(column)) == fingerprint(Schema.of(other))
    assert replace(column, name="y") == Column(0, "y", name)


@pytest.mark.parametrize(
    "name", ["", "int", "integer64", "struct<>", "timestamp[h]", "timestamp[us, tz=]", "list<int64>"]
)
def test_what_is_no_name_is_refused_where_it_is_declared(name: str) -> None:
    """And not when the first row is written."""
    with pytest.raises(UnfitSchemaError, match="is no name of a type"):
        Column(0, "x", name)
