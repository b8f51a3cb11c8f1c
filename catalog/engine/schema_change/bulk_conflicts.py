"""Conflicts of a bulk write: which of its rows are to be looked at again because of what others committed since.

These are rows that others wrote, and rows that rows of others decide about: the same value of a unique constraint, a
row that a foreign key refers to, and rows that refer to one which goes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from catalog.engine.log.protocol import DataFile, FileKind, LogState
from catalog.engine.schema_change import tables_pb2 as pb
from catalog.engine.schema_change.bulk_rows import DerivedRows, duties
from catalog.engine.schema_change.layers import LayeredView, after_prefix
from catalog.engine.schema_change.replica import SCHEMA_CHANGE, TablesReplica, Touched
from catalog.engine.schema_change.rows import RowCodec
from catalog.engine.schema_change.schema import Element, ElementKind, TableSchema


def is_overtaken(replica: TablesReplica, derived: DerivedRows, present: TableSchema) -> bool:
    """Tell if all of a bulk write is to be derived again: files lack something that the schema of now asks of writers.

    So it is too if rows or entries are made anew meanwhile, with a ts that outweighs the files: an index is built, or
    rows are given a column.
    """
    if present.primary.id != derived.schema.primary.id:
        return True
    if not duties(replica.schemas, present) <= duties(derived.schemas, derived.schema):
        return True
    return _read_ts(replica, present) >= derived.ts or any(
        file.ts_max >= derived.ts for file in _reorganised(replica, derived, present)
    )


def _read_ts(replica: TablesReplica, present: TableSchema) -> int:
    """Return the ts of the rows that a change of the table builds something from; 0 if it does not."""
    change = replica.message(SCHEMA_CHANGE, pb.SchemaChangeKey(id=present.change), pb.SchemaChangeValue)
    return change.read_ts if isinstance(change, pb.SchemaChangeValue) else 0


def _reorganised(replica: TablesReplica, derived: DerivedRows, present: TableSchema) -> Iterator[DataFile]:
    """Yield the files that came to a table since, other than those of its writers."""
    since = derived.view.state
    written = {file.path for touched in replica.touched_since(since.version) for file in touched.files}
    for element in present.stores:
        for file in replica.view.files_of(element.collection):
            if file.kind is not FileKind.TAIL and file.path not in since.files and file.path not in written:
                yield file


def touched_keys(replica: TablesReplica, derived: DerivedRows, present: TableSchema) -> set[bytes]:
    """Return the keys of rows that are to be looked at again."""
    found: set[bytes] = set()
    own, watches = derived.own, [*_watches(replica, present)]
    for touched in replica.touched_since(derived.view.state.version):
        found.update(key for key in _keys(replica, touched, present.collection) if key in derived.given)
        for watch in watches:
            for entry in _keys(replica, touched, watch.element.collection):
                found |= watch.keys(derived.codec, own, entry)
    return found


@dataclass(frozen=True, slots=True)
class _Watch:
    """Entries of any writer, which decide about rows whose own entries begin as they do."""

    codec: RowCodec
    element: Element
    """The elements whose entries are watched."""
    count: int
    """Of its columns that matter."""
    own: Element
    """The element of the written table with the same bytes at the beginning of its entries."""

    def keys(self, codec: RowCodec, changes: LayeredView, entry: bytes) -> set[bytes]:
        """Return the keys of changed rows that an entry decides about."""
        prefix = self.codec.prefix(self.element, self.codec.key_values(entry, self.element), self.count)
        if prefix is None:
            return set()
        entries = changes.newest(self.own.collection, prefix, after_prefix(prefix))
        return {codec.key(codec.key_values(own, self.own)) for table in entries for own in table["key"].to_pylist()}


def _watches(replica: TablesReplica, schema: TableSchema) -> Iterator[_Watch]:
    """Yield what decides about rows of a table: its unique constraints, and both sides of foreign keys."""
    codec = replica.codecs.of(schema)
    for unique in schema.enforced(ElementKind.UNIQUE):
        index = schema.element_by_id(unique.support)
        if index is not None:
            yield _Watch(codec, index, len(unique.columns), index)
    for child in replica.schemas.values():
        for key in child.enforced(ElementKind.FOREIGN_KEY):
            parent, index = replica.schemas.get(key.target), child.element_by_id(key.support)
            target = None if parent is None else parent.element_by_id(key.target_element)
            if parent is None or index is None or target is None:
                continue
            count = len(key.columns)
            if child.id == schema.id:
                yield _Watch(replica.codecs.of(parent), target, count, index)
            if parent.id == schema.id:
                yield _Watch(replica.codecs.of(child), index, count, target)


def _keys(replica: TablesReplica, touched: Touched, collection: str) -> Iterator[bytes]:
    """Yield the keys that a commit changed in a collection, those of its files too."""
    yield from touched.keys.get(collection, ())
    files = {file.path: file for file in touched.files if file.collection == collection}
    if files:
        for table in LayeredView(replica.view.cache, LogState(0, files, {})).newest(collection):
            yield from table["key"].to_pylist()
