"""Frame actions: whole collections as DataFrames in and out, the rows that come back written by file tasks."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from catalog.actions import Frame
from catalog.datasource import dataframe
from catalog.engine.judging import Judge, Rows, TooManyFaults, culprits, said, shown
from catalog.engine.prints import printed
from catalog.engine.tasks import Emission, Report, Setting, kinds_of, write_rows
from catalog.engine.types import Columns
from catalog.engine.violations import Rule
from catalog.errors import UnfitColumnError, UnwrittenStepError
from catalog.log.protocol import State
from catalog.spark.jobs import SparkJobs, answered, guarded
from catalog.stash.consolidation import FILE_BYTES_MAX

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROWS = pa.schema([("key", pa.binary()), ("value", pa.binary()), ("fault", pa.binary())])
_ROWS_IN_SPARK = "key binary, value binary, fault binary"
_JOB = "bucket int, payload binary"


def frame_job(
    jobs: SparkJobs,
    setting: Setting,
    action: Frame,
    state: State,
    place: tuple[str, Mapping[str, str]],
    *,
    next_id: int | None,
) -> list[DataFrame]:
    """The frames that, when they are collected, write what the action makes of the collections it reads."""
    frames = {
        name: dataframe(jobs.session, *place, name, state.version, project=setting.project) for name in action.reads
    }
    made = action.change(frames, *([] if next_id is None else [next_id]))
    if made.keys() != {*action.writes, *action.into}:
        declared, given = ", ".join((*action.writes, *action.into)), ", ".join(made)
        reason = f"its frame declares rows of {declared} and makes rows of {given}"
        raise UnwrittenStepError(f"v{setting.old}_to_v{setting.new}", reason)
    return [_written(frame, setting, name, action, state) for name, frame in made.items()]


def _written(frame: DataFrame, setting: Setting, name: str, action: Frame, state: State) -> DataFrame:
    """Encoded, brought into the order of keys, and written; one task where one file is enough."""
    is_base = name in action.writes or name in setting.created
    size = sum(file.size for file in state.files.values() if file.collection in {name, *action.reads})
    tasks = -(-size * 4 // FILE_BYTES_MAX) or 1  # stored bytes are compressed
    encoded = frame.select("key", "value").mapInArrow(_encoding(setting, name), _ROWS_IN_SPARK)
    placed = encoded.repartitionByRange(tasks, "key") if tasks > 1 else encoded.repartition(1)
    writing = _writing(setting, name, is_base=is_base, is_added=name in action.into, counts_ids=name == action.ids)
    return placed.sortWithinPartitions("key").mapInArrow(writing, _JOB)


def _encoding(setting: Setting, name: str) -> Callable[[Iterator[pa.RecordBatch]], Any]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        columns = Columns(setting.registry.named(name))
        for batch in batches:
            if batch.num_rows:
                yield _encoded(columns, batch, setting)

    return run


def _encoded(columns: Columns, batch: pa.RecordBatch, setting: Setting) -> pa.RecordBatch:
    """The rows that can be written; what was found of the others comes with them, to whoever writes the file."""
    judge, name = setting.judge(), columns.collection.name
    given = pa.Table.from_batches([batch])
    rows = Rows(*(pa.array([], pa.binary()) for _ in "kv"))
    with suppress(TooManyFaults):
        if (error := _misfit(columns, batch)) is not None:
            if not judge.is_thorough:
                judge.spoil(Rule.ENCODE, name, None, "", said(error))
            if _misfit(columns, batch[:0]) is not None:
                unable = UnwrittenStepError(judge.step, f"its frame makes no rows of {name}: {said(error)}")
                return _told(unable)
            found = dict(culprits(batch.num_rows, lambda low, high: _misfit(columns, batch[low:high])))
            for row, own in found.items():
                key = _key(columns, batch["key"][row : row + 1])
                text = "" if key is None else shown(columns.collection, key)
                judge.spoil(Rule.ENCODE, name, key, text, said(own))
            given = given.filter(pa.array([row not in found for row in range(batch.num_rows)]))
        fitting = given.combine_chunks().to_batches()
        if fitting:
            rows = judge.written(columns.collection, Rows(*columns.encode(fitting[0]["key"], fitting[0]["value"])))
    whole = pa.record_batch([rows.keys, rows.values, pa.nulls(len(rows.keys), pa.binary())], schema=_ROWS)
    if not judge.made:
        return whole
    return pa.Table.from_batches([whole, _told(judge)]).combine_chunks().to_batches()[0]


def _told(found: Judge | UnwrittenStepError) -> pa.RecordBatch:
    empty = pa.array([b""], pa.binary())
    return pa.record_batch([empty, empty, pa.array([pickle.dumps(found)])], schema=_ROWS)


def _misfit(columns: Columns, batch: pa.RecordBatch) -> UnfitColumnError | None:
    try:
        columns.encode(batch["key"], batch["value"])
    except UnfitColumnError as error:
        return error
    return None


def _key(columns: Columns, key: pa.Array) -> bytes | None:
    """The key of a row, be it that its value is none."""
    try:
        return bytes(columns.encode_keys(key)[0].as_py())
    except UnfitColumnError:
        return None


def _writing(
    setting: Setting, name: str, *, is_base: bool, is_added: bool, counts_ids: bool
) -> Callable[[Iterator[pa.RecordBatch]], Any]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        def rows() -> Iterator[pa.RecordBatch]:
            judge = setting.judge()
            report, emission = Report(name, 0, judge), Emission()
            with suppress(TooManyFaults):
                table = pa.Table.from_batches(_sound(batches, judge), schema=pa.schema(list(_ROWS)[:2]))
                report.inserted[name] = table.num_rows + judge.dropped[name] if is_added else 0
                report.files = write_rows(setting, name, table, judge, is_base=is_base)
                report.rows_after[name] = sum(file.rows for file in report.files)
                report.keys_changed = True
                _print(setting, report, table, emission, counts_ids=counts_ids)
            yield from answered((report, emission.packed(kinds_of(setting.wanted), setting.buckets)))

        yield from guarded(rows)

    return run


def _sound(batches: Iterator[pa.RecordBatch], judge: Judge) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for pickled in batch["fault"].drop_null().to_pylist():
            found: Judge | UnwrittenStepError = pickle.loads(pickled)  # noqa: S301 - written by our own tasks
            if isinstance(found, UnwrittenStepError):
                raise found
            judge.take(found)
        yield batch.filter(batch["fault"].is_null()).select(["key", "value"])


def _print(setting: Setting, report: Report, table: pa.Table, emission: Emission, *, counts_ids: bool) -> None:
    registry = setting.registry
    columns = Columns(registry.named(report.collection))
    for batch in table.to_batches():
        decoded = columns.decode(batch["key"], batch["value"])
        if report.collection in setting.wanted:
            wanted = setting.wanted[report.collection]
            emission.add(printed(wanted, report.collection, registry, batch["key"], decoded))
        if counts_ids and batch.num_rows:
            bounds = pc.min_max(pc.struct_field(decoded[0], "id")).as_py()
            report.ids += batch.num_rows
            known = report.id_bounds or (bounds["min"], bounds["max"])
            report.id_bounds = min(known[0], bounds["min"]), max(known[1], bounds["max"])
