"""One table of an environment: its rows now, at a ts and as they change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from catalog.engine.log.protocol import Commit, FileKind, Log, LogState, Operation
from catalog.engine.schema_change.bulk_verb import Verb
from catalog.engine.schema_change.layers import LayeredView
from catalog.engine.schema_change.replica import schemas_of
from catalog.engine.schema_change.rows import RowCodec
from catalog.engine.schema_change.schema import TableSchema
from catalog.engine.schema_change.types import Value
from catalog.errors.tables import SchemaChangedError, UnfitFrameError, UnknownTableError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from catalog.engine.schema_change.tables import Tables


@dataclass(frozen=True, slots=True)
class Table:
    """A table by its id: a handle goes on after a rename.

    >>> for row in catalog.tables["orders"].rows():
    ...     print(row["amount"])
    """

    tables: Tables = field(repr=False)
    id: int

    @property
    def schema(self) -> TableSchema:
        """The newest schema that this process has seen."""
        return self.tables.schema_of(self.id)

    @property
    def name(self) -> str:
        return self.schema.name

    def rows(self, as_of: int | None = None) -> Iterator[dict[str, Value]]:
        """Yield the rows of now, or of a ts, with the columns that the table had then, in the order of stored keys."""
        view, schema = self._at(as_of)
        codec = RowCodec(schema)
        for key, value in view.rows(schema.collection):
            yield _named(schema, codec.row(key, value))

    def arrow(self, as_of: int | None = None) -> pa.Table:
        """Return the rows of now, or of a ts, as an Arrow table."""
        import pyarrow as pa  # noqa: PLC0415 - callers that want rows need no more of it

        from catalog.engine.schema_change.reading import table_batches, table_columns  # noqa: PLC0415

        view, schema = self._at(as_of)
        return pa.Table.from_batches(table_batches(view, schema), table_columns(schema))

    def dataframe(self, as_of: int | None = None, spark: SparkSession | None = None) -> DataFrame:
        """Return the rows as a Spark DataFrame of flat columns, at a ts; by default at the present one."""
        from catalog.engine.schema_change.reading import table_frame  # noqa: PLC0415 - other calls need no pyspark
        from catalog.engine.spark.java_errors import java_errors  # noqa: PLC0415
        from catalog.engine.spark.session import local_session  # noqa: PLC0415

        view, schema = self._at(as_of)
        with java_errors():
            session, log = spark or local_session(), self.tables.store.log
            return table_frame(session, log.uri, getattr(log, "options", {}), schema, view)

    def _at(self, as_of: int | None) -> tuple[LayeredView, TableSchema]:
        """Return the rows of a ts, by default of now, and the schema of then."""
        if as_of is None:
            self.tables.refresh()
        view = self.tables.store.view_at(as_of)
        schema = schemas_of(view).get(self.id)
        if schema is None:
            raise UnknownTableError(self.name, ())
        return view, schema

    def append(self, frame: Any) -> int:  # noqa: ANN401 - of several libraries
        """Add the rows of a frame in one commit; return its ts. Their keys must be new."""
        return self._write(Verb.APPEND, frame)

    def upsert(self, frame: Any) -> int:  # noqa: ANN401
        """Add the rows of a frame, or set its columns in those that are there, in one commit; return its ts."""
        return self._write(Verb.UPSERT, frame)

    def delete(self, frame: Any) -> int:  # noqa: ANN401
        """Remove the rows whose keys a frame has, in one commit; return its ts."""
        return self._write(Verb.DELETE, frame)

    def _write(self, verb: Verb, frame: Any) -> int:  # noqa: ANN401
        from catalog.engine.schema_change.bulk import write_rows  # noqa: PLC0415 - loads what readers do not need
        from catalog.engine.schema_change.frames import frame_rows  # noqa: PLC0415

        self.tables.refresh()
        schema = self.schema
        hidden = [column.id for column in schema.key_columns() if column.hidden]
        if hidden and verb is Verb.DELETE:
            raise UnfitFrameError(schema.name, "its rows have no primary key to be named by")
        needed = [c for c in schema.key_columns() if not c.hidden and (verb is Verb.DELETE or c.write_default is None)]
        rows = frame_rows(schema, frame, needed)
        if hidden and rows:
            first = self.tables.take_rows(self.id, len(rows))
            rows = [{**row, number: first + at} for number in hidden for at, row in enumerate(rows)]
        return write_rows(self.tables, schema, verb, rows)

    def subscribe(self, since: int) -> Iterator[tuple[dict[str, Value], int, int]]:
        """Yield every change of a row after a ts up to the newest, in order: the row, the ts, and +1 or -1.

        The columns are those of `since`. A column of them that was dropped, or has another type, ends the feed with an
        error that names the ts to begin again from. Values that a new column gave to old rows are no changes.
        """
        store = self.tables.store
        newest = store.refresh()
        schema = schemas_of(store.view_at(since)).get(self.id)
        if schema is None:
            raise UnknownTableError(self.name, ())
        columns = {column.id: column for column in schema.readable if not column.hidden}
        for ts in range(since + 1, newest + 1):
            commit = store.log.commit(ts)
            view = store.view_at(ts)
            present = schemas_of(view).get(self.id)
            if present is None:
                raise SchemaChangedError(schema.name, ts, "it was dropped")
            if gone := [c.name for c in columns.values() if not _is_same(present, c.id, c.type)]:
                raise SchemaChangedError(schema.name, ts, f"{', '.join(gone)} was dropped or has another type")
            codec = store.replica.codecs.of(present)
            for key, value, diff in _changes(store.log, commit, store.view_at(ts - 1), view, present.collection):
                row = codec.row(key, value)
                yield {column.name: row.get(number) for number, column in columns.items()}, ts, diff


def _changes(
    log: Log, commit: Commit, before: LayeredView, after: LayeredView, collection: str
) -> Iterator[tuple[bytes, bytes, int]]:
    """Yield what a commit did to the rows of a collection, in the order of keys: key, value, and +1 or -1."""
    adds = [file for file in commit.adds if file.collection == collection]
    if commit.operation is Operation.LOAD:  # its files hold no rows that were replaced
        for table in LayeredView(after.cache, LogState(commit.version, {file.path: file for file in adds}, {})).newest(
            collection
        ):
            keys = table["key"].to_pylist()
            was, becomes = before.dated(collection, keys), after.dated(collection, keys)
            for key in keys:
                old, new = (found.get(key, (0, None))[1] for found in (was, becomes))
                if old is not None and old != new:
                    yield key, old, -1
                if new is not None and old != new:
                    yield key, new, 1
        return
    tails = [file for file in adds if file.kind is FileKind.TAIL and file.ts_min == commit.version]
    for file in tails:
        for key, value, _, diff in sorted(log.rows(file), key=lambda row: (row[0], row[3])):
            yield key, value, diff


def _is_same(schema: TableSchema, number: int, kind: object) -> bool:
    column = schema.column_by_id(number)
    return column is not None and column.type == kind


def _named(schema: TableSchema, row: dict[int, Value]) -> dict[str, Value]:
    return {column.name: row.get(column.id) for column in schema.readable if not column.hidden}
