"""What rows of more than one collection have: ids with gaps, names, owners; and the allocators behind the ids."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from catalog.generator.draw import Draw
from catalog.generator.samples import Column
from catalog.generator.vectors import plus, quotient, unsigned

FIRST_ROLE_ID = 17
"""The version since when a role's id is a message."""
SYSTEM_ROLES, FIRST_USER = 4, 1000
RUN = 61
"""After so many ids one is missing: that of a row that was dropped."""
BLOCK = 64


def spaced(rows: pa.Array) -> pa.Array:
    """Ids of rows by their numbers: from 1, with one missing now and then."""
    return plus(pc.add(rows, quotient(rows, RUN)), 1)


def own_id(draw: Draw) -> pa.Array:
    return spaced(draw.numbers)


def own_name(draw: Draw) -> pa.Array:
    return draw.names("name")


def owner(draw: Draw) -> pa.Array:
    return draw.ids("role", owner_row(draw))


def owner_row(draw: Draw) -> pa.Array:
    return draw.rows_of("role", "owner", first=1)


def oid(draw: Draw) -> pa.Array:
    return draw.optional("value.oid", plus(draw.numbers, 16_384))


def known(draw: Draw, texts: pa.Array, others: pa.Array) -> pa.Array:
    """The given texts for the first rows, then others."""
    first = pc.less(draw.numbers, unsigned(len(texts)))
    position = pc.if_else(first, draw.numbers, unsigned(0))
    return pc.if_else(first, texts.take(position), others)


def role_parts(rows: pa.Array) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Whether roles are public, whether they are system roles or public, and the numbers that they have or had."""
    public, system = pc.equal(rows, unsigned(0)), pc.less_equal(rows, unsigned(SYSTEM_ROLES))
    first = unsigned(SYSTEM_ROLES + 1)
    user = plus(spaced(pc.subtract(pc.max_element_wise(rows, first), first)), FIRST_USER - 1)
    return public, system, pc.if_else(system, plus(rows, 1), user)


def next_id(draw: Draw, collection: str) -> int:
    """Above every id that was given out, at the end of a block."""
    count = draw.extent(collection).total
    if collection == "item":
        count += draw.extent("builtin_mapping").total
    if collection == "role":
        count += FIRST_USER
    return ((count + count // RUN) // BLOCK + 2) * BLOCK


def allocators(names: list[str]) -> dict[str, Column]:
    all_names = pa.array(names, pa.string())

    def following(draw: Draw) -> pa.Array:
        ends = pa.array([next_id(draw, name) + draw.revision * BLOCK for name in names], pa.uint64())
        return ends.take(draw.numbers)

    return {"key.name": lambda draw: all_names.take(draw.numbers), "value.next_id": following}
