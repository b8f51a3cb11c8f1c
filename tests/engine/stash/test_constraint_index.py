"""Index of a collection: the same for rows in columns and rows one by one."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from catalog.constraints import CONSTRAINTS
from catalog.engine.base.arrow import binary_column
from catalog.engine.stash import constraint_index
from catalog.engine.stash.constraint_index import ConstraintIndex
from catalog.engine.stash.constraints import Constraints, Unique
from catalog.engine.stash.registry import Registry, encode
from catalog.errors import UndecodableRowError
from catalog.generated import objects_pb2 as types

REGISTRY = Registry.of(types)
SEED = int(os.environ.get("SEED", "20"))
CONSTRAINED = sorted(
    {unique.collection for unique in CONSTRAINTS.uniques} | {found.collection for found in CONSTRAINTS.references}
)
WORDS = ["", "a", "b", "é'\"\n", "sales", "\0", "[1]"]


def fill(message: Message, chance: random.Random) -> None:
    """Set fields at random, few values often: absent, zero, repeated and nested ones included."""
    for field in message.DESCRIPTOR.fields:
        if field.is_repeated:
            for _ in range(chance.choice([0, 0, 1, 3])):
                if field.message_type:
                    fill(getattr(message, field.name).add(), chance)
                else:
                    getattr(message, field.name).append(plain(field, chance))
        elif chance.random() < 0.7:
            if field.message_type:
                getattr(message, field.name).SetInParent()
                fill(getattr(message, field.name), chance)
            else:
                setattr(message, field.name, plain(field, chance))


def plain(field: Any, chance: random.Random) -> object:  # noqa: ANN401 - protobuf has two classes of it
    if field.enum_type:
        return chance.choice(field.enum_type.values).number
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING:
            return chance.choice(WORDS) if field.type == FieldDescriptor.TYPE_STRING else chance.randbytes(2)
        case FieldDescriptor.CPPTYPE_BOOL:
            return chance.random() < 0.5
        case _:
            return chance.choice([0, 1, 2, 300])


def table(rows: list[tuple[bytes, bytes]]) -> pa.Table:
    return pa.table({"key": binary_column([key for key, _ in rows]), "value": binary_column([v for _, v in rows])})


def some_rows(collection: str, count: int, chance: random.Random) -> list[tuple[bytes, bytes]]:
    found = REGISTRY.named(collection)
    rows = []
    for _ in range(count):
        key, value = found.key_type(), found.value_type()
        fill(key, chance)
        fill(value, chance)
        rows.append((encode(key), encode(value)))
    return rows


@pytest.mark.parametrize("collection", CONSTRAINED)
def test_rows_in_columns_and_rows_one_by_one_make_the_same_index(
    collection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is loaded is advanced row by row afterwards: both must mean the same by every hash."""
    monkeypatch.setattr(constraint_index, "_COLUMNS_FROM_ROWS", 1)
    rows = some_rows(collection, 300, random.Random(f"{SEED}/{collection}"))  # noqa: S311 - nothing secret
    loaded, advanced = (ConstraintIndex(REGISTRY.named(collection), REGISTRY, CONSTRAINTS) for _ in range(2))
    loaded.load([table(rows[:200]), table(rows[200:])])
    advanced.apply((key, value, 1) for key, value in rows)
    assert loaded == advanced
    assert loaded.keys
    loaded.apply((key, value, -1) for key, value in rows)
    assert loaded.keys == set()
    assert not any((*loaded.counts.uniques.values(), *loaded.counts.referred.values()))


def test_a_path_through_repeated_fields_makes_the_same_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a unique field is repeated or a message."""
    monkeypatch.setattr(constraint_index, "_COLUMNS_FROM_ROWS", 1)
    uniques = (Unique("item", ("value.privileges.grantee",)), Unique("item", ("value.owner_id", "value.name")))
    constraints = replace(Constraints(), uniques=uniques)
    rows = some_rows("item", 100, random.Random(SEED))  # noqa: S311 - nothing secret
    loaded, advanced = (ConstraintIndex(REGISTRY.named("item"), REGISTRY, constraints) for _ in range(2))
    loaded.load([table(rows)])
    advanced.apply((key, value, 1) for key, value in rows)
    assert loaded == advanced


def test_many_rows_are_read_in_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row by row, as many would take seconds before the first write."""
    monkeypatch.setattr(ConstraintIndex, "apply", None)
    names = [encode(types.ItemValue(name=f"t{number}")) for number in range(5000)]
    loaded = ConstraintIndex(REGISTRY.named("item"), REGISTRY, CONSTRAINTS)
    loaded.load([table([(encode(types.ItemKey(id=number)), name) for number, name in enumerate(names)])])
    assert (len(loaded.keys), len(next(iter(loaded.counts.uniques.values())))) == (5000, 5000)


def test_a_row_that_cannot_be_read_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is damage, and says so."""
    monkeypatch.setattr(constraint_index, "_COLUMNS_FROM_ROWS", 1)
    loaded = ConstraintIndex(REGISTRY.named("item"), REGISTRY, CONSTRAINTS)
    with pytest.raises(UndecodableRowError, match=r"row 1 is no catalog\.objects\.ItemValue"):
        loaded.load([table([(b"\x08\x01", b""), (b"\x08\x02", b"\xff")])])
