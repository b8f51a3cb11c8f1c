"""Columns of roles and of the objects they own: databases, schemas, items, and comments on all of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from catalog.authoring import Draw, SampleColumn
from catalog.authoring import random_columns as rc
from catalog.samples.ids import (
    BLOCK,
    FIRST_ROLE_ID,
    known,
    next_id,
    oid,
    own_id,
    own_name,
    owner,
    owner_row,
    role_parts,
    spaced,
)

_FIRST_STRICT = 21
"""The first version in which the schema of every item exists."""
_ORPHANED, _ORPHAN = 37, 5
"""Before it, one item in so many has no schema."""
COLUMNS = 3
"""A comment on an item is followed by comments on its first columns."""
SYSTEM_SCHEMAS = pa.array(["catalog", "information_schema"], pa.string())

TABLE, VIEW, MATERIALIZED_VIEW, SOURCE, FUNCTION = 1, 2, 3, 4, 5
KINDS = [TABLE, TABLE, VIEW, TABLE, MATERIALIZED_VIEW, SOURCE, VIEW, FUNCTION, TABLE, VIEW]
"""The kinds of items, in turn."""
STORED = pa.array([i for i, kind in enumerate(KINDS) if kind in {TABLE, MATERIALIZED_VIEW, SOURCE}], pa.uint64())
_KIND_BY_TURN = pa.array(KINDS, pa.uint64())
_KIND_NAMES = pa.array(["", "TABLE", "VIEW", "MATERIALIZED VIEW", "SOURCE", "FUNCTION"], pa.string())

ENVIRONMENT = 64 + 128 + 256
_SELECT, _ALL_OF_TABLE, _USAGE, _NAMESPACE = 1, 1 + 2 + 4 + 8, 16, 16 + 32
MODE_BY_TYPE = pa.array([0, _ALL_OF_TABLE, 1, 1, 1, _USAGE, 0, *[_NAMESPACE] * 3, 0, ENVIRONMENT], pa.uint64())
"""All privilege bits of objects of a type."""


def _role_id(draw: Draw) -> pa.Array:
    public, system, number = role_parts(draw.numbers)
    if draw.version < FIRST_ROLE_ID:
        return number
    members = [
        rc.only(pc.and_not(system, public), number),
        rc.only(pc.invert(system), number),
        pa.StructArray.from_arrays([], fields=[], mask=pc.invert(public)),
    ]
    return pa.StructArray.from_arrays(members, names=["system", "user", "public"])


def _role_name(draw: Draw) -> pa.Array:
    return known(draw, pa.array(["public", "catalog_system"], pa.string()), own_name(draw))


def _member_of(draw: Draw) -> pa.Array:
    """Return some of the roles before, each once, never public."""
    before = [
        pc.subtract(pc.max_element_wise(draw.numbers, rc.unsigned(step)), rc.unsigned(step)) for step in (1, 2, 5)
    ]
    lasting = draw.extent("role").lasting
    held = [
        pc.and_(
            draw.chance(f"member {i}", 0.4),
            pc.and_(pc.greater(row, rc.unsigned(0)), pc.less(row, rc.unsigned(lasting))),
        )
        for i, row in enumerate(before)
    ]
    return rc.lists([draw.ids("role", row) for row in before], held)


def _mode_of_kind(draw: Draw) -> pa.Array:
    return MODE_BY_TYPE.take(draw["value.kind"])


def _mode_of_namespace(draw: Draw) -> pa.Array:
    return pa.repeat(rc.unsigned(_NAMESPACE), len(draw))


def _privileges(draw: Draw, mode: Callable[[Draw], pa.Array]) -> pa.Array:
    """Return the privileges of the owner, sometimes of public, and sometimes of one other role."""
    owner, all_bits = owner_row(draw), mode(draw)
    others = draw.extent("role").lasting - 2
    another = rc.plus(rc.modulo(pc.add(owner, rc.below(draw.hashes("another"), others)), others + 1), 1)
    public = pc.subtract(owner, owner)
    lowest = pc.bit_wise_and(all_bits, rc.unsigned(_SELECT | _USAGE))
    grants = [
        pa.StructArray.from_arrays(
            [draw.ids("role", grantee), draw["value.owner_id"], bits], names=["grantee", "grantor", "acl_mode"]
        )
        for grantee, bits in ((owner, all_bits), (public, lowest), (another, lowest))
    ]
    always = pa.repeat(pa.scalar(value=True), len(draw))
    return rc.lists(grants, [always, draw.chance("to public", 0.3), draw.chance("to another", 0.3)])


def _schema_database(draw: Draw) -> pa.Array:
    of_all = pc.less(draw.numbers, rc.unsigned(len(SYSTEM_SCHEMAS)))
    return rc.only(pc.invert(of_all), draw.steady.refer("database", "database"))


def _item_id(draw: Draw) -> pa.Array:
    """Return ids after those of builtin objects, which share the allocator."""
    return spaced(rc.plus(draw.numbers, draw.extent("builtin_mapping").total))


def _item_schema(draw: Draw) -> pa.Array:
    found = draw.steady.refer("schema", "schema")
    if draw.version >= _FIRST_STRICT:
        return found
    orphaned = pc.equal(rc.modulo(draw.numbers, _ORPHANED), rc.unsigned(_ORPHAN))
    gone = rc.plus(rc.below(draw.steady.hashes("gone"), BLOCK), next_id(draw, "schema") - BLOCK)
    return pc.if_else(orphaned, gone, found)


def _item_kind(draw: Draw) -> pa.Array:
    return _KIND_BY_TURN.take(rc.modulo(draw.numbers, len(KINDS)))


def _statement(draw: Draw) -> pa.Array:
    kind = _KIND_NAMES.take(draw["value.kind"])
    return rc.joined("CREATE ", kind, " ", draw["value.name"], " -- ", draw.text("statement"))


def _column_comments(draw: Draw) -> pa.Array:
    always = pa.repeat(rc.unsigned(1), len(draw))
    comments = [
        pa.StructArray.from_arrays(
            [pc.multiply(always, rc.unsigned(column)), draw.words(f"column {column}")],
            names=["position", "comment"],
        )
        for column in range(1, COLUMNS + 1)
    ]
    return rc.lists(comments, [draw.chance(f"column {column}", 0.15) for column in range(1, COLUMNS + 1)])


def _comment_on(draw: Draw, kind: str) -> pa.Array:
    """Return the ids where the comment is on an object of this kind: most are on items, some of the first on others."""
    kinds = ["database_id", "schema_id", "cluster_id", "role_id"]
    turn, row = rc.modulo(draw.numbers, 16), rc.quotient(draw.numbers, 16)
    on = {
        name: pc.and_(
            pc.equal(turn, rc.unsigned(i)),
            pc.less(row, rc.unsigned(draw.extent(name.removesuffix("_id")).lasting)),
        )
        for i, name in enumerate(kinds)
    }
    if kind in on:
        lasting = draw.extent(kind.removesuffix("_id")).lasting
        within = pc.min_element_wise(row, rc.unsigned(lasting - 1))
        return rc.only(on[kind], draw.ids(kind.removesuffix("_id"), within))
    on_item = pc.invert(pc.or_(pc.or_(on["database_id"], on["schema_id"]), pc.or_(on["cluster_id"], on["role_id"])))
    if kind == "item_id":
        return rc.only(on_item, draw.ids("item", rc.quotient(draw.numbers, COLUMNS)))
    column = rc.modulo(draw.numbers, COLUMNS)
    return rc.only(pc.and_(on_item, pc.greater(column, rc.unsigned(0))), column)


ROLE: dict[str, SampleColumn] = {
    "key.id": _role_id,
    "value.name": _role_name,
    "value.permissions": lambda draw: draw.below("permissions", 8),
    "value.member_of": _member_of,
    "value.oid": oid,
}
DATABASE: dict[str, SampleColumn] = {
    "key.id": own_id,
    "value.name": own_name,
    "value.owner_id": owner,
    "value.privileges": partial(_privileges, mode=_mode_of_namespace),
    "value.oid": oid,
}
SCHEMA: dict[str, SampleColumn] = {
    "key.id": own_id,
    "value.database_id": _schema_database,
    "value.name": lambda draw: known(draw, SYSTEM_SCHEMAS, own_name(draw)),
    "value.owner_id": owner,
    "value.privileges": partial(_privileges, mode=_mode_of_namespace),
    "value.oid": oid,
}
ITEM: dict[str, SampleColumn] = {
    "key.id": _item_id,
    "value.schema_id": _item_schema,
    "value.name": own_name,
    "value.kind": _item_kind,
    "value.create_sql": _statement,
    "value.owner_id": owner,
    "value.comment": lambda draw: draw.optional("value.comment", draw.words("comment")),
    "value.column_comments": _column_comments,
    "value.privileges": partial(_privileges, mode=_mode_of_kind),
    "value.oid": oid,
}
COMMENT: dict[str, SampleColumn] = {
    **{
        f"key.{kind}": partial(_comment_on, kind=kind)
        for kind in ("database_id", "schema_id", "item_id", "cluster_id", "role_id", "column")
    },
    "value.comment": lambda draw: draw.text("comment"),
}
