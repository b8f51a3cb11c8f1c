"""Errors of tables: statements, expressions, rows and schema changes."""

from __future__ import annotations

from difflib import get_close_matches

from catalog.errors.base import CatalogError, ConstraintError, RetryableError
from catalog.errors.cli import StoppedError


def _suggestion(name: str, known: tuple[str, ...], otherwise: str) -> str:
    close = get_close_matches(name.lower(), known, 1)
    if close:
        return f"did you mean {close[0]}?"
    return f"use one of: {', '.join(known)}" if known else otherwise


class UnknownTableError(CatalogError):
    name: str
    known: tuple[str, ...]
    what = "there is no table {name}"
    why = "a table is found by its name, within its schema"
    next = "{suggestion}"

    @property
    def suggestion(self) -> str:
        return _suggestion(self.name, self.known, 'create it first: `catalog ddl run "CREATE TABLE …"`')


class TableExistsError(CatalogError):
    name: str
    what = "there is already something named {name}"
    why = "a table, a view and a function of one schema have one name each"
    next = "choose another name, or say IF NOT EXISTS"


class UnknownColumnError(CatalogError):
    table: str
    name: str
    known: tuple[str, ...]
    what = "{table} has no column {name}"
    why = "names of columns are those of the schema that the statement or the transaction sees"
    next = "{suggestion}"

    @property
    def suggestion(self) -> str:
        return _suggestion(self.name, self.known, "add the column first")


class UnknownElementError(CatalogError):
    table: str
    name: str
    known: tuple[str, ...]
    what = "{table} has no index or constraint {name}"
    why = "indexes and constraints are found by their names, within their table"
    next = "{suggestion}"

    @property
    def suggestion(self) -> str:
        return _suggestion(self.name, self.known, "the table has none; leave the statement out")


class NameTakenError(CatalogError):
    table: str
    name: str
    what = "{table} already has a column, an index or a constraint {name}"
    why = "each of them has a name of its own within its table"
    next = "choose another name"


class UnsupportedStatementError(CatalogError):
    statement: str
    found: str
    what = "not supported: {found}"
    why = "the statement is {statement}"
    next = (
        "use CREATE, DROP or ALTER TABLE, CREATE or DROP INDEX in the forms that `docs/tables.md` lists; rows are "
        "written by transactions and by `append`, `upsert` and `delete`"
    )


class StatementSyntaxError(CatalogError):
    statement: str
    found: str
    what = "the statement cannot be read: {found}"
    why = "the statement is {statement}"
    next = "correct it; `docs/tables.md` lists the forms of statements"


class UnsupportedTypeError(CatalogError):
    text: str
    found: str
    what = "{text} is no type of a column: {found}"
    why = "types are BOOLEAN, INT, BIGINT, DOUBLE, STRING, BINARY, DATE, TIMESTAMP, DECIMAL(p,s) to 18 digits, ARRAY<…>"
    next = "use one of these"


class UnsupportedExpressionError(CatalogError):
    expression: str
    found: str
    what = "the expression {expression} is not supported: {found}"
    why = "expressions of tables are evaluated alike in transactions and on Spark, so only what both know is allowed"
    next = "write it with the functions and types that `docs/tables.md` lists, and cast where types differ"


class ExpressionFailedError(CatalogError):
    expression: str
    found: str
    what = "{expression} cannot be computed: {found}"
    why = "expressions are checked as in ANSI SQL: no overflow, no failing cast, no division by zero"
    next = "correct the row, or the expression"


class SchemaChangedError(RetryableError):
    table: str
    ts: int
    found: str
    what = "{table} was changed at ts {ts}: {found}"
    why = "a transaction, a stream and a bulk write keep the schema that they began with"
    next = "run it again: it then sees the new schema"


class BulkWriteExpiredError(RetryableError):
    table: str
    id: str
    what = "the bulk write {id} to {table} is no longer registered"
    why = (
        "it showed no sign of life for too long, so that schema changes went on without it; nothing of it was committed"
    )
    next = "run it again"


class ValueMismatchError(ConstraintError):
    table: str
    column: str
    found: str
    needed: str
    what = "{table}.{column} cannot hold {found}"
    why = "the column is {needed}"
    next = "pass such a value, or change the type of the column"


class NotNullError(ConstraintError):
    table: str
    key: str
    column: str
    what = "the row {key} of {table} has no {column}"
    why = "the column is NOT NULL"
    next = "give it a value, a default, or drop the constraint"


class CheckError(ConstraintError):
    table: str
    key: str
    name: str
    expression: str
    what = "the row {key} of {table} violates {name}"
    why = "it requires that {expression}"
    next = "correct the row, or drop the constraint"


class UniqueError(ConstraintError):
    table: str
    name: str
    columns: tuple[str, ...]
    keys: tuple[str, ...]
    what = "two rows of {table} have one value of {columns}: {rows}"
    why = "{name} is unique"
    next = "give one of them another value"

    @property
    def rows(self) -> str:
        return "; ".join(self.keys)


class ForeignKeyError(ConstraintError):
    table: str
    name: str
    key: str
    target: str
    referred: str
    what = "the row {key} of {table} refers to {referred} of {target}, which is not there or would go"
    why = "{name} is a foreign key: rows that are referred to stay, and rows refer to rows that are there"
    next = "write the row that is referred to in the same transaction, or remove the reference first"


class SchemaChangeFailedError(CatalogError):
    change: int
    statement: str
    rule: str
    keys: tuple[str, ...]
    count: int
    found: str
    what = "{statement} failed, and is undone: nothing is left of it; {found}"
    why = "{rule}: {count} violations{examples}"
    next = "correct the rows, then run the statement again"

    @property
    def examples(self) -> str:
        return f", such as {'; '.join(self.keys)}" if self.keys else ""


class UnknownChangeError(CatalogError):
    change: int
    what = "there is no schema change {change}"
    why = "changes are numbered as they are submitted"
    next = "`catalog ddl list --all` shows them"


class NotRevertibleError(CatalogError):
    change: int
    status: str
    what = "schema change {change} cannot be cancelled: it is {status}"
    why = "it has become visible, so that others may depend on it"
    next = "run the opposite statement instead"


class ChangeStatusError(CatalogError):
    change: int
    verb: str
    status: str
    what = "schema change {change} cannot be {verb}: it is {status}"
    why = (
        "a change is paused or cancelled before it is over, and resumed if it was paused, is held, or was left by its "
        "process; one that a living process carries out goes on by itself"
    )
    next = "`catalog ddl show {change}` shows it, and `--follow` follows it"


class ChangeStoppedError(CatalogError):
    change: int
    status: str
    what = "schema change {change} did not become visible: it is {status}"
    why = "another process has paused or cancelled it"
    next = "`catalog ddl show {change}` shows what was done; `catalog ddl resume {change}` goes on if it is PAUSED"


class ChangeLeftError(StoppedError):
    change: int = 0

    def templates(self) -> tuple[str, str, str]:
        fix = (
            "`catalog ddl resume {change}` carries it on, `catalog ddl cancel {change}` undoes it, and "
            "`catalog ddl show {change} --follow` follows it; the next leader of the store takes it up"
        )
        return (
            "stopped by {by}; schema change {change} is left as it is, and nobody carries it out now",
            "what it has done so far is committed; reads and writes of its tables go on",
            fix,
        )


class ChangeOvertakenError(CatalogError):
    change: int
    owner: str
    what = "schema change {change} is run by {owner} now"
    why = "another process took it over because this one showed no sign of life"
    next = "leave it alone; `catalog ddl show {change}` follows it"


class NeededElsewhereError(CatalogError):
    table: str
    name: str
    needed_by: tuple[str, ...]
    what = "{name} of {table} is needed by {needed_by}"
    why = "without it they would mean nothing"
    next = "drop or change these first"


class RefusedChangeError(CatalogError):
    table: str
    found: str
    fix: str
    what = "{table} cannot be changed so: {found}"
    why = "the change was judged against the schema and the rows before anything was done"
    next = "{fix}"


class TableTooNewError(CatalogError):
    table: str
    features: tuple[str, ...]
    what = "{table} needs {features}, which this build does not know"
    why = "a newer build gave the table what this one would write wrongly"
    next = "upgrade this program"


class UnfitFrameError(CatalogError):
    table: str
    found: str
    what = "the frame does not fit {table}: {found}"
    why = "a bulk write takes the columns of the table by name and type; columns with defaults may be missing"
    next = "select, cast or rename its columns"
