"""What a migration may declare.

A migration's `upgrade()` returns one literal list of these, over named collections: the gate reads it from the syntax
tree, a plan is printed from it, and the engine runs it. Nothing here reads or writes a row.

Take the cheapest form that fits: `wire_compatible` (no row is touched), `columnar` (batches of decoded fields),
`per_row` (message to message, to none or to many), `frame` (Spark DataFrames, for joins across collections).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from google.protobuf.message import Message
    from pyspark.sql import DataFrame

    Row = tuple[Message, Message]
    """A key and its value, of the same version."""


@dataclass(frozen=True, slots=True)
class WireCompatible:
    collection: str


@dataclass(frozen=True, slots=True)
class Columnar:
    collection: str
    change: Callable[[pa.RecordBatch], pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class PerRow:
    collection: str
    change: Callable[..., Row | Iterable[Row] | None]
    into: tuple[str, ...]
    ids: str | None


@dataclass(frozen=True, slots=True)
class Frame:
    change: Callable[..., Mapping[str, DataFrame]]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    into: tuple[str, ...]
    ids: str | None


@dataclass(frozen=True, slots=True)
class Insert:
    collection: str
    rows: Callable[[], Iterable[Row]]


@dataclass(frozen=True, slots=True)
class Delete:
    collection: str
    where: Callable[[Any, Any], bool]


@dataclass(frozen=True, slots=True)
class Create:
    collection: str


@dataclass(frozen=True, slots=True)
class Retire:
    collection: str


@dataclass(frozen=True, slots=True)
class NoChange:
    reason: str


@dataclass(frozen=True, slots=True)
class Undecided:
    collection: str


Action = WireCompatible | Columnar | PerRow | Frame | Insert | Delete | Create | Retire | NoChange | Undecided


def wire_compatible(collection: str) -> Action:
    """The rows stay as they are: the gate verifies that their bytes mean the same under the new types."""
    return WireCompatible(collection)


def columnar(collection: str, change: Callable[[pa.RecordBatch], pa.RecordBatch]) -> Action:
    """Rewrite every row, a batch at a time: two struct columns, `key` and `value`, of decoded fields, in and out.

    A batch keeps its number of rows and their order.
    """
    return Columnar(collection, change)


def per_row(
    collection: str,
    change: Callable[..., Row | Iterable[Row] | None],
    *,
    into: tuple[str, ...] = (),
    ids: str | None = None,
) -> Action:
    """Rewrite every row by itself: `change(key, value)` gives the new row, none, or many.

    The type of a new row's key names its collection; rows of other collections than `collection` are allowed for those
    in `into`. With `ids`, `change` takes a third argument, an iterator of ids from that allocator: dense, in key order,
    the same at every attempt.
    """
    return PerRow(collection, change, into, ids)


def frame(
    change: Callable[..., Mapping[str, DataFrame]],
    *,
    reads: tuple[str, ...],
    writes: tuple[str, ...],
    into: tuple[str, ...] = (),
    ids: str | None = None,
) -> Action:
    """Rewrite whole collections together: `change(frames)` maps DataFrames of `reads` to those of `writes` and `into`.

    The collections in `writes` hold afterwards exactly the rows that it returns; those in `into` keep their rows and
    gain the returned ones. With `ids`, `change` takes a second argument, the allocator's next free id, and returns rows
    whose ids are dense from there.
    """
    return Frame(change, reads, writes, into, ids)


def insert(collection: str, rows: Callable[[], Iterable[Row]]) -> Action:
    """Add rows that the module spells out."""
    return Insert(collection, rows)


def delete(collection: str, where: Callable[[Any, Any], bool]) -> Action:
    """Remove the rows for which `where(key, value)` holds; the types must be the same or wire compatible."""
    return Delete(collection, where)


def create(collection: str) -> Action:
    """A collection that the old version does not have; empty unless another action makes rows of it."""
    return Create(collection)


def retire(collection: str) -> Action:
    """Drop a collection that the new version does not have, with all its rows."""
    return Retire(collection)


def no_change(reason: str) -> Action:
    """Nothing happens to any row; the reason begins with "because"."""
    return NoChange(reason)


def undecided(collection: str) -> Action:
    """Nobody has said yet what happens to the rows; the gate refuses it, and so does the engine."""
    return Undecided(collection)
