"""Columns that several collections have: ids with gaps, names, owners, oids; and the allocators of the ids."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from catalog.authoring import Draw, SampleColumn
from catalog.authoring import random_columns as rc

FIRST_ROLE_ID = 17
"""The first version whose role ids are messages."""
SYSTEM_ROLES, FIRST_USER = 4, 1000
RUN = 61
"""After so many ids one is missing, as if its row had been dropped."""
BLOCK = 64


def spaced(rows: pa.Array) -> pa.Array:
    """Return the ids of rows by their numbers: from 1, one missing after each run."""
    return rc.plus(pc.add(rows, rc.quotient(rows, RUN)), 1)


def own_id(draw: Draw) -> pa.Array:
    return spaced(draw.numbers)


def own_name(draw: Draw) -> pa.Array:
    return draw.names("name")


def owner(draw: Draw) -> pa.Array:
    return draw.ids("role", owner_row(draw))


def owner_row(draw: Draw) -> pa.Array:
    return draw.rows_of("role", "owner", first=1)


def oid(draw: Draw) -> pa.Array:
    return draw.optional("value.oid", rc.plus(draw.numbers, 16_384))


def known(draw: Draw, texts: pa.Array, others: pa.Array) -> pa.Array:
    """Return the given texts for the first rows, then the others."""
    first = pc.less(draw.numbers, rc.unsigned(len(texts)))
    position = pc.if_else(first, draw.numbers, rc.unsigned(0))
    return pc.if_else(first, texts.take(position), others)


def role_parts(rows: pa.Array) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return columns: the role is public; it is a system role or public; its number, also before roles had ids."""
    public, system = (
        pc.equal(rows, rc.unsigned(0)),
        pc.less_equal(rows, rc.unsigned(SYSTEM_ROLES)),
    )
    first = rc.unsigned(SYSTEM_ROLES + 1)
    user = rc.plus(spaced(pc.subtract(pc.max_element_wise(rows, first), first)), FIRST_USER - 1)
    return public, system, pc.if_else(system, rc.plus(rows, 1), user)


def next_id(draw: Draw, collection: str) -> int:
    """Return an id above all that were given out, at the end of a block."""
    count = draw.extent(collection).total
    if collection == "item":
        count += draw.extent("builtin_mapping").total
    if collection == "role":
        count += FIRST_USER
    return ((count + count // RUN) // BLOCK + 2) * BLOCK


def allocators(names: list[str]) -> dict[str, SampleColumn]:
    all_names = pa.array(names, pa.string())

    def following(draw: Draw) -> pa.Array:
        ends = pa.array([next_id(draw, name) + draw.revision * BLOCK for name in names], pa.uint64())
        return ends.take(draw.numbers)

    return {"key.name": lambda draw: all_names.take(draw.numbers), "value.next_id": following}
