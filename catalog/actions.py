"""The actions that a migration may declare.

A migration's `upgrade()` returns one literal list of them, over named collections: the gate reads it from the syntax
tree, a plan is printed from it, and the engine runs it. An action is plain data: it says what it reads, writes and
needs, and reads or writes no row itself. The engine's rewriter of each form is in `engine/migrate/rewriters.py`.

Take the cheapest form that fits: `wire_compatible` (no row is touched), `columnar` (batches of decoded fields),
`per_row` (message to message, to none or to many), `frame` (Spark DataFrames, for joins across collections).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import pyarrow as pa
    from google.protobuf.message import Message
    from pyspark.sql import DataFrame

    Row = tuple[Message, Message]
    """A key and its value, of the same version."""


class Action:
    """One action of a step; each form overrides what is true of it."""

    __slots__ = ()
    form: ClassVar[str]
    """Its name in plans and reports."""
    needs_spark: ClassVar[bool] = False
    keeps_rows: ClassVar[bool] = False
    """True if each stored row becomes exactly one new row, in the same order."""
    combines: ClassVar[bool] = False
    """True if several actions of this form may replace the rows of one collection together."""
    is_decided: ClassVar[bool] = True
    """False if what happens to the rows is left open."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The collections whose stored rows the action is given."""
        return ()

    @property
    def writes(self) -> tuple[str, ...]:
        """The collections whose files the action replaces: all their rows are written anew."""
        return ()

    @property
    def adds(self) -> tuple[str, ...]:
        """The collections that gain rows and keep those they have."""
        return ()

    @property
    def drops(self) -> tuple[str, ...]:
        """The collections that the action drops with all their rows."""
        return ()

    @property
    def changes(self) -> tuple[str, ...]:
        """Every collection whose types or rows the action changes."""
        return (*self.writes, *self.adds, *self.drops)

    @property
    def allocator(self) -> str | None:
        """The allocator from which the action takes ids."""
        return None

    @property
    def empties(self) -> tuple[str, ...]:
        """The fields that rows may lose: upgrade-check does not warn of them."""
        return ()

    def may_empty(self, collection: str, path: str) -> bool:
        """Tell if rows of a collection may lose a field, such as `value.owner_id`, or the message that holds it."""
        words = path.split(".")
        above = {".".join(words[:count]) for count in range(1, len(words) + 1)}
        return not above.isdisjoint(name.removeprefix(f"{collection}.") for name in self.empties)

    @property
    def reason(self) -> str:
        """Return the reason why no row changes; empty if rows do."""
        return ""

    def form_for(self, collection: str) -> str:
        """Return the form's name in the plan of one of its collections: rows that are only added are inserted."""
        return Insert.form if collection in self.adds else self.form

    def describe(self) -> str:
        """Return the action in a few words."""
        return f"{self.form} of {', '.join(self.changes)}" if self.changes else f"{self.form} {self.reason}"


class _OfTypes(Action):
    """An action on the types of a collection, which touches no row."""

    __slots__ = ()
    collection: str

    @property
    def changes(self) -> tuple[str, ...]:
        return (self.collection,)


class _OfRows(Action):
    """An action that reads and replaces the rows of one collection, file by file."""

    __slots__ = ()
    needs_spark = True
    collection: str

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.collection,)

    @property
    def writes(self) -> tuple[str, ...]:
        return (self.collection,)


class _Adding(Action):
    """An action whose function returns rows of other collections too, with ids from an allocator."""

    __slots__ = ()
    into: tuple[str, ...]
    ids: str | None

    @property
    def adds(self) -> tuple[str, ...]:
        return self.into

    @property
    def allocator(self) -> str | None:
        return self.ids


@dataclass(frozen=True, slots=True)
class WireCompatible(_OfTypes):
    form = "wire compatible"
    collection: str


@dataclass(frozen=True, slots=True)
class Columnar(_OfRows):
    form = "columnar"
    keeps_rows = True
    collection: str
    change: Callable[[pa.RecordBatch], pa.RecordBatch]
    empties: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PerRow(_Adding, _OfRows):
    form = "per row"
    collection: str
    change: Callable[..., Row | Iterable[Row] | None]
    into: tuple[str, ...]
    ids: str | None
    empties: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Frame(_Adding):
    form = "frame"
    needs_spark = True
    change: Callable[..., Mapping[str, DataFrame]]
    reads: tuple[str, ...] = field()
    writes: tuple[str, ...] = field()
    into: tuple[str, ...]
    ids: str | None
    empties: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Insert(Action):
    form = "insert"
    needs_spark = True
    collection: str
    rows: Callable[[], Iterable[Row]]

    @property
    def adds(self) -> tuple[str, ...]:
        return (self.collection,)


@dataclass(frozen=True, slots=True)
class Delete(_OfRows):
    form = "delete"
    combines = True
    collection: str
    where: Callable[[Any, Any], bool]


@dataclass(frozen=True, slots=True)
class Create(_OfTypes):
    form = "create"
    collection: str


@dataclass(frozen=True, slots=True)
class Retire(Action):
    form = "retire"
    collection: str

    @property
    def drops(self) -> tuple[str, ...]:
        return (self.collection,)


@dataclass(frozen=True, slots=True)
class NoChange(Action):
    form = "no change"
    reason: str = field()


@dataclass(frozen=True, slots=True)
class Undecided(_OfTypes):
    form = "undecided"
    is_decided = False
    collection: str


def wire_compatible(collection: str) -> Action:
    """Keep the rows as they are: the gate verifies that their bytes mean the same under the new types."""
    return WireCompatible(collection)


def columnar(
    collection: str, change: Callable[[pa.RecordBatch], pa.RecordBatch], *, empties: tuple[str, ...] = ()
) -> Action:
    """Rewrite every row, a batch at a time: two struct columns, `key` and `value`, of decoded fields, in and out.

    A batch keeps its number of rows and their order. `empties` names fields that rows lose on purpose, such as
    `value.owner_id`: `catalog debug upgrade-check` warns of every other field that is set in fewer rows afterwards.
    """
    return Columnar(collection, change, empties)


def per_row(
    collection: str,
    change: Callable[..., Row | Iterable[Row] | None],
    *,
    into: tuple[str, ...] = (),
    ids: str | None = None,
    empties: tuple[str, ...] = (),
) -> Action:
    """Rewrite every row by itself: `change(key, value)` gives the new row, none, or many.

    The type of a new row's key names its collection; rows of other collections than `collection` are allowed for those
    in `into`. With `ids`, `change` takes a third argument, an iterator of ids from that allocator: dense, in key order,
    the same at every attempt. `empties` is as for `columnar`.
    """
    return PerRow(collection, change, into, ids, empties)


def frame(
    change: Callable[..., Mapping[str, DataFrame]],
    *,
    reads: tuple[str, ...],
    writes: tuple[str, ...],
    into: tuple[str, ...] = (),
    ids: str | None = None,
    empties: tuple[str, ...] = (),
) -> Action:
    """Rewrite whole collections together: `change(frames)` maps DataFrames of `reads` to those of `writes` and `into`.

    The collections in `writes` hold afterwards exactly the rows that it returns; those in `into` keep their rows and
    gain the returned ones. With `ids`, `change` takes a second argument, the allocator's next free id, and returns rows
    whose ids are dense from there. `empties` is as for `columnar`, with the collection: `item.value.owner_id`.
    """
    return Frame(change, reads, writes, into, ids, empties)


def insert(collection: str, rows: Callable[[], Iterable[Row]]) -> Action:
    """Add rows that the migration spells out."""
    return Insert(collection, rows)


def delete(collection: str, where: Callable[[Any, Any], bool]) -> Action:
    """Remove the rows for which `where(key, value)` holds; the types must be the same or wire compatible."""
    return Delete(collection, where)


def create(collection: str) -> Action:
    """Declare a collection that the old version does not have; it is empty unless another action makes rows of it."""
    return Create(collection)


def retire(collection: str) -> Action:
    """Drop a collection that the new version does not have, with all its rows."""
    return Retire(collection)


def no_change(reason: str) -> Action:
    """Change no row of any collection; the reason begins with "because"."""
    return NoChange(reason)


def undecided(collection: str) -> Action:
    """Leave open what happens to the rows; the gate and the engine refuse it."""
    return Undecided(collection)
