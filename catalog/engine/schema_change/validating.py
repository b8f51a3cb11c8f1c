"""Validation of a constraint over the rows that were there before it was enforced.

Violators are looked for at one state after the close, and looked at again at the newest one in the commit that would
fail the change: a row that was mended meanwhile fails nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from catalog.engine.schema_change.derive import Evidence, has_parent, referred_key
from catalog.engine.schema_change.evaluation import evaluate_batch, evaluate_row
from catalog.engine.schema_change.expressions import expression_text
from catalog.engine.schema_change.layers import LayeredView
from catalog.engine.schema_change.replica import TablesReplica
from catalog.engine.schema_change.row_columns import decode_columns
from catalog.engine.schema_change.row_text import row_key_text
from catalog.engine.schema_change.rows import RowCodec, RowValues
from catalog.engine.schema_change.schema import Element, ElementKind, TableSchema
from catalog.errors.tables import ExpressionFailedError

VIOLATORS_MAX = 1000
"""That are looked at again."""
KEYS_MAX = 10
"""That are named."""


@dataclass(frozen=True, slots=True)
class Violator:
    """A row, or a value that several rows have, that violates a constraint."""

    key: bytes
    """Of the row; of a unique constraint, the prefix that entries share."""


@dataclass(frozen=True, slots=True)
class FoundViolation:
    """A violator at one state, as people read it."""

    keys: tuple[str, ...]


def find_violators(replica: TablesReplica, view: LayeredView, schema: TableSchema, element: Element) -> list[Violator]:
    """Return rows that violate a constraint at the state of a view, so many at most as are looked at again."""
    found: list[Violator] = []
    for key in _violating(replica, view, schema, element):
        found.append(Violator(key))
        if len(found) == VIOLATORS_MAX:
            break
    return found


def violation_at(
    replica: TablesReplica, view: LayeredView, schema: TableSchema, element: Element, violator: Violator
) -> FoundViolation | None:
    """Return the violation of a violator at the state of a view; none if there is none any more."""
    codec = replica.codecs.of(schema)
    if element.kind is ElementKind.UNIQUE:
        support = schema.element_by_id(element.support)
        entries = [] if support is None else Evidence(view).keys_with(support.collection, violator.key)
        if support is None or len(entries) < 2:  # noqa: PLR2004 - one alone is unique
            return None
        return FoundViolation(tuple(row_key_text(schema, codec.key_values(entry, support)) for entry in entries))
    stored = view.get(schema.collection, violator.key)
    if stored is None:
        return None
    row = codec.row(violator.key, stored)
    if not _violates(replica, Evidence(view), schema, element, row):
        return None
    return FoundViolation((row_key_text(schema, row),))


def rule_text(schema: TableSchema, element: Element) -> str:
    """Return the rule that a constraint states."""
    names = ", ".join(schema.names[number] for number in element.columns)
    match element.kind:
        case ElementKind.UNIQUE:
            return f"unique ({names})"
        case ElementKind.NOT_NULL:
            return f"{names} is not NULL"
        case ElementKind.FOREIGN_KEY:
            return f"foreign key ({names})"
        case _:
            return "check" if element.check is None else f"check ({expression_text(element.check, schema.names)})"


def _violating(replica: TablesReplica, view: LayeredView, schema: TableSchema, element: Element) -> Iterator[bytes]:
    codec, evidence = replica.codecs.of(schema), Evidence(view)
    if element.kind is ElementKind.UNIQUE:
        yield from _shared_prefixes(view, codec, element)
        return
    for rows in view.tables(schema.collection):
        violating = _violating_mask(codec, element, rows)
        if violating is None:
            pairs = zip(rows["key"].to_pylist(), rows["value"].to_pylist(), strict=True)
            yield from (
                key for key, value in pairs if _violates(replica, evidence, schema, element, codec.row(key, value))
            )
        else:
            yield from rows["key"].filter(violating).to_pylist()


def _violating_mask(codec: RowCodec, element: Element, rows: pa.Table) -> pa.Array | None:
    """Return a mask of the rows that violate a constraint by themselves; none if they are to be judged one by one."""
    columns = decode_columns(codec, rows["key"], rows["value"])
    if element.kind is ElementKind.NOT_NULL:
        return columns[element.columns[0]].is_null()
    if element.check is None:
        return None
    try:
        return pc.fill_null(pc.invert(evaluate_batch(element.check, columns, rows.num_rows)), fill_value=False)
    except ExpressionFailedError:
        return None


def _violates(
    replica: TablesReplica, evidence: Evidence, schema: TableSchema, element: Element, row: RowValues
) -> bool:
    match element.kind:
        case ElementKind.NOT_NULL:
            return row.get(element.columns[0]) is None
        case ElementKind.FOREIGN_KEY:
            referred = referred_key(replica.codecs, schema, element, row)
            return referred is not None and not has_parent(replica.schemas, evidence, element, referred)
        case _:
            try:
                return element.check is not None and evaluate_row(element.check, row) is False
            except ExpressionFailedError:
                return True


def _shared_prefixes(view: LayeredView, codec: RowCodec, element: Element) -> Iterator[bytes]:
    """Yield the prefixes that more than one entry of an index has; entries with the same prefix are neighbours."""
    support = codec.schema.element_by_id(element.support)
    if support is None:
        return
    before: bytes | None = None
    told: bytes | None = None
    for key, _ in view.rows(support.collection):
        prefix = codec.prefix(support, codec.key_values(key, support))
        if prefix is not None and prefix == before and prefix != told:
            told = prefix
            yield prefix
        before = prefix
