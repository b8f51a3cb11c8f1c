"""The collections that a frame action reads, as DataFrames of verified rows; each is read once.

A row with bytes that its types do not repeat would lose them on its way through a frame, so every stored row is
verified where it is read: few rows by this process, many by tasks that report what they found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING

import pyarrow as pa

from catalog.actions import Frame
from catalog.engine.base.project import load_project
from catalog.engine.codec import bounded_batches, to_spark
from catalog.engine.log.protocol import DataFile, FileKind, Log
from catalog.engine.migrate.rewrite_task import TaskContext
from catalog.engine.migrate.row_errors import BadRows
from catalog.engine.migrate.row_types import RowColumns, registry_of
from catalog.engine.migrate.row_verifier import EncodedRows, RowVerifier
from catalog.engine.migrate.step_result import StepContext
from catalog.engine.migrate.violations import RowRule
from catalog.engine.spark.collection_frame import fits_locally, local_frame, task_frame
from catalog.engine.spark.datasource.scan import TailKeys, row_schema
from catalog.engine.spark.jobs import JOB_COLUMNS, catalog_errors_as_rows, output_rows
from catalog.engine.stash.registry import Collection
from catalog.errors import UnwrittenStepError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PIECE_BYTES = 16 * 2**20
"""Before compression: enough to outweigh the start of a task, little enough for every core to have some."""
_MERGED = ("key", "value", "ts", "diff")


@dataclass(slots=True)
class FrameRead:
    """The report of reading files for a frame."""

    collection: str
    entries: int = 0
    """Stored rows, those that the tail adds and takes away included."""
    bad_stored: BadRows = field(default_factory=BadRows)
    seconds: float = 0.0
    sampled_s: float = 0.0
    """Of these, the time of protobuf's own reading and writing."""


@dataclass(slots=True)
class FrameInput:
    """The frames that an action gets, and what came up while their rows were read."""

    frames: dict[str, DataFrame] = field(default_factory=dict)
    reads: list[FrameRead] = field(default_factory=list)
    """Of what this process read."""
    reports: list[DataFrame] = field(default_factory=list)
    """Frames of what tasks report, as rows of a job."""

    @property
    def has_bad_rows(self) -> bool:
        """Tell if this process read rows that break a rule."""
        return any(read.bad_stored for read in self.reads)


def reads_few_rows(step: StepContext, action: Frame) -> bool:
    """Tell if an action reads so few rows that this process reads them all."""
    return fits_locally(file for name in action.reads for file in step.state.files_of(name))


def read_input(step: StepContext, context: TaskContext, action: Frame, held: ExitStack) -> FrameInput:
    """Return every collection that an action reads, at the state of the step; `held` frees what Spark keeps of them."""
    if context.old < step.project.first_proto:
        raise UnwrittenStepError(context.step, "its frame reads rows from before protobuf, which have no columns")
    session, made = step.jobs.session, FrameInput()
    for name in action.reads:
        files = step.state.files_of(name)
        tail = TailKeys.of(step.log, [file for file in files if file.kind is FileKind.TAIL])
        reading = _Reading(context, name, tail)
        if fits_locally(files):
            read = FrameRead(name)
            pieces = [_Piece(file) for file in files]
            made.frames[name] = local_frame(session, row_schema(reading.old), reading.verified(pieces, read))
            made.reads.append(read)
        else:
            # Persisted, because every output that joins it would read it again.
            stored = task_frame(session, reading.mixed_schema, reading.mixed, _pieces(step.log, files)).persist()
            held.callback(stored.unpersist)
            made.frames[name] = stored.where("bucket is null").select("key", "value")
            made.reports.append(stored.where("bucket is not null").select(*JOB_COLUMNS.names))
    return made


def _pieces(log: Log, files: Iterable[DataFile]) -> list[_Piece]:
    """Divide files into pieces for tasks, since one file may hold all the rows there are."""
    pieces: list[_Piece] = []
    for file in files:
        sizes = [group.size for group in log.groups(file)]
        low = 0
        for high in range(1, len(sizes) + 1):
            if high == len(sizes) or sum(sizes[low : high + 1]) > PIECE_BYTES:
                pieces.append(_Piece(file, tuple(range(low, high))))
                low = high
    return pieces


@dataclass(frozen=True, slots=True)
class _Piece:
    """A file, or some row groups of it."""

    file: DataFile
    groups: tuple[int, ...] | None = None
    """None for all."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """The reading of one collection; it is pickled to every process that reads a part."""

    context: TaskContext
    collection: str
    tail: TailKeys

    @property
    def old(self) -> Collection:
        return registry_of(load_project(self.context.project), self.context.old).named(self.collection)

    @property
    def mixed_schema(self) -> pa.Schema:
        """The columns of rows and of reports together."""
        return pa.schema([*row_schema(self.old), *JOB_COLUMNS])

    def verified(self, pieces: Iterable[_Piece], read: FrameRead) -> Iterator[pa.RecordBatch]:
        """Yield the live rows of pieces that keep every rule, decoded; add the others to the report.

        If the step is not thorough, the first row that breaks a rule ends it.
        """
        began, old, verifier = perf_counter(), self.old, RowVerifier(self.context.is_thorough)
        for piece in pieces:
            rows = self.context.log.read(piece.file, _MERGED, piece.groups)
            read.entries += rows.num_rows
            for batch in bounded_batches(self.tail.live(rows, piece.file.kind).select(["key", "value"])):
                found = verifier.verify(old, EncodedRows(batch["key"], batch["value"]), RowRule.UNKNOWN_FIELDS)
                read.bad_stored.add(old, found.errors)
                if found.columns is None or self.context.stops_at(read.bad_stored):
                    return
                yield pa.record_batch(list(map(to_spark, found.columns)), schema=row_schema(old))
        read.seconds, read.sampled_s = perf_counter() - began, verifier.sampled_s

    def mixed(self, piece: _Piece) -> Iterator[pa.RecordBatch]:
        """Yield rows, and after them the report of reading them; a row has nulls in the columns of a report."""
        schema, read = self.mixed_schema, FrameRead(self.collection)

        def rows_and_report() -> Iterator[pa.RecordBatch]:
            yield from self.verified([piece], read)
            yield from output_rows((read, ()))

        for batch in catalog_errors_as_rows(rows_and_report):
            if batch.schema == JOB_COLUMNS:
                # An empty message as key and value, since neither may be null.
                empty = pa.array([b""] * batch.num_rows, pa.binary())
                columns = [*map(to_spark, RowColumns(self.old).decode(empty, empty)), *batch.columns]
            else:
                columns = [*batch.columns, *(pa.nulls(batch.num_rows, column.type) for column in JOB_COLUMNS)]
            yield pa.record_batch(columns, schema=schema)
