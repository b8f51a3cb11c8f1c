"""The context that an operation plans in: the schemas of all tables at one state, and how names are found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from catalog.engine.schema_change.expressions import Expression, RawExpression, resolve
from catalog.engine.schema_change.plan import Ids
from catalog.engine.schema_change.schema import Element, ElementKind, State, TableColumn, TableSchema, TableState
from catalog.engine.schema_change.types import ColumnType
from catalog.errors.tables import NameTakenError, RefusedChangeError, SchemaChangedError, UnknownTableError


@dataclass(frozen=True, slots=True)
class Planning:
    schemas: Mapping[int, TableSchema]
    table_ids: Callable[[str], int | None]
    """Returns the id of the table that a name leads to; none if there is none."""
    canonical: Callable[[str], str]
    """Returns a name as it is kept: with that of its schema."""
    ids: Ids
    new_table: int = 0
    """The id that a table to be created has."""
    has_rows: Callable[[TableSchema], bool] = lambda _schema: True
    ts: int = 0

    def table(self, name: str) -> TableSchema:
        """Return the schema of a table that is there for its users."""
        number = self.table_ids(name)
        found = None if number is None else self.schemas.get(number)
        if found is None:
            raise UnknownTableError(name, tuple(sorted(schema.name for schema in self.schemas.values())))
        if found.state is not TableState.PUBLIC:
            raise SchemaChangedError(found.name, self.ts, "it is being created or dropped")
        found.require_known_features()
        return found

    def referring(self, table: int) -> list[tuple[TableSchema, Element]]:
        """Return the foreign keys of other tables, and of its own, that refer to a table."""
        return [
            (schema, element)
            for schema in self.schemas.values()
            for element in schema.elements
            if element.kind is ElementKind.FOREIGN_KEY and element.target == table
        ]


def require_free_name(schema: TableSchema, name: str, *, besides: Iterable[int] = ()) -> None:
    """Refuse a name that a column, an index or a constraint of the table has."""
    others = {element.name.lower() for element in schema.elements if element.id not in besides and not element.hidden}
    if name.lower() in others:
        raise NameTakenError(schema.name, name)


def require_free_column(schema: TableSchema, name: str) -> None:
    if any(column.name.lower() == name.lower() for column in schema.columns):
        raise NameTakenError(schema.name, name)


def free_name(schema: TableSchema, wanted: str) -> str:
    """Return a name for an element that the statement gives none."""
    taken = {element.name.lower() for element in schema.elements}
    number, name = 1, wanted
    while name.lower() in taken:
        number, name = number + 1, f"{wanted}_{number + 1}"
    return name


def typed(schema: TableSchema, raw: RawExpression, wanted: ColumnType | None = None) -> Expression:
    """Return an expression over the columns of a table."""
    return resolve(raw, schema.by_name, wanted=wanted)


def key_columns(schema: TableSchema, names: Iterable[str], what: str) -> tuple[TableColumn, ...]:
    """Return the columns that an index or a key is over; refuse types without an order of bytes, and doubles twice."""
    columns = tuple(schema.column(name) for name in names)
    for column in columns:
        if not column.type.fits_key:
            raise RefusedChangeError(
                schema.name,
                f"{column.name} is {column.type.text}, which {what} cannot hold",
                "leave the column out, or change its type",
            )
    if len({column.id for column in columns}) < len(columns):
        raise RefusedChangeError(schema.name, f"{what} names a column twice", "name each column once")
    return columns


def index_over(schema: TableSchema, columns: tuple[int, ...]) -> Element | None:
    """Return a complete index that begins with these columns, in this order."""
    return next(
        (
            element
            for element in schema.elements
            if element.kind is ElementKind.INDEX
            and element.built
            and element.state is State.PUBLIC
            and element.columns[: len(columns)] == columns
        ),
        None,
    )
