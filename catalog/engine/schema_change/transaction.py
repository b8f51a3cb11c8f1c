"""A transaction over tables: reads one view under one schema, buffers logical changes, and commits once.

What it means for rows, indexes and constraints is derived when it is committed, under the schema of the state that it
is committed on. It is refused only if rows that it read were changed, or if what it wants became impossible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from catalog.engine.log.protocol import DataFile, LogState, Operation
from catalog.engine.schema_change.derive import (
    Evidence,
    RowImage,
    check_images,
    completed,
    derived_rows,
    with_computed,
    with_defaults,
)
from catalog.engine.schema_change.evaluation import evaluate_row
from catalog.engine.schema_change.layers import LayeredView, after_prefix
from catalog.engine.schema_change.pending import PendingRow, kept_row, present_schema, translated
from catalog.engine.schema_change.replica import TablesReplica, Touched
from catalog.engine.schema_change.row_text import row_key_text, row_text
from catalog.engine.schema_change.rows import RowCodecs, RowValues
from catalog.engine.schema_change.schema import Element, ElementKind, State, TableSchema, TableState
from catalog.engine.schema_change.store import Draft
from catalog.engine.schema_change.types import Value
from catalog.errors import (
    KeyExistsError,
    NoSuchRowError,
    RetiredError,
    TransactionConflictError,
    TransactionEndedError,
)
from catalog.errors.tables import RefusedChangeError, SchemaChangedError, ValueMismatchError

Values = Mapping[str, Value]


@dataclass(slots=True)
class TableTransaction:
    view: LayeredView
    schemas: Mapping[int, TableSchema]
    codecs: RowCodecs
    table_id: Callable[[str], int]
    """Returns the id of the table of a name."""
    next_row: Callable[[int], int]
    """Returns a new value of the hidden key of a table."""
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    _pending: dict[tuple[int, bytes], PendingRow] = field(default_factory=dict)
    _read: set[tuple[str, bytes]] = field(default_factory=set)
    _prefixes: set[tuple[int, int, bytes]] = field(default_factory=set)
    """Lookups by index: the table, the element and the prefix."""
    _scanned: set[int] = field(default_factory=set)
    _used: set[int] = field(default_factory=set)
    """Tables of which anything was read or written."""
    _has_ended: bool = False

    def get(self, table: str, key: Values) -> dict[str, Value] | None:
        """Return the row of a primary key; none if there is no such row."""
        schema = self._schema("get", table)
        row = self._row(schema, self._key(schema, key))
        return None if row is None else self._named(schema, row)

    def find(self, table: str, **values: Value) -> list[dict[str, Value]]:
        """Return the rows with these values, by an index that begins with their columns."""
        schema = self._schema("find", table)
        wanted = self._values(schema, values)
        element = _index_for(schema, frozenset(wanted))
        count = len([number for number in element.columns if number in wanted])
        prefix = self.codecs.of(schema).prefix(element, wanted, count)
        if prefix is None:
            return []
        self._prefixes.add((schema.id, element.id, prefix))
        found = {key: row for key, row in self._stored_with(schema, element, prefix) if _has(row, wanted)}
        return [self._named(schema, row) for _, row in sorted(found.items(), key=lambda one: one[0])]

    def rows(self, table: str) -> Iterator[dict[str, Value]]:
        """Yield every row of a table, in the order of the stored keys."""
        schema = self._schema("rows", table)
        self._scanned.add(schema.id)
        changed = dict(self._own_rows(schema))
        codec = self.codecs.of(schema)
        with_own = [(key, row) for key, row in changed.items() if row is not None]
        with _conflict_if_retired():
            for key, value in self.view.rows(schema.collection):
                if key not in changed:
                    yield self._named(schema, codec.row(key, value))
        for _, row in sorted(with_own, key=lambda one: one[0]):
            yield self._named(schema, row)

    def insert(self, table: str, row: Values) -> None:
        """Add a row whose key is new; columns that are not set have their defaults."""
        schema = self._schema("insert", table)
        values = self._set_values(schema, row, new=True)
        self._complete_key(schema, values)
        if self._row(schema, values) is not None:
            raise KeyExistsError(schema.name, row_key_text(schema, values))
        self._put(schema, values, values)

    def upsert(self, table: str, row: Values) -> None:
        """Add a row, or set these columns of the row that is there."""
        schema = self._schema("upsert", table)
        values = self._set_values(schema, row, new=True)
        self._complete_key(schema, values)
        self._put(schema, values, values)

    def update(self, table: str, key: Values, values: Values) -> None:
        """Set some columns of the row of a primary key."""
        schema = self._schema("update", table)
        named, wanted = self._key(schema, key), self._set_values(schema, values)
        if self._row(schema, named) is None:
            raise NoSuchRowError(schema.name, row_key_text(schema, named))
        moved = {number: wanted[number] for number in schema.primary.columns if number in wanted}
        if any(named[number] != value for number, value in moved.items()):
            self._move(schema, named, wanted)
            return
        self._put(schema, named, {**named, **wanted})

    def delete(self, table: str, key: Values) -> None:
        """Remove the row of a primary key."""
        schema = self._schema("delete", table)
        named = self._key(schema, key)
        if self._row(schema, named) is None:
            raise NoSuchRowError(schema.name, row_key_text(schema, named))
        self._put(schema, named, None)

    def end(self) -> None:
        """Refuse every further call: the transaction was committed, or nothing of it was."""
        self._has_ended = True

    def draft(self, replica: TablesReplica) -> Draft | None:
        """Return the commit of this transaction for the newest state; refuse what that state does not allow."""
        self._require_unchanged(replica)
        evidence = Evidence(replica.view)
        images: list[RowImage] = []
        rows: dict[str, list[tuple[bytes, bytes, int, int]]] = {}
        for pending in self._pending.values():
            image = self._image(replica, pending)
            if image is None or image.before == image.after:
                continue
            images.append(image)
            codec = replica.codecs.of(image.schema)
            for collection, own in derived_rows(codec, [image], replica.state.version + 1).items():
                rows.setdefault(collection, []).extend(own)
        if not images:
            return None
        evidence.apply(rows)
        check_images(replica.schemas, replica.codecs, evidence, images)
        return Draft(Operation.TRANSACTION, rows)

    @property
    def has_changes(self) -> bool:
        return bool(self._pending)

    def _image(self, replica: TablesReplica, pending: PendingRow) -> RowImage | None:
        """Return a row before and after, under the newest schema."""
        schema = present_schema(replica, pending.schema)
        codec = replica.codecs.of(schema)
        key = codec.key(pending.key)
        stored = replica.view.get(schema.collection, key)
        before = None if stored is None else codec.row(key, stored)
        if pending.values is None:
            return RowImage(schema, before, None)
        values = translated(schema, pending.schema, pending.values, replica.state.version)
        kept = kept_row(replica.view, codec, pending)
        row = with_defaults(schema, values, self.now) if kept is None else {**kept, **values}
        return RowImage(schema, before, completed(schema, row, self.now))

    def _require_unchanged(self, replica: TablesReplica) -> None:
        """Refuse to commit if anything that was read has changed since."""
        since = self.view.state.version
        for number in self._used:
            present_schema(replica, self.schemas[number])
        for number, element, _ in self._prefixes:
            if replica.schemas[number].element_by_id(element) is None:
                table = self.schemas[number].name
                raise SchemaChangedError(table, replica.state.version, "an index that was looked up is gone")
        for touched in replica.touched_since(since):
            if self._depends_on(replica, touched):
                raise TransactionConflictError(since, replica.state.version)

    def _depends_on(self, replica: TablesReplica, touched: Touched) -> bool:
        scanned = {self.schemas[number].collection for number in self._scanned}
        prefixes = [(f"e{element}", prefix) for _, element, prefix in self._prefixes]
        for collection, keys in touched.keys.items():
            if collection in scanned and keys:
                return True
            if any((collection, key) in self._read for key in keys):
                return True
            own = tuple(prefix for name, prefix in prefixes if name == collection)
            if own and any(key.startswith(own) for key in keys):
                return True
        return bool(touched.files) and self._depends_on_files(replica, touched.files, scanned, prefixes)

    def _depends_on_files(
        self,
        replica: TablesReplica,
        files: Iterable[DataFile],
        scanned: AbstractSet[str],
        prefixes: Iterable[tuple[str, bytes]],
    ) -> bool:
        """Tell if files of a bulk write hold rows that this transaction read; they are looked up, not listed."""
        held = LayeredView(replica.view.cache, LogState(0, {file.path: file for file in files}, {}))
        collections = held.collections()
        if collections & scanned:
            return True
        read: dict[str, list[bytes]] = {}
        for collection, key in self._read:
            read.setdefault(collection, []).append(key)
        if any(held.dated(collection, read[collection]) for collection in collections & read.keys()):
            return True
        return any(
            found.num_rows
            for collection, prefix in prefixes
            if collection in collections
            for found in held.newest(collection, prefix, after_prefix(prefix))
        )

    def _schema(self, call: str, table: str) -> TableSchema:
        if self._has_ended:
            raise TransactionEndedError(f"tx.{call}")
        number = self.table_id(table)
        found = self.schemas.get(number)
        if found is None or found.state is not TableState.PUBLIC:
            raise SchemaChangedError(table, self.view.state.version, "it is being created or dropped")
        self._used.add(number)
        return found

    def _key(self, schema: TableSchema, key: Values) -> dict[int, Value]:
        named, wanted = self._values(schema, key), schema.primary.columns
        if {*named} != {*wanted} or any(value is None for value in named.values()):
            names = ", ".join(schema.names[number] for number in wanted)
            raise RefusedChangeError(
                schema.name, f"{row_text(dict(key))} is no key", f"name every column of the primary key: {names}"
            )
        return named

    def _complete_key(self, schema: TableSchema, values: dict[int, Value]) -> None:
        """Give a new row what its key lacks: defaults, and a number if the table has no key of its own."""
        for column in schema.key_columns():
            if column.hidden and column.id not in values:
                values[column.id] = self.next_row(schema.id)
            elif column.id not in values and column.write_default is not None:
                values[column.id] = evaluate_row(column.write_default, {}, self.now)

    def _set_values(self, schema: TableSchema, named: Values, *, new: bool = False) -> dict[int, Value]:
        """Return the values that a row is to have; refuse those of computed columns, and a new row without any."""
        values = self._values(schema, named)
        for column in schema.readable:
            if column.id in values and column.computed is not None:
                raise RefusedChangeError(
                    schema.name, f"{column.name} is computed from other columns", "leave it out of the row"
                )
        if new and not values and not any(column.hidden for column in schema.key_columns()):
            raise RefusedChangeError(schema.name, "the row is empty", "set at least its primary key")
        return values

    def _values(self, schema: TableSchema, named: Values) -> dict[int, Value]:
        """Return values by the ids of columns, in the form that the types have; refuse what does not fit."""
        values: dict[int, Value] = {}
        for name, value in named.items():
            column = schema.column(name)
            try:
                values[column.id] = None if value is None else column.type.check(value)
            except ValueError as error:
                raise ValueMismatchError(schema.name, column.name, str(error), column.type.text) from error
        return values

    def _row(self, schema: TableSchema, key: RowValues) -> dict[int, Value] | None:
        """Return the row of a key as this transaction sees it."""
        codec = self.codecs.of(schema)
        encoded = codec.key(key)
        self._read.add((schema.collection, encoded))
        own = self._pending.get((schema.id, encoded))
        with _conflict_if_retired():
            if own is not None:
                return self._changed(own)
            stored = self.view.get(schema.collection, encoded)
        return None if stored is None else codec.row(encoded, stored)

    def _changed(self, own: PendingRow) -> dict[int, Value] | None:
        """Return a row as this transaction leaves it; none if it removes it."""
        if own.values is None:
            return None
        kept = kept_row(self.view, self.codecs.of(own.schema), own)
        row = with_defaults(own.schema, own.values, self.now) if kept is None else {**kept, **own.values}
        return with_computed(own.schema.readable, row, self.now)

    def _own_rows(self, schema: TableSchema) -> Iterator[tuple[bytes, dict[int, Value] | None]]:
        for (table, key), own in self._pending.items():
            if table == schema.id:
                yield key, self._changed(own)

    def _stored_with(
        self, schema: TableSchema, element: Element, prefix: bytes
    ) -> Iterator[tuple[bytes, dict[int, Value]]]:
        """Yield the rows that an index leads to, and the changed ones of this transaction."""
        codec, changed = self.codecs.of(schema), dict(self._own_rows(schema))
        with _conflict_if_retired():
            entries = [key for key, _ in self.view.prefixed(element.collection, prefix)]
            for entry in entries:
                key = codec.key(codec.key_values(entry, element))
                stored = None if key in changed else self.view.get(schema.collection, key)
                if stored is not None:
                    yield key, codec.row(key, stored)
        yield from ((key, row) for key, row in changed.items() if row is not None)

    def _move(self, schema: TableSchema, key: RowValues, wanted: RowValues) -> None:
        """Give a row another primary key: the row of the old one goes, and one of the new one comes."""
        new_key = {number: wanted.get(number, key[number]) for number in schema.primary.columns}
        if self._row(schema, new_key) is not None:
            raise KeyExistsError(schema.name, row_key_text(schema, new_key))
        codec = self.codecs.of(schema)
        own = self._pending.get((schema.id, codec.key(key))) or PendingRow(schema, key, {})
        values = {**(own.values or {}), **wanted, **new_key}
        self._put(schema, key, None)
        origin = None if own.is_new else own.origin or key
        self._pending[schema.id, codec.key(new_key)] = PendingRow(schema, new_key, values, own.is_new, origin)

    def _put(self, schema: TableSchema, key: RowValues, values: dict[int, Value] | None) -> None:
        named = {number: key.get(number) for number in schema.primary.columns}
        place = schema.id, self.codecs.of(schema).key(named)
        self._read.add((schema.collection, place[1]))
        own = self._pending.get(place)
        if own is None:
            self._pending[place] = PendingRow(schema, named, values)
        elif own.values is None or values is None:
            self._pending[place] = PendingRow(schema, named, values, is_new=True)
        else:
            self._pending[place] = replace(own, values={**own.values, **values})

    def _named(self, schema: TableSchema, row: RowValues) -> dict[str, Value]:
        return {column.name: row.get(column.id) for column in schema.readable if not column.hidden}


def _index_for(schema: TableSchema, wanted: frozenset[int]) -> Element:
    """Return the element with the longest run of wanted columns at its beginning."""

    def run(element: Element) -> int:
        return next((at for at, number in enumerate(element.columns) if number not in wanted), len(element.columns))

    usable = [
        element
        for element in schema.stores
        if element.state is State.PUBLIC and (element.built or element.kind is ElementKind.PRIMARY) and run(element)
    ]
    if not usable:
        names = ", ".join(schema.names[number] for number in sorted(wanted))
        raise RefusedChangeError(
            schema.name,
            f"no index begins with {names}",
            "create one, or read all rows of the table",
        )
    return max(usable, key=run)


def _has(row: RowValues, wanted: RowValues) -> bool:
    return all(row.get(number) == value and value is not None for number, value in wanted.items())


class _conflict_if_retired:  # noqa: N801 - used as a statement
    """Raise a conflict for rows that are retired: the same transaction can read them again at a newer ts."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, RetiredError):
            raise TransactionConflictError(error.version, error.earliest) from error
