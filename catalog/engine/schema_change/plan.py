"""The plan of a schema change: its stages as plain data, which `--dry-run` prints and any process can carry out.

A stage is a commit, or work whose result a commit records. Its edits put or drop whole columns and elements by id, so
that a stage means the same whoever runs it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TypeVar

from catalog.engine.schema_change.schema import Element, State, TableColumn, TableSchema, TableState

_Part = TypeVar("_Part", TableColumn, Element)
ANNOUNCED = 0
"""As `since` of a part that is put: the version that its commit makes."""


class StageKind(IntEnum):
    ANNOUNCE = 1
    """A new version of the schema begins; writers of the one before may go on until it is closed."""
    CLOSE = 2
    """From here on all writers know what was announced."""
    EDIT = 3
    """A change that gives writers nothing to derive or to check."""
    BUILD = 4
    """Makes the entries of an index, or the rows of a new primary key."""
    REORGANISE = 5
    """Gives every row what a new column holds."""
    VALIDATE = 6
    """Looks if any row violates a constraint."""
    ITEM = 7
    """Adds, removes or renames the item of the catalog that names the table."""
    HOLD = 8
    """Waits for a person, if the change was submitted to hold."""


@dataclass(frozen=True, slots=True)
class PutColumn:
    table: int
    column: TableColumn


@dataclass(frozen=True, slots=True)
class DropColumn:
    table: int
    column: int


@dataclass(frozen=True, slots=True)
class PutElement:
    table: int
    element: Element


@dataclass(frozen=True, slots=True)
class DropElement:
    table: int
    element: int


@dataclass(frozen=True, slots=True)
class PutState:
    table: int
    state: TableState


@dataclass(frozen=True, slots=True)
class PutName:
    table: int
    name: str


@dataclass(frozen=True, slots=True)
class PutTable:
    table: int
    schema: TableSchema


@dataclass(frozen=True, slots=True)
class RemoveTable:
    table: int


@dataclass(frozen=True, slots=True)
class Bump:
    """Begins a version of another table that a foreign key concerns, and changes nothing of it."""

    table: int


Edit = PutColumn | DropColumn | PutElement | DropElement | PutState | PutName | PutTable | RemoveTable | Bump


class ItemVerb(IntEnum):
    INSERT = 1
    DELETE = 2
    RENAME = 3


@dataclass(frozen=True, slots=True)
class ItemChange:
    verb: ItemVerb
    id: int
    name: str
    """Qualified by the name of its schema, where it has one."""
    was: str = ""


@dataclass(frozen=True, slots=True)
class Stage:
    kind: StageKind
    text: str
    edits: tuple[Edit, ...] = ()
    element: int = 0
    """The element that is built or validated."""
    table: int = 0
    """The table that is built, reorganised, validated, or must be empty."""
    is_visible: bool = False
    """Once it is committed the change can no longer be undone."""
    needs_empty: bool = False
    """Refused if the table has rows by then."""
    item: ItemChange | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    stages: tuple[Stage, ...]
    tables: tuple[int, ...]
    """Every table whose schema it edits, or whose writers it concerns."""
    notes: tuple[str, ...] = field(default=())
    """Remarks for people, such as that a statement has nothing to do."""


class Ids:
    """Ids for new elements, given out in order from one that is free."""

    def __init__(self, first: int) -> None:
        self.following = first

    def take(self) -> int:
        self.following += 1
        return self.following - 1


def edited(  # noqa: C901 - one arm for each edit
    schema: TableSchema | None, edits: Iterable[Edit], version: int
) -> TableSchema | None:
    """Return a table's schema after edits; what is announced by them counts from a version on."""
    for edit in edits:
        match edit:
            case PutTable():
                schema = edit.schema
            case RemoveTable():
                schema = None
            case _ if schema is None:
                raise LookupError(f"an edit of a table that is not there: {edit}")
            case PutColumn(column=column):
                schema = schema.with_columns([_dated(column, schema.column_by_id(column.id), version)])
            case PutElement(element=element):
                schema = schema.with_elements([_dated(element, schema.element_by_id(element.id), version)])
            case DropColumn(column=number):
                schema = _with_heir_in_place(schema, number).without(columns=[number])
            case DropElement(element=number):
                schema = schema.without(elements=[number])
            case PutState(state=state):
                schema = replace(schema, state=state)
            case PutName(name=name):
                schema = replace(schema, name=name)
            case Bump():
                pass
    return schema


def _with_heir_in_place(schema: TableSchema, number: int) -> TableSchema:
    """Return a schema in which the column that takes over another's values stands where that one does."""
    heir = next((column for column in schema.columns if column.replaces == number), None)
    if heir is None:
        return schema
    others = (column for column in schema.columns if column is not heir)
    placed = ((heir, column) if column.id == number else (column,) for column in others)
    return replace(schema, columns=tuple(column for own in placed for column in own))


def _dated(part: _Part, known: TableColumn | Element | None, version: int) -> _Part:
    """Return a part with the version that announced it: the one that it has, or the one that its commit makes."""
    if part.since != ANNOUNCED:
        return part
    return replace(part, since=version if known is None else known.since)


def closed(schema: TableSchema) -> TableSchema:
    """Return a schema after its close: what was announced is written by everybody."""

    def state(part: TableColumn | Element) -> State:
        return State.WRITE if part.state is State.DELETE else part.state

    return replace(
        schema,
        min=schema.cur,
        columns=tuple(replace(column, state=state(column)) for column in schema.columns),
        elements=tuple(replace(element, state=state(element)) for element in schema.elements),
    )


def announce(text: str, *edits: Edit) -> tuple[Stage, Stage]:
    """Return the two stages by which writers learn of something new."""
    return Stage(StageKind.ANNOUNCE, f"announce {text}", edits), Stage(
        StageKind.CLOSE, f"close the announcement of {text}"
    )


def publish(text: str, *edits: Edit) -> Stage:
    """Return the stage that makes a change visible."""
    return Stage(StageKind.EDIT, text, edits, is_visible=True)
