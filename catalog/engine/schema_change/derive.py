"""Derived changes: the rows, the entries of indexes and the checks that follow from a logical change of a row.

The only place that knows what states mean to writers. Everything is judged under one schema and one view, those of the
state that a commit is made for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from catalog.engine.log.protocol import Row
from catalog.engine.schema_change.evaluation import evaluate_row
from catalog.engine.schema_change.expressions import expression_text
from catalog.engine.schema_change.layers import LayeredView
from catalog.engine.schema_change.row_text import row_key_text
from catalog.engine.schema_change.rows import RowCodec, RowCodecs, RowValues
from catalog.engine.schema_change.schema import Element, ElementKind, State, TableColumn, TableSchema
from catalog.engine.schema_change.types import Value
from catalog.errors.tables import CheckError, ForeignKeyError, NotNullError, UniqueError

Schemas = Mapping[int, TableSchema]
"""Schemas of tables by id."""


@dataclass(frozen=True, slots=True)
class RowImage:
    """One row before and after a commit, with all its values; none if it is not there."""

    schema: TableSchema
    before: RowValues | None
    after: RowValues | None


@dataclass(slots=True)
class Evidence:
    """The rows and entries of a view with changes on top: what constraints are judged by."""

    view: LayeredView
    changed: dict[str, dict[bytes, bytes | None]] = field(default_factory=dict)

    def apply(self, rows: Mapping[str, Iterable[Row]]) -> None:
        """Put changes on top; within one commit an added row outweighs a removed one."""
        for collection, own in rows.items():
            changed = self.changed.setdefault(collection, {})
            for key, value, _, diff in sorted(own, key=lambda row: row[3]):
                changed[key] = value if diff > 0 else None

    def get(self, collection: str, key: bytes) -> bytes | None:
        changed = self.changed.get(collection, {})
        return changed[key] if key in changed else self.view.get(collection, key)

    def keys_with(self, collection: str, prefix: bytes) -> list[bytes]:
        """Return the keys of live rows that begin with a prefix."""
        changed = self.changed.get(collection, {})
        stored = [key for key, _ in self.view.prefixed(collection, prefix) if key not in changed]
        return stored + [key for key, value in changed.items() if value is not None and key.startswith(prefix)]


def completed(schema: TableSchema, row: RowValues, now: datetime) -> dict[int, Value]:
    """Return a new or changed row with the values that follow from others: of computed and of unfinished columns."""
    after = dict(row)
    for column in schema.written:
        if column.up is not None and column.state is not State.PUBLIC:
            after[column.id] = evaluate_row(column.up, after, now)
    return with_computed(schema.written, after, now)


def with_computed(columns: Iterable[TableColumn], row: RowValues, now: datetime) -> dict[int, Value]:
    """Return a row with the values of those columns that are computed from others."""
    after = dict(row)
    for column in columns:
        if column.computed is not None:
            after[column.id] = evaluate_row(column.computed, after, now)
    return after


def with_defaults(schema: TableSchema, row: RowValues, now: datetime) -> dict[int, Value]:
    """Return a new row with the defaults of columns that are not set; NULL that was set stays NULL."""
    after = dict(row)
    for column in schema.written:
        if column.id not in after and column.write_default is not None:
            after[column.id] = evaluate_row(column.write_default, {}, now)
    return after


def derived_rows(codec: RowCodec, images: Iterable[RowImage], ts: int) -> dict[str, list[Row]]:
    """Return the rows of every collection of a table that images of its rows lead to."""
    rows: dict[str, list[Row]] = {}
    schema = codec.schema
    for image in images:
        for element in schema.stores:
            was = None if image.before is None else stored_row(codec, element, image.before)
            becomes = None if image.after is None else stored_row(codec, element, image.after)
            if was == becomes:
                continue
            own = rows.setdefault(element.collection, [])
            if was is not None:  # its removal is written whether or not it is there: it may be built meanwhile
                own.append((*was, ts, -1))
            if becomes is not None:
                own.append((*becomes, ts, 1))
    return rows


def stored_row(codec: RowCodec, element: Element, row: RowValues) -> tuple[bytes, bytes]:
    """Return the key and value of a row in the collection of an element."""
    if element.kind is ElementKind.PRIMARY:
        return codec.key(row, element), codec.value(row, element)
    return codec.entry(element, row)


def check_images(schemas: Schemas, codecs: RowCodecs, evidence: Evidence, images: Iterable[RowImage]) -> None:
    """Raise the first violation of a constraint that images of rows would lead to."""
    for violation in violations(schemas, codecs, evidence, images):
        raise violation


def violations(
    schemas: Schemas, codecs: RowCodecs, evidence: Evidence, images: Iterable[RowImage]
) -> Iterator[NotNullError | CheckError | UniqueError | ForeignKeyError]:
    """Yield an error for every constraint that images of rows break, judged with all of them on top of a view."""
    for image in images:
        if image.after is not None:
            yield from row_violations(image.schema, image.after)
            yield from _unique_violations(codecs.of(image.schema), evidence, image)
            yield from _dangling(schemas, codecs, evidence, image.schema, image.after)
        if image.before is not None:
            yield from _abandoned(schemas, codecs, evidence, image)


def row_violations(schema: TableSchema, row: RowValues) -> Iterator[NotNullError | CheckError]:
    """Yield an error for every constraint that a row breaks by itself."""
    for column in schema.key_columns():
        if row.get(column.id) is None:
            yield NotNullError(schema.name, row_key_text(schema, row), column.name)
    for element in schema.enforced(ElementKind.NOT_NULL):
        if row.get(element.columns[0]) is None:
            yield NotNullError(schema.name, row_key_text(schema, row), schema.names[element.columns[0]])
    for element in schema.enforced(ElementKind.CHECK):
        if element.check is not None and evaluate_row(element.check, row) is False:
            text = expression_text(element.check, schema.names)
            yield CheckError(schema.name, row_key_text(schema, row), element.name, text)


def _unique_violations(codec: RowCodec, evidence: Evidence, image: RowImage) -> Iterator[UniqueError]:
    schema = codec.schema
    for element in schema.enforced(ElementKind.UNIQUE):
        support = schema.element_by_id(element.support)
        if support is None or image.after is None:
            continue
        prefix = codec.prefix(support, image.after)
        if prefix is None or (image.before is not None and codec.prefix(support, image.before) == prefix):
            continue
        found = evidence.keys_with(support.collection, prefix)
        if len(found) > 1:
            yield unique_error(codec, element, support, found)


def unique_error(codec: RowCodec, element: Element, support: Element, entries: Iterable[bytes]) -> UniqueError:
    schema = codec.schema
    keys = tuple(sorted(row_key_text(schema, codec.key_values(entry, support)) for entry in entries))
    names = tuple(schema.names[number] for number in element.columns)
    return UniqueError(schema.name, element.name, names, keys)


def _dangling(
    schemas: Schemas, codecs: RowCodecs, evidence: Evidence, schema: TableSchema, row: RowValues
) -> Iterator[ForeignKeyError]:
    for element in schema.enforced(ElementKind.FOREIGN_KEY):
        referred = referred_key(codecs, schema, element, row)
        if referred is not None and not has_parent(schemas, evidence, element, referred):
            yield foreign_key_error(schemas, schema, element, row)


def referred_key(codecs: RowCodecs, schema: TableSchema, element: Element, row: RowValues) -> bytes | None:
    """Return the key, or the prefix of a unique index, that a foreign key refers to; none if a column is NULL."""
    support = schema.element_by_id(element.support)
    return None if support is None else codecs.of(schema).prefix(support, row, len(element.columns))


def has_parent(schemas: Schemas, evidence: Evidence, element: Element, referred: bytes) -> bool:
    parent = schemas.get(element.target)
    target = None if parent is None else parent.element_by_id(element.target_element)
    if target is None:
        return False
    if target.kind is ElementKind.PRIMARY:
        return evidence.get(target.collection, referred) is not None
    return bool(evidence.keys_with(target.collection, referred))


def foreign_key_error(schemas: Schemas, schema: TableSchema, element: Element, row: RowValues) -> ForeignKeyError:
    target = schemas.get(element.target)
    values = ", ".join(f"{schema.names[number]} {row.get(number)!r}" for number in element.columns)
    name = "a dropped table" if target is None else target.name
    return ForeignKeyError(schema.name, element.name, row_key_text(schema, row), name, values)


def _abandoned(schemas: Schemas, codecs: RowCodecs, evidence: Evidence, image: RowImage) -> Iterator[ForeignKeyError]:
    """Yield an error for every row that refers to one which goes, or whose referred values change."""
    parent, codec = image.schema, codecs.of(image.schema)
    for child in schemas.values():
        for element in child.enforced(ElementKind.FOREIGN_KEY):
            target = parent.element_by_id(element.target_element) if element.target == parent.id else None
            support = child.element_by_id(element.support)
            if target is None or support is None or image.before is None:
                continue
            was = codec.prefix(target, image.before)
            stays = image.after is not None and codec.prefix(target, image.after) == was
            if was is None or stays or has_parent(schemas, evidence, element, was):
                continue
            for entry in evidence.keys_with(support.collection, was)[:1]:
                row = codecs.of(child).key_values(entry, support)
                yield foreign_key_error(schemas, child, element, row)
