"""Runs a step over a plain store in this process: its actions as the engine runs them, through stored bytes.

Batches are cut, so that functions meet arrays that do not begin at their first element.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pyarrow as pa
from google.protobuf.message import Message
from pyspark.sql import DataFrame, SparkSession

from catalog.actions import Columnar, Create, Frame, PerRow, Retire, WireCompatible
from catalog.engine.base.project import BuildVersion
from catalog.engine.codec.columns import to_spark
from catalog.engine.codec.message_codec import codec_for
from catalog.upgrade import migration_from
from catalog.version import parse_version
from tests.migrations.plain import Store, Stored, collection_of, key_text, plain, read, stored, types

COLUMNS = ["key", "value"]
Rows = list[tuple[bytes, bytes]]


def run(version: int, store: Store, spark: SparkSession | None = None) -> Store:
    """The store after the step that leads on from this version."""
    module = migration_from(parse_version(version), BuildVersion(0))
    assert module is not None
    step = _Step(version, store, stored(version, store))
    for action in module.upgrade():
        match action:
            case Columnar():
                step.change_columns(action)
            case PerRow():
                step.change_rows(action)
            case Frame():
                assert spark is not None, "this step needs Spark"
                step.change_frames(action, spark)
            case WireCompatible() | Create() | Retire():
                pass
            case _:
                raise TypeError(f"no step did this before: {action}")
    return step.outcome()


def decoded(version: int, name: str, rows: Rows) -> pa.RecordBatch:
    """Stored rows as a columnar change gets them."""
    columns = [
        codec_for(kind.DESCRIPTOR).decode(pa.array([row[part] for row in rows], pa.binary()))
        for part, kind in enumerate(types(version)[name])
    ]
    return pa.RecordBatch.from_arrays(columns, names=COLUMNS)


def encoded(version: int, name: str, table: pa.RecordBatch | pa.Table) -> Rows:
    """What a change returned, as it is stored."""
    assert table.schema.names == COLUMNS
    columns = [
        codec_for(kind.DESCRIPTOR).encode(pa.concat_arrays(pa.chunked_array(table[column]).chunks)).to_pylist()
        for column, kind in zip(COLUMNS, types(version)[name], strict=True)
    ]
    return list(zip(*columns, strict=True))


def framed(spark: SparkSession, version: int, rows: Stored, names: Iterable[str]) -> dict[str, DataFrame]:
    """Stored rows as a frame change gets them."""
    frames = {}
    for name in names:
        batch = decoded(version, name, rows[name])
        columns = [to_spark(batch[column]) for column in COLUMNS]
        schema = pa.schema([pa.field(c, array.type, nullable=False) for c, array in zip(COLUMNS, columns, strict=True)])
        frames[name] = spark.createDataFrame(pa.Table.from_arrays(columns, schema=schema))
    return frames


@dataclass(slots=True)
class _Step:
    version: int
    store: Store
    old: Stored
    new: Stored = field(init=False)

    def __post_init__(self) -> None:
        self.new = {name: list(self.old.get(name, ())) for name in types(self.version + 1)}

    def outcome(self) -> Store:
        return plain(self.version + 1, self.new)

    def change_columns(self, action: Columnar) -> None:
        whole = decoded(self.version, action.collection, self.old[action.collection])
        third = len(whole) // 3
        rows: Rows = []
        for batch in (whole.slice(0, third), whole.slice(third)):
            changed = action.change(batch)
            assert len(changed) == len(batch)
            rows += encoded(self.version + 1, action.collection, changed)
        self.new[action.collection] = rows

    def change_rows(self, action: PerRow) -> None:
        key_type, value_type = types(self.version)[action.collection]
        ids = count(self.next_id(action.ids))
        made: Stored = {name: [] for name in (action.collection, *action.into)}
        for key, value in self.old[action.collection]:
            arguments = (read(key_type, key), read(value_type, value), *([ids] if action.ids else []))
            for new_key, new_value in _as_rows(action.change(*arguments)):
                pair = types(self.version + 1)[collection_of(new_key)]
                assert (type(new_key), type(new_value)) == pair
                made[collection_of(new_key)].append((_bytes(new_key), _bytes(new_value)))
        self.new |= made
        self.leave_next_id(action.ids, next(ids))

    def change_frames(self, action: Frame, spark: SparkSession) -> None:
        first = self.next_id(action.ids)
        frames = framed(spark, self.version, self.old, action.reads)
        changed: Mapping[str, DataFrame] = action.change(frames, first)
        assert changed.keys() == {*action.writes, *action.into}
        made = {name: encoded(self.version + 1, name, frame.toArrow()) for name, frame in changed.items()}
        self.new |= {name: made[name] for name in action.writes}
        self.new |= {name: self.old[name] + made[name] for name in action.into}
        self.leave_next_id(action.ids, first + sum(len(made[name]) for name in action.into))

    def next_id(self, allocator: str | None) -> int:
        _, value = self.store["id_alloc"].get(key_text({"name": allocator}), ({}, {"next_id": 1}))
        return int(value["next_id"])

    def leave_next_id(self, allocator: str | None, following: int) -> None:
        if allocator is not None:
            key_type, value_type = types(self.version + 1)["id_alloc"]
            key = _bytes(key_type(name=allocator))
            others = [row for row in self.old["id_alloc"] if row[0] != key]
            self.new["id_alloc"] = [*others, (key, _bytes(value_type(next_id=following)))]


def _as_rows(returned: Any) -> Iterable[tuple[Message, Message]]:  # noqa: ANN401 - one row, none or many
    if returned is None:
        return ()
    return (returned,) if isinstance(returned, tuple) else returned


def _bytes(message: Message) -> bytes:
    return message.SerializeToString(deterministic=True)
