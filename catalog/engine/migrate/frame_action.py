"""Frame actions: whole collections as DataFrames in and out; the rows that come back are written by tasks."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from catalog.actions import Frame
from catalog.engine.base.raised_text import error_text
from catalog.engine.migrate.frame_input import FrameRead, read_input, reads_few_rows
from catalog.engine.migrate.migration_errors import migration_errors
from catalog.engine.migrate.rewrite_task import (
    TaskContext,
    TaskHashes,
    TaskReport,
    add_new_rows,
    task_output,
    write_rows,
)
from catalog.engine.migrate.row_errors import BadRows, RowError
from catalog.engine.migrate.row_types import RowColumns
from catalog.engine.migrate.row_verifier import EncodedRows, RowVerifier, VerifiedRows, failing_rows
from catalog.engine.migrate.step_result import StepContext
from catalog.engine.migrate.violations import RowRule
from catalog.engine.spark.jobs import JOB_SCHEMA, catalog_errors_as_rows, output_rows, silence_query_loggers
from catalog.engine.stash.arguments import described
from catalog.engine.stash.compaction import FILE_BYTES_MAX
from catalog.errors import MigrationFailedError, UnfitColumnError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROWS = pa.schema([("key", pa.binary()), ("value", pa.binary()), ("error", pa.binary())])
_ROWS_IN_SPARK = "key binary, value binary, error binary"
_Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class FrameJob:
    """The frames of an action that, when they are collected, write what it makes; and what was read for them here."""

    frames: list[DataFrame]
    reads: list[FrameRead]


def frame_job(step: StepContext, context: TaskContext, action: Frame, next_id: int | None, held: ExitStack) -> FrameJob:
    """Return the job of an action, which needs what is `held` until it has run.

    Nothing is made of stored rows that break a rule; if this process read such rows, they are all that there is.
    """
    source = read_input(step, context, action, held)
    if source.has_bad_rows:
        return FrameJob(source.reports if context.is_thorough else [], source.reads)
    silence_query_loggers()
    with migration_errors(context.step):
        made = action.change(_Frames(source.frames), *([] if next_id is None else [next_id]))
        if (wrong := _wrong_frames(action, made)) is not None:
            raise MigrationFailedError(context.step, wrong)
    frames = [_written(step, context, action, name, frame) for name, frame in made.items()]
    return FrameJob([*source.reports, *frames], source.reads)


class _Frames(dict[str, "DataFrame"]):
    """The frames that an action reads."""

    def __missing__(self, name: str) -> DataFrame:
        raise LookupError(f"the frame does not read {name}: its `reads` are {', '.join(self)}")


def _wrong_frames(action: Frame, made: object) -> str | None:
    """Return in which way the result of an action is not what it declares; none if it is."""
    declared = ", ".join(action.changes)
    if not isinstance(made, Mapping):
        return f"its frame returned {described(made)}; needed: a dict with a DataFrame for each of {declared}"
    if made.keys() != {*action.changes}:
        given = ", ".join(map(str, made)) or "none"
        return f"its frame declares rows of {declared} and made rows of {given}"
    for name, frame in made.items():
        if not hasattr(frame, "mapInArrow"):
            return f"its frame returned {described(frame)} for {name}; needed: a DataFrame"
        if not {"key", "value"} <= {*frame.columns}:
            return f"its frame made {name} with the columns {', '.join(frame.columns)}; needed: key and value"
    return None


def _written(step: StepContext, context: TaskContext, action: Frame, name: str, frame: DataFrame) -> DataFrame:
    """Encode, verify and write rows; in one task if one file is enough, else by ranges of keys."""
    size = sum(file.size for file in step.state.files.values() if file.collection in {name, *action.reads})
    tasks = -(-size * 4 // FILE_BYTES_MAX)  # stored bytes are compressed
    rows, encoding, writing = frame.select("key", "value"), _encoding(context, name), _writing(context, action, name)
    if reads_few_rows(step, action):
        return rows.coalesce(1).mapInArrow(_chained(encoding, writing), JOB_SCHEMA)
    encoded = rows.mapInArrow(encoding, _ROWS_IN_SPARK)
    placed = encoded.repartitionByRange(tasks, "key") if tasks > 1 else encoded.repartition(1)
    return placed.mapInArrow(writing, JOB_SCHEMA)


def _chained(
    first: Callable[[_Batches], _Batches], second: Callable[[_Batches], _Batches]
) -> Callable[[_Batches], Any]:
    return lambda batches: second(first(batches))


def _encoding(context: TaskContext, name: str) -> Callable[[_Batches], Any]:
    def run(batches: _Batches) -> _Batches:
        codec = RowColumns(context.registry.named(name))
        for batch in batches:
            if batch.num_rows:
                yield _encoded(codec, batch, context)

    return run


def _encoded(codec: RowColumns, batch: pa.RecordBatch, context: TaskContext) -> pa.RecordBatch:
    """Return the rows that can be written; the errors of the others travel with them to the task that writes."""
    bad = BadRows()
    failure = _failure(codec, batch)
    if failure is not None and not context.is_thorough:
        bad.add(codec.collection, [RowError(RowRule.ENCODE, 0, None, error_text(failure))])
        return _with_errors(EncodedRows.none(), bad)
    if failure is not None:
        if _failure(codec, batch[:0]) is not None:
            name = codec.collection.name
            return _error_row(
                MigrationFailedError(context.step, f"its frame makes no rows of {name}: {error_text(failure)}")
            )
        failing = dict(failing_rows(batch.num_rows, lambda low, high: _failure(codec, batch[low:high])))
        bad.add(
            codec.collection,
            [
                RowError(RowRule.ENCODE, row, _key(codec, batch["key"][row : row + 1]), error_text(error))
                for row, error in failing.items()
            ],
        )
        batch = batch.filter(pa.array([row not in failing for row in range(batch.num_rows)]))
    encoded = EncodedRows(*codec.encode(batch["key"], batch["value"]))
    verified = RowVerifier(context.is_thorough).verify(codec.collection, encoded, RowRule.ENCODE)
    bad.add(codec.collection, verified.errors)
    return _with_errors(verified.rows, bad)


def _with_errors(rows: EncodedRows, bad: BadRows) -> pa.RecordBatch:
    good = pa.record_batch([*rows, pa.nulls(len(rows.keys), pa.binary())], schema=_ROWS)
    return pa.Table.from_batches([good, _error_row(bad)]).combine_chunks().to_batches()[0] if bad else good


def _error_row(found: BadRows | MigrationFailedError) -> pa.RecordBatch:
    empty = pa.array([b""], pa.binary())
    return pa.record_batch([empty, empty, pa.array([pickle.dumps(found)])], schema=_ROWS)


def _failure(codec: RowColumns, batch: pa.RecordBatch) -> UnfitColumnError | None:
    try:
        codec.encode(batch["key"], batch["value"])
    except UnfitColumnError as error:
        return error
    return None


def _key(codec: RowColumns, key: pa.Array) -> bytes | None:
    """Return the key of a row whose value may not fit; None if the key does not fit either."""
    try:
        return bytes(codec.encode_keys(key)[0].as_py())
    except UnfitColumnError:
        return None


def _writing(context: TaskContext, action: Frame, name: str) -> Callable[[_Batches], Any]:
    is_base, is_added = name in action.writes or name in context.created, name in action.adds
    takes_ids = name == action.allocator

    def run(batches: _Batches) -> _Batches:
        def rows() -> _Batches:
            report, hashes = TaskReport(name), TaskHashes()
            good = [own for batch in batches if len((own := _good_rows(batch, report.bad_new)).keys)]
            if is_added:
                report.inserted[name] = sum(len(own.keys) for own in good) + report.bad_new.set_aside[name]
            report.keys_changed = True
            if not context.stops_at(report.bad_new):
                write_rows(context, name, good, report, is_base=is_base)
                _hash(context, report, good, hashes, takes_ids=takes_ids)
            yield from output_rows(task_output(context, report, hashes))

        yield from catalog_errors_as_rows(rows)

    return run


def _good_rows(batch: pa.RecordBatch, bad: BadRows) -> EncodedRows:
    """Return the rows of a batch without errors; add the errors that came with them."""
    for pickled in batch["error"].drop_null().to_pylist():
        found: BadRows | MigrationFailedError = pickle.loads(pickled)  # noqa: S301 - written by our own tasks
        if isinstance(found, MigrationFailedError):
            raise found
        bad.merge(found)
    good = batch.filter(batch["error"].is_null())
    return EncodedRows(good["key"], good["value"])


def _hash(
    context: TaskContext, report: TaskReport, rows: list[EncodedRows], hashes: TaskHashes, *, takes_ids: bool
) -> None:
    codec = RowColumns(context.registry.named(report.collection))
    for own in rows:
        columns = codec.decode(*own)
        add_new_rows(context, report, hashes, report.collection, VerifiedRows(own, columns, []))
        if takes_ids:
            bounds = pc.min_max(pc.struct_field(columns[0], "id")).as_py()
            report.ids += len(own.keys)
            low, high = report.id_bounds or (bounds["min"], bounds["max"])
            report.id_bounds = min(low, bounds["min"]), max(high, bounds["max"])
