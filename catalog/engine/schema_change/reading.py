"""Rows of a table for Spark: flat columns, read by ranges of keys in tasks, or here if they are few.

Importing this loads no pyspark. A part is a range of keys at one ts, which a task reads by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from catalog.engine.codec import bounded_batches
from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.protocol import FileKind
from catalog.engine.schema_change.layers import LayerCache, LayeredView
from catalog.engine.schema_change.row_columns import decode_columns
from catalog.engine.schema_change.rows import RowCodec
from catalog.engine.schema_change.schema import TableSchema
from catalog.engine.spark.collection_frame import fits_locally, local_frame, task_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PART_BYTES = 16 * 2**20
Range = tuple[bytes, bytes | None]
"""The first key of a part, and the first one that is no longer in it; none at the end."""


@dataclass(frozen=True, slots=True)
class TableScan:
    """A table at a ts, whatever is committed meanwhile; picklable, so that tasks read parts of it."""

    uri: str
    options: Mapping[str, str]
    schema: TableSchema
    ts: int

    @property
    def columns(self) -> pa.Schema:
        """Return the columns that Spark sees."""
        return table_columns(self.schema)

    def read(self, part: Range) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a range of keys."""
        log = DeltaLog(self.uri, dict(self.options))
        view = LayeredView(LayerCache(log), log.state(self.ts))
        yield from table_batches(view, self.schema, part)


def table_columns(schema: TableSchema) -> pa.Schema:
    """Return the columns of a table that readers see, in their order."""
    return pa.schema([(column.name, column.type.arrow) for column in schema.readable if not column.hidden])


def table_batches(view: LayeredView, schema: TableSchema, part: Range = (b"", None)) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table at the state of a view, as the columns that readers see."""
    codec, shown = RowCodec(schema), table_columns(schema)
    numbers = [column.id for column in schema.readable if not column.hidden]
    for rows in view.tables(schema.collection, *part):
        for batch in bounded_batches(rows):
            columns = decode_columns(codec, batch["key"], batch["value"])
            yield pa.record_batch([columns[number] for number in numbers], schema=shown)


def ranges(view: LayeredView, collection: str, part_bytes: int = PART_BYTES) -> list[Range]:
    """Divide a collection into ranges of keys, as many as its bytes call for."""
    files = [file for file in view.files_of(collection) if file.kind is not FileKind.TAIL]
    bounds: list[tuple[bytes, int]] = []
    for file in files:
        groups = view.cache.log.groups(file)
        bounds += [(group.first, max(1, file.size // max(1, len(groups)))) for group in groups]
    cuts, held = list[bytes](), 0
    for first, size in sorted(bounds):
        if held + size > part_bytes and held and (not cuts or first > cuts[-1]):
            cuts.append(first)
            held = 0
        held += size
    return list(zip([b"", *cuts], [*cuts, None], strict=True))


def table_frame(
    spark: SparkSession, uri: str, options: Mapping[str, str], schema: TableSchema, view: LayeredView
) -> DataFrame:
    """Return the rows of a table at the state of a view as a DataFrame; few are read now, many by tasks."""
    if fits_locally(view.files_of(schema.collection)):
        return local_frame(spark, table_columns(schema), table_batches(view, schema))
    scan = TableScan(uri, dict(options), schema, view.state.version)
    return task_frame(spark, scan.columns, scan.read, ranges(view, schema.collection))
