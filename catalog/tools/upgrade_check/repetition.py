"""The repetition of a step: its actions run twice over a sample of stored rows, and must make the same rows.

A migration that reads a clock, draws random numbers or depends on how rows are divided makes other rows in every
environment, and other ones again when a step is repeated. Nothing is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa
from google.protobuf.message import Message

from catalog.actions import Action, Frame, Insert
from catalog.engine.base.arrow import binary_column
from catalog.engine.codec import to_spark
from catalog.engine.migrate.frame_input import reads_few_rows
from catalog.engine.migrate.rewriters import REWRITERS, RewriterContext
from catalog.engine.migrate.row_errors import key_text
from catalog.engine.migrate.row_types import RowColumns, registry_of, row_types
from catalog.engine.migrate.row_verifier import EncodedRows
from catalog.engine.migrate.step_job import file_actions, session_for, spelt_out_rows
from catalog.engine.migrate.step_result import StepContext
from catalog.engine.migrate.violations import RowRule, Violations
from catalog.engine.spark.collection_frame import LOCAL_ROWS_MAX, local_frame
from catalog.engine.spark.datasource.scan import row_schema
from catalog.engine.stash.registry import Collection, encode
from catalog.engine.stash.view import BaseFileCache, load_view

Row = tuple[bytes, bytes]
Made = dict[str, list[Row]]
"""New rows, by collection."""

_SAMPLE = 2_000
"""Rows of a collection that are rewritten twice."""
_FRAME_SAMPLE = 20_000
"""The same for frames, whose joins find little in a small part; they get every row if there are few."""
_UNEVEN = 97
"""Rows of a batch in the second run: a result that depends on the division into batches differs."""
_FIRST_ID = 1
_SHOWN_MAX = 60


def check_repetition(step: StepContext, violations: Violations) -> None:
    """Run every action twice on rows of the step's state; add each field in which the results differ."""
    for first, second in _runs(step):
        for name in sorted({*first, *second}):
            collection = step.registry.named(name)
            for path, found in _differences(collection, first.get(name, []), second.get(name, [])).items():
                violations.add(RowRule.REPEATED, name, key_text(collection, found.key), found.told(path))


def _runs(step: StepContext) -> Iterator[tuple[Made, Made]]:
    """Yield what two runs of each action make."""
    for name, actions in file_actions(step.plan).items():
        rows = _sample(step, name, _SAMPLE)
        yield _rewritten(step, name, actions, rows, _SAMPLE), _rewritten(step, name, actions, rows, _UNEVEN)
    for action in step.plan.actions:
        if isinstance(action, Insert):
            yield _spelt_out(action), _spelt_out(action)
        elif isinstance(action, Frame):
            made: tuple[Made, Made] = ({}, {})
            with suppress(Exception), session_for(step):  # the step itself ran; a part of its rows may not be enough
                made = _framed(step, action)
            yield made


def _sample(step: StepContext, name: str, rows_max: int) -> EncodedRows:
    """Return the first rows of a collection."""
    found = list(islice(load_view(BaseFileCache(step.log), step.state, (name,)).rows(name), rows_max))
    return EncodedRows(*(binary_column([row[i] for row in found]).combine_chunks() for i in range(2)))


def _rewritten(step: StepContext, name: str, actions: tuple[Action, ...], rows: EncodedRows, batch_rows: int) -> Made:
    """Return what rows become, a batch of so many at a time."""
    old = row_types(step.project, step.plan.previous)[name]
    context = RewriterContext(step.plan.name, old, step.registry, _FIRST_ID, is_thorough=True)
    rewriter, made = REWRITERS[type(actions[0])](context, actions), Made()
    for low in range(0, len(rows.keys), batch_rows):
        part = EncodedRows(*(column[low : low + batch_rows] for column in rows))
        for collection, own in rewriter.rewrite(part, None).rows.items():
            made.setdefault(collection, []).extend(zip(own.keys.to_pylist(), own.values.to_pylist(), strict=True))
    return made


def _spelt_out(action: Insert) -> Made:
    return {action.collection: [(encode(key), encode(value)) for key, value in spelt_out_rows(action)]}


def _framed(step: StepContext, action: Frame) -> tuple[Made, Made]:
    """Return what a frame makes of the same rows in two runs, of which Spark keeps nothing in between."""
    old = registry_of(step.project, step.plan.previous)
    rows_max = LOCAL_ROWS_MAX if reads_few_rows(step, action) else _FRAME_SAMPLE
    samples = {name: _sample(step, name, rows_max) for name in action.reads}

    def run() -> Made:
        given = {
            name: local_frame(step.jobs.session, row_schema(old.named(name)), [_columns(old.named(name), rows)])
            for name, rows in samples.items()
        }
        frames = action.change(given, *([_FIRST_ID] if action.ids else []))
        return {name: _collected(step.registry.named(name), frame.toArrow()) for name, frame in frames.items()}

    return run(), run()


def _columns(collection: Collection, rows: EncodedRows) -> pa.RecordBatch:
    return pa.record_batch(list(map(to_spark, RowColumns(collection).decode(*rows))), schema=row_schema(collection))


def _collected(collection: Collection, table: pa.Table) -> list[Row]:
    batches = table.select(["key", "value"]).to_batches()
    encoded = [RowColumns(collection).encode(batch["key"], batch["value"]) for batch in batches]
    return [row for keys, values in encoded for row in zip(keys.to_pylist(), values.to_pylist(), strict=True)]


@dataclass(slots=True)
class _Difference:
    """The rows of a sample in which one field differs between two runs."""

    key: bytes
    """Of the first of them."""
    values: tuple[str, str]
    rows: int = 0

    def told(self, path: str) -> str:
        """Return the difference as a sentence, with an example and the number of rows."""
        count = f" ({self.rows:,} rows of a sample)" if self.rows > 1 else ""
        return f"{path} is {self.values[0]} in one run and {self.values[1]} in the next, of the same stored rows{count}"


def _differences(collection: Collection, first: list[Row], second: list[Row]) -> dict[str, _Difference]:
    """Return the fields in which the rows of two runs differ, in whatever order a run made them."""
    found: dict[str, _Difference] = {}
    then, now = (
        sorted((Counter(one) - Counter(other)).elements()) for one, other in ((first, second), (second, first))
    )
    by_key = dict(now)
    changed = [(row, (row[0], by_key.pop(row[0]))) for row in then if row[0] in by_key]
    kept = {row[0] for row, _ in changed}
    gone, new = [row for row in then if row[0] not in kept], [row for row in now if row[0] not in kept]
    if len(gone) != len(new):
        key = (gone or new)[0][0]
        found["the number of rows"] = _Difference(key, (f"{len(first):,}", f"{len(second):,}"))
        gone = new = []
    for one, other in (*changed, *zip(gone, new, strict=True)):
        for path, *values in _unequal_fields(collection.decode(*one), collection.decode(*other)):
            difference = found.setdefault(path, _Difference(one[0], (values[0], values[1])))
            difference.rows += 1
    return found


def _unequal_fields(one: Iterable[Message], other: Iterable[Message]) -> Iterator[tuple[str, str, str]]:
    for side, *messages in zip(("key", "value"), one, other, strict=True):
        yield from _unequal_members(side, messages[0], messages[1])


def _unequal_members(path: str, one: Message, other: Message) -> Iterator[tuple[str, str, str]]:
    """Yield the innermost fields in which two messages differ, with both values; a list or map counts as one field."""
    for member in one.DESCRIPTOR.fields:
        values = getattr(one, member.name), getattr(other, member.name)
        own = f"{path}.{member.name}"
        if member.has_presence and one.HasField(member.name) != other.HasField(member.name):
            yield own, _shown(one, member.name), _shown(other, member.name)
        elif values[0] != values[1]:
            if member.message_type is not None and not member.is_repeated:
                yield from _unequal_members(own, *values)
            else:
                yield own, _shown(one, member.name), _shown(other, member.name)


def _shown(message: Message, name: str) -> str:
    member = message.DESCRIPTOR.fields_by_name[name]
    if member.has_presence and not message.HasField(name):
        return "absent"
    text = " ".join(repr(getattr(message, name)).split())
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 1]}…"
