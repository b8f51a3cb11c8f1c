"""A table's schema as a value: its columns, indexes and constraints, and the states they are in.

A schema never changes: an edit returns another one. Rows of `table` in the tables log hold it as `TableValue`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum

from catalog.engine.schema_change.expressions import Expression
from catalog.engine.schema_change.types import ColumnType, TypeName, Value
from catalog.errors.tables import TableTooNewError, UnknownColumnError, UnknownElementError

FIRST_COLUMN = 2
"""The number of the first column; field 1 of a row is the version of the schema that it was written under."""
ROW_COLUMN = "_row"
"""The hidden column of a table without a primary key."""
FEATURES: frozenset[str] = frozenset()
"""The features that this build knows; a table that needs another one is not written."""


class State(IntEnum):
    """The state of a column or an element, on its way from absent to public."""

    DELETE = 1
    """Announced: nobody writes it yet."""
    WRITE = 2
    """Every writer maintains it; nobody reads it."""
    CHECK = 3
    """Every writer is checked; rows from before may violate it."""
    PUBLIC = 4


class TableState(IntEnum):
    CREATED = 1
    """It is being made or dropped, and refuses rows."""
    PUBLIC = 2


class ElementKind(IntEnum):
    PRIMARY = 1
    INDEX = 2
    UNIQUE = 3
    CHECK = 4
    NOT_NULL = 5
    FOREIGN_KEY = 6


STORING = frozenset({ElementKind.PRIMARY, ElementKind.INDEX})
"""Kinds of elements that have a collection of their own."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    id: int
    name: str
    type: ColumnType
    state: State = State.PUBLIC
    since: int = 1
    initial_default: Value = None
    """The value of rows that were written before the column was there."""
    write_default: Expression | None = None
    computed: Expression | None = None
    replaces: int = 0
    """The column whose values it takes over; 0 if none."""
    up: Expression | None = None
    """Its value, from those of other columns, where a writer does not set it."""
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Element:
    id: int
    name: str
    kind: ElementKind
    columns: tuple[int, ...] = ()
    state: State = State.PUBLIC
    since: int = 1
    stored: tuple[int, ...] = ()
    check: Expression | None = None
    support: int = 0
    """The index that it is judged by; of an index, the primary key that its entries lead to, 0 for the present one."""
    target: int = 0
    """The table that a foreign key refers to."""
    target_element: int = 0
    built: bool = False
    """An index that has an entry for every row."""
    hidden: bool = False

    @property
    def collection(self) -> str:
        """Return the collection that holds what it stores."""
        return f"e{self.id}"


@dataclass(frozen=True, slots=True)
class TableSchema:
    id: int
    name: str
    state: TableState
    columns: tuple[TableColumn, ...]
    elements: tuple[Element, ...]
    cur: int = 1
    min: int = 1
    next_column: int = FIRST_COLUMN
    change: int = 0
    features: tuple[str, ...] = ()

    @property
    def primary(self) -> Element:
        """Return the primary key that rows are stored by."""
        return next(e for e in self.elements if e.kind is ElementKind.PRIMARY and e.state is State.PUBLIC)

    @property
    def collection(self) -> str:
        """Return the collection that holds the rows."""
        return self.primary.collection

    def column(self, name: str) -> TableColumn:
        """Return the public column of a name; case does not count, as in Spark."""
        for column in self.readable:
            if column.name.lower() == name.lower():
                return column
        known = tuple(column.name for column in self.readable if not column.hidden)
        raise UnknownColumnError(self.name, name, known)

    def column_by_id(self, number: int) -> TableColumn | None:
        return next((column for column in self.columns if column.id == number), None)

    def element(self, name: str) -> Element:
        """Return the index or the constraint of a name that people see."""
        for element in self.elements:
            if element.name.lower() == name.lower() and not element.hidden:
                return element
        raise UnknownElementError(self.name, name, tuple(e.name for e in self.elements if not e.hidden))

    def element_by_id(self, number: int) -> Element | None:
        return next((element for element in self.elements if element.id == number), None)

    @property
    def readable(self) -> tuple[TableColumn, ...]:
        """Return the columns that readers see, hidden ones too."""
        return tuple(column for column in self.columns if column.state is State.PUBLIC)

    @property
    def written(self) -> tuple[TableColumn, ...]:
        """Return the columns that every writer maintains, in the order of their ids."""
        return tuple(c for c in sorted(self.columns, key=lambda c: c.id) if self.counts(c))

    def counts(self, part: TableColumn | Element) -> bool:
        """Tell if a column or an element counts, for every writer: from its close on, and not before."""
        return part.since <= self.min and part.state is not State.DELETE

    @property
    def stores(self) -> tuple[Element, ...]:
        """Return the elements that every writer maintains the entries of, the rows' own among them."""
        return tuple(e for e in self.elements if e.kind in STORING and self.counts(e))

    def enforced(self, kind: ElementKind) -> tuple[Element, ...]:
        """Return the constraints of a kind that every writer is checked by."""
        return tuple(e for e in self.elements if e.kind is kind and self.counts(e) and e.state >= State.CHECK)

    @property
    def names(self) -> Mapping[int, str]:
        """Return the names of columns by id."""
        return {column.id: column.name for column in self.columns}

    @property
    def by_name(self) -> Mapping[str, tuple[int, ColumnType]]:
        """Return the columns that an expression may name."""
        return {column.name: (column.id, column.type) for column in self.readable if not column.hidden}

    def key_columns(self, element: Element | None = None) -> tuple[TableColumn, ...]:
        """Return the columns of an element, by default of the primary key, in its order."""
        wanted = (element or self.primary).columns
        found = {column.id: column for column in self.columns}
        return tuple(found[number] for number in wanted)

    def needing(self, number: int) -> Iterator[str]:
        """Yield the names of what depends on a column."""
        from catalog.engine.schema_change.expressions import columns_of  # noqa: PLC0415 - only planning asks

        for element in self.elements:
            used = {*element.columns, *element.stored, *(columns_of(element.check) if element.check else ())}
            if number in used and not element.hidden and element.kind is not ElementKind.NOT_NULL:
                yield element.name
        for column in self.columns:
            if column.computed is not None and number in columns_of(column.computed):
                yield column.name

    def with_columns(self, columns: Iterable[TableColumn]) -> TableSchema:
        """Return the schema with these columns in place of those of the same ids, new ones at the end."""
        put = {column.id: column for column in columns}
        kept = tuple(put.pop(column.id, column) for column in self.columns)
        added = (*kept, *put.values())
        return replace(self, columns=added, next_column=max([self.next_column, *(c.id + 1 for c in added)]))

    def with_elements(self, elements: Iterable[Element]) -> TableSchema:
        """Return the schema with these elements in place of those of the same ids, new ones at the end."""
        put = {element.id: element for element in elements}
        kept = tuple(put.pop(element.id, element) for element in self.elements)
        return replace(self, elements=(*kept, *put.values()))

    def without(self, *, columns: Iterable[int] = (), elements: Iterable[int] = ()) -> TableSchema:
        """Return the schema without some columns and elements."""
        gone, dropped = frozenset(columns), frozenset(elements)
        return replace(
            self,
            columns=tuple(column for column in self.columns if column.id not in gone),
            elements=tuple(element for element in self.elements if element.id not in dropped),
        )

    def require_known_features(self) -> None:
        """Refuse a table that a newer build gave what this one would write wrongly."""
        if unknown := tuple(sorted({*self.features} - FEATURES)):
            raise TableTooNewError(self.name, unknown)


def row_column() -> TableColumn:
    """Return the hidden column of a table without a primary key."""
    return TableColumn(FIRST_COLUMN, ROW_COLUMN, ColumnType(TypeName.BIGINT), hidden=True)
