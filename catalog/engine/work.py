"""What each process of Spark is given to do: a task of a step, rows that are inserted, a shuffle's part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from catalog.engine.parts import part_numbers, read_shuffled
from catalog.engine.tasks import Emission, InsertTask, Report, Setting, Task, kinds_of, run_insert, run_task
from catalog.log.protocol import DataFile, Log
from catalog.spark.jobs import Answer

FED = "part int, kind string, key binary, value binary, ts long, diff int"
"""What `feed` makes, as Spark declares it."""


def work(setting: Setting, task: Task) -> Answer:
    return _answer(setting, *run_task(setting, task))


def work_insert(setting: Setting, task: InsertTask) -> Answer:
    return _answer(setting, *run_insert(setting, task))


def work_shuffled(setting: Setting, tasks: Sequence[Task], part: int, rows: pa.Table) -> Answer:
    return _answer(setting, *run_task(setting, tasks[part], lambda taken: read_shuffled(rows, taken)))


def _answer(setting: Setting, report: Report, emission: Emission) -> Answer:
    return report, emission.packed(kinds_of(setting.wanted), setting.buckets)


def feed(log: Log, lows: Sequence[bytes], piece: tuple[DataFile, int]) -> Iterator[pa.RecordBatch]:
    file, number = piece
    for batch in log.read(file, None, [number]).to_batches(max_chunksize=8192):
        parts = pa.array(part_numbers(lows, batch["key"]), pa.int32())
        kinds = pa.array([file.kind.value] * batch.num_rows, pa.string())
        yield pa.record_batch(
            [parts, kinds, *(batch[name] for name in ("key", "value", "ts", "diff"))],
            names=["part", "kind", "key", "value", "ts", "diff"],
        )
