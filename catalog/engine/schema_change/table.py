"""One table of an environment: its rows now, at a ts and as they change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from catalog.engine.log.protocol import FileKind
from catalog.engine.schema_change.bulk_verb import Verb
from catalog.engine.schema_change.replica import schemas_of
from catalog.engine.schema_change.rows import RowCodec
from catalog.engine.schema_change.schema import TableSchema
from catalog.engine.schema_change.types import Value
from catalog.errors.tables import SchemaChangedError, UnknownTableError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from catalog.engine.schema_change.layers import LayeredView
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
        from catalog.engine.schema_change.frames import arrow_frame, fitted, rows_of  # noqa: PLC0415

        self.tables.refresh()
        schema = self.schema
        needed = schema.key_columns()
        columns = fitted(schema, arrow_frame(frame), needed)
        if verb is Verb.DELETE:
            columns = {column.id: columns[column.id] for column in needed}
        rows = rows_of(schema, columns)
        for column in needed:
            if column.hidden and verb is Verb.APPEND:
                for row in rows:
                    row[column.id] = self.tables.next_row(self.id)
        return write_rows(self.tables, self.id, verb, frozenset(columns), rows)

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
            for file in commit.adds:
                if file.collection == present.collection and file.kind is FileKind.TAIL and file.ts_min == ts:
                    for key, value, _, diff in sorted(store.log.rows(file), key=lambda row: (row[0], row[3])):
                        row = codec.row(key, value)
                        yield {column.name: row.get(number) for number, column in columns.items()}, ts, diff


def _is_same(schema: TableSchema, number: int, kind: object) -> bool:
    column = schema.column_by_id(number)
    return column is not None and column.type == kind


def _named(schema: TableSchema, row: dict[int, Value]) -> dict[str, Value]:
    return {column.name: row.get(column.id) for column in schema.readable if not column.hidden}
