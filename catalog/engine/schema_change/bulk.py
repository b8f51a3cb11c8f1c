"""Bulk writes: many rows of one table in one commit, whatever is written or changed meanwhile.

A bulk write pins the version of the schema that it derives its files under, by a row of its own. The files are dated
at the ts of that row, where no other row changed: whatever others wrote before has a smaller ts, whatever they write
meanwhile a greater one. Rows that were touched meanwhile are derived again when it commits, and they alone.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from catalog.engine.log.data_files import rows_table
from catalog.engine.log.protocol import DataFile, FileKind, LogState, Operation, Row
from catalog.engine.schema_change import tables_pb2 as pb
from catalog.engine.schema_change.bulk_verb import Verb
from catalog.engine.schema_change.derive import (
    Evidence,
    RowImage,
    check_images,
    completed,
    derived_rows,
    stored_row,
    with_defaults,
)
from catalog.engine.schema_change.layers import LayeredView
from catalog.engine.schema_change.replica import BULK_WRITE, TablesReplica
from catalog.engine.schema_change.row_text import row_key_text
from catalog.engine.schema_change.rows import RowCodec, RowValues
from catalog.engine.schema_change.schema import Element, ElementKind, TableSchema, TableState
from catalog.engine.schema_change.signs import LifeThread
from catalog.engine.schema_change.store import Draft, put
from catalog.engine.schema_change.types import Value
from catalog.errors import KeyExistsError
from catalog.errors.tables import BulkWriteExpiredError, SchemaChangedError, UnfitFrameError

if TYPE_CHECKING:
    from catalog.engine.schema_change.tables import Tables

_LAYER_ROWS = 200_000


@dataclass(slots=True)
class BulkWrite:
    """A bulk write under way, from its pin to its commit."""

    tables: Tables
    table: int
    verb: Verb
    columns: frozenset[int]
    """The columns that the frame sets."""
    id: str = field(default_factory=lambda: f"bulk-{uuid.uuid4().hex}")
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    schema: TableSchema = field(init=False)
    """As it was pinned."""
    read_ts: int = 0
    files: dict[str, tuple[DataFile, ...]] = field(default_factory=dict)
    """The layers that were written, by collection."""
    rows: int = 0

    def pin(self) -> None:
        """Register at the newest version of the schema; rows are read as of this very commit, which changes none."""
        store, name = self.tables.store, self.tables.owner_name

        def draft(replica: TablesReplica) -> Draft:
            self.schema = _present(replica, self.table, self.tables.schema_of(self.table).primary.id)
            value = pb.BulkWriteValue(
                pins=[pb.Pin(table=self.table, version=self.schema.cur)],
                read_ts=replica.state.version + 1,
                who=name,
                began_ms=replica.log.now_ms(),
            )
            return Draft(rows={BULK_WRITE: put(replica, BULK_WRITE, pb.BulkWriteKey(id=self.id), value)})

        self.read_ts = store.commit(draft)
        self.files, self.rows = {}, 0

    def release(self) -> None:
        """Remove the registration of a write that will not be committed."""

        def draft(replica: TablesReplica) -> Draft | None:
            rows = put(replica, BULK_WRITE, pb.BulkWriteKey(id=self.id), None)
            return Draft(rows={BULK_WRITE: rows}) if rows else None

        self.tables.store.commit(draft)

    @property
    def view(self) -> LayeredView:
        """Return the rows that it reads."""
        return self.tables.store.view_at(self.read_ts)

    def derive(self, rows: Iterable[RowValues]) -> None:
        """Write the layers of some of its rows, each key once; row constraints are checked as they come."""
        codec, log = self.tables.store.replica.codecs.of(self.schema), self.tables.store.log
        given = _by_key(self.schema, codec, rows)
        derived: dict[str, dict[bytes, Row]] = {}
        for image in self._images(self.view, codec, given):
            for collection, own in derived_rows(codec, [image], self.read_ts).items():
                newest = derived.setdefault(collection, {})
                for row in sorted(own, key=lambda row: row[3]):  # an added one outweighs a removed one
                    newest[row[0]] = row
        fence = self.tables.store.state.fence
        for collection, newest in derived.items():
            ordered = [newest[key] for key in sorted(newest)]
            made = tuple(
                log.write(collection, FileKind.LAYER, fence, rows_table(ordered[at : at + _LAYER_ROWS]))
                for at in range(0, len(ordered), _LAYER_ROWS)
            )
            self.files[collection] = (*self.files.get(collection, ()), *made)
        self.rows += len(given)

    def check(self) -> None:
        """Check every constraint over all that was written, at the ts that was read."""
        store = self.tables.store
        own, after = self._own_view(), self._view_after(self.view)
        images = self._own_images(own, self.view)
        check_images(_schemas(store.replica, self.schema), store.replica.codecs, Evidence(after), images)

    def draft(self, replica: TablesReplica) -> Draft:
        """Return the commit for the newest state; rows that others touched since are derived and checked again."""
        if replica.message(BULK_WRITE, pb.BulkWriteKey(id=self.id), pb.BulkWriteValue) is None:
            raise BulkWriteExpiredError(self.schema.name, self.id)
        present = _present(replica, self.table, self.schema.primary.id)
        self._require_columns(present, replica.state.version)
        overtaken = not present.min <= self.schema.cur <= present.cur
        files = self._files_for(replica, present, overtaken=overtaken)
        touched = self._touched(replica, present, everything=overtaken)
        rows = self._rebased(replica, present, touched)
        evidence = Evidence(_with_files(replica.view, files.values()))
        evidence.apply(rows)
        images = [self._image_at(replica, present, key) for key in touched]
        schemas = {**replica.schemas, present.id: present}
        check_images(schemas, replica.codecs, evidence, [image for image in images if image is not None])
        rows[BULK_WRITE] = put(replica, BULK_WRITE, pb.BulkWriteKey(id=self.id), None)
        adds = tuple(file for own in files.values() for file in own)
        return Draft(Operation.LOAD, rows, adds, details={"rows": str(self.rows), "verb": self.verb.value})

    def _images(self, view: LayeredView, codec: RowCodec, given: Mapping[bytes, RowValues]) -> Iterator[RowImage]:
        found = view.dated(codec.schema.collection, given.keys())
        for key, values in given.items():
            stored = found.get(key, (0, None))[1]
            image = self._image(codec, values, None if stored is None else codec.row(key, stored))
            if image is not None:
                yield image

    def _image(self, codec: RowCodec, values: RowValues, before: dict[int, Value] | None) -> RowImage | None:
        """Return a row before and after; none if nothing is to be done for it."""
        schema = codec.schema
        if self.verb is Verb.DELETE:
            return None if before is None else RowImage(schema, before, None)
        if self.verb is Verb.APPEND and before is not None:
            raise KeyExistsError(schema.name, row_key_text(schema, values))
        row = with_defaults(schema, values, self.now) if before is None else {**before, **values}
        return RowImage(schema, before, completed(schema, row, self.now))

    def _own_view(self) -> LayeredView:
        """Return its own changes as a view: what it writes, and what it removes."""
        files = {file.path: file for own in self.files.values() for file in own}
        return LayeredView(self.tables.store.view.cache, LogState(self.read_ts, files, {}))

    def _view_after(self, view: LayeredView) -> LayeredView:
        return _with_files(view, self.files.values())

    def _own_images(self, own: LayeredView, before: LayeredView) -> Iterator[RowImage]:
        """Yield every row that it changes, before and after."""
        codec = self.tables.store.replica.codecs.of(self.schema)
        collection = self.schema.collection
        for table in own.newest(collection):
            keys = table["key"].to_pylist()
            known = before.dated(collection, keys)
            for key, value, diff in zip(keys, table["value"].to_pylist(), table["diff"].to_pylist(), strict=True):
                stored = known.get(key, (0, None))[1]
                was = None if stored is None else codec.row(key, stored)
                yield RowImage(self.schema, was, codec.row(key, value) if diff > 0 else None)

    def _require_columns(self, present: TableSchema, ts: int) -> None:
        """Refuse if a column that every row needs has come, or one that the frame sets has gone."""
        known = {column.id for column in self.schema.columns}
        if gone := self.columns - {column.id for column in present.readable}:
            names = ", ".join(self.schema.names[number] for number in sorted(gone))
            raise SchemaChangedError(present.name, ts, f"{names} was dropped or has another type")
        derived = [c for c in present.written if c.id not in known and (c.up is not None or c.computed is not None)]
        if derived and self.verb is not Verb.DELETE:
            raise SchemaChangedError(present.name, ts, f"{derived[0].name} is computed for every row")

    def _files_for(
        self, replica: TablesReplica, present: TableSchema, *, overtaken: bool
    ) -> dict[str, tuple[DataFile, ...]]:
        """Return the files of elements that count, with those of elements that came after it was pinned."""
        counted = {element.collection: element for element in present.stores}
        files = {collection: own for collection, own in self.files.items() if collection in counted}
        known = {element.collection for element in self.schema.stores}
        if overtaken:
            for collection, element in counted.items():
                if collection not in known:
                    files[collection] = self._lacking(replica, present, element)
        return files

    def _lacking(self, replica: TablesReplica, present: TableSchema, element: Element) -> tuple[DataFile, ...]:
        """Write the entries of an element that came after it was pinned, from its own changes."""
        codec, newest = replica.codecs.of(present), dict[bytes, Row]()
        for image in self._own_images(self._own_view(), self.view):
            for row, diff in ((image.before, -1), (image.after, 1)):
                if row is not None:
                    key, value = stored_row(codec, element, row)
                    newest[key] = (key, value, self.read_ts, diff)
        ordered = [newest[key] for key in sorted(newest)]
        if not ordered:
            return ()
        return (
            self.tables.store.log.write(element.collection, FileKind.LAYER, replica.state.fence, rows_table(ordered)),
        )

    def _touched(self, replica: TablesReplica, present: TableSchema, *, everything: bool) -> list[bytes]:
        """Return the keys of its rows that others may have touched since it read."""
        own, collection = self._own_view(), present.collection
        if everything or any(touched.files for touched in replica.touched_since(self.read_ts)):
            return [key for table in own.newest(collection) for key in table["key"].to_pylist()]
        found: set[bytes] = set()
        for touched in replica.touched_since(self.read_ts):
            found |= own.dated(collection, touched.keys.get(collection, ())).keys()
            for element, target in _judged(replica, present):
                for key in touched.keys.get(target, ()):
                    found |= self._keys_beside(replica, own, present, element, key)
        return sorted(found)

    def _keys_beside(
        self, replica: TablesReplica, own: LayeredView, present: TableSchema, element: Element, entry: bytes
    ) -> set[bytes]:
        """Return the keys of its rows whose entries share what a touched entry is about."""
        codec = replica.codecs.of(present)
        index = present.element_by_id(element.support)
        if index is None:
            return set()
        is_unique = element.kind is ElementKind.UNIQUE
        prefix = codec.prefix(index, codec.key_values(entry, index)) if is_unique else entry
        if prefix is None:
            return set()
        keys = (codec.key_values(key, index) for key, _ in own.prefixed(index.collection, prefix))
        return {codec.key(values) for values in keys}

    def _image_at(self, replica: TablesReplica, present: TableSchema, key: bytes) -> RowImage | None:
        """Return one of its rows before and after at the newest state."""
        codec, known = replica.codecs.of(present), replica.codecs.of(self.schema)
        change = self._own_view().dated(self.schema.collection, [key]).get(key)
        if change is None:
            return None
        stored = replica.view.get(present.collection, key)
        before = None if stored is None else codec.row(key, stored)
        if change[1] is None:
            return None if before is None else RowImage(present, before, None)
        row = known.row(key, change[1])
        was = self.view.get(self.schema.collection, key)
        values = (
            row
            if was is None and before is None
            else {n: row.get(n) for n in self.columns | {*present.primary.columns}}
        )
        return self._image(codec, values, before)

    def _rebased(self, replica: TablesReplica, present: TableSchema, touched: Iterable[bytes]) -> dict[str, list[Row]]:
        """Return the tail rows of rows that were touched: as they become now, and not what was derived for them."""
        codec, ts = replica.codecs.of(present), replica.state.version + 1
        own, rows = self._own_view(), dict[str, list[Row]]()
        for key in touched:
            change = own.dated(self.schema.collection, [key]).get(key)
            image = self._image_at(replica, present, key)
            derived = replica.codecs.of(self.schema).row(key, change[1]) if change and change[1] is not None else None
            after = None if image is None else image.after
            for element in present.stores:
                made = (
                    None if derived is None else stored_row(codec, element, {**derived, **_missing(present, derived)})
                )
                was = None if image is None or image.before is None else stored_row(codec, element, image.before)
                becomes = None if after is None else stored_row(codec, element, after)
                gone = {
                    old[0]: old for old in (made, was) if old is not None and (becomes is None or old[0] != becomes[0])
                }
                found = rows.setdefault(element.collection, [])
                found += [(*old, ts, -1) for old in gone.values()]
                if becomes is not None:
                    found.append((*becomes, ts, 1))
        return {collection: own_rows for collection, own_rows in rows.items() if own_rows}


def write_rows(tables: Tables, table: int, verb: Verb, columns: frozenset[int], rows: list[dict[int, Value]]) -> int:
    """Write rows in one commit; return its ts. A change of the schema that it cannot follow lets it begin again."""
    while True:
        write = BulkWrite(tables, table, verb, columns)
        with LifeThread(tables.signs, write.id):
            write.pin()
            try:
                write.derive(rows)
                write.check()
                return tables.store.commit(write.draft)
            except SchemaChangedError:
                write.release()
                if columns - {column.id for column in tables.schema_of(table).readable}:
                    raise
            except BaseException:
                write.release()
                raise


def _by_key(schema: TableSchema, codec: RowCodec, rows: Iterable[RowValues]) -> dict[bytes, RowValues]:
    """Return rows by their keys; refuse a key that is there twice, or has a NULL."""
    given: dict[bytes, RowValues] = {}
    for row in rows:
        if any(row.get(number) is None for number in schema.primary.columns):
            raise UnfitFrameError(schema.name, f"the key {row_key_text(schema, row)} has a NULL")
        key = codec.key(row)
        if key in given:
            raise UnfitFrameError(schema.name, f"the key {row_key_text(schema, row)} is there twice")
        given[key] = row
    return given


def _present(replica: TablesReplica, table: int, primary: int) -> TableSchema:
    found = replica.schemas.get(table)
    if found is None or found.state is not TableState.PUBLIC:
        raise SchemaChangedError(str(table), replica.state.version, "it is being created or dropped")
    if found.primary.id != primary:
        raise SchemaChangedError(found.name, replica.state.version, "it has another primary key")
    found.require_known_features()
    return found


def _judged(replica: TablesReplica, schema: TableSchema) -> Iterator[tuple[Element, str]]:
    """Yield the constraints of a table that rows of others decide, each with the collection that they are in."""
    for element in schema.enforced(ElementKind.UNIQUE):
        yield element, f"e{element.support}"
    for element in schema.enforced(ElementKind.FOREIGN_KEY):
        parent = replica.schemas.get(element.target)
        if parent is not None:
            yield element, f"e{element.target_element}"


def _schemas(replica: TablesReplica, pinned: TableSchema) -> dict[int, TableSchema]:
    return {**replica.schemas, pinned.id: pinned}


def _missing(present: TableSchema, row: RowValues) -> dict[int, Value]:
    """Return the values of columns that came after a row was derived."""
    return {column.id: column.initial_default for column in present.columns if column.id not in row}


def _with_files(view: LayeredView, files: Iterable[tuple[DataFile, ...]]) -> LayeredView:
    """Return a view with uncommitted files on top."""
    added = {file.path: file for own in files for file in own}
    state = replace(view.state, files={**view.state.files, **added}, _digest=None)
    return LayeredView(view.cache, state, dict(view.tails))
