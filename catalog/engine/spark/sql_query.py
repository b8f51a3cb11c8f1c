"""Answers of Spark to statements that only read: rows as plain data, or a short error."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from catalog.engine.spark.jobs import Job, silence_query_loggers
from catalog.engine.spark.sql_plan import (
    is_classic,
    require_own_plan_text,
    require_own_relations,
    require_read_plan,
)
from catalog.engine.spark.sql_statement import Statement
from catalog.engine.stash.json_rows import float_to_json
from catalog.errors import CatalogError, SparkJobError, StatementError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OF_STATEMENTS: Final = ("0A", "21", "22", "42", "P0")
"""The classes of SQLSTATE for which a statement is to blame."""
_OURS = re.compile(r"\bcatalog\.errors\.[\w.]*Error: (.+)\nwhy:  (.+)\nnext: (.+)")
_PLACE = re.compile(r"\(line (\d+), pos (\d+)\)|; line (\d+) pos (\d+)")
_ADVICE = re.compile(r"(?:Use|Add|Correct|Consider|Specify|Provide|Rewrite|Check) .*")
_SHOWN: Final = 100
_QUOTED: Final = "`"
_WRAPPED: Final = "SELECT * FROM (\n{}\n)"
"""The check of a statement if Spark's parser cannot be asked: only a query may stand between parentheses."""


@dataclass(frozen=True, slots=True)
class ResultColumn:
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class SqlResult:
    columns: tuple[ResultColumn, ...]
    rows: tuple[tuple[Any, ...], ...]
    """As JSON has them; times are texts, bytes are bytes, and what is null in a struct is left out."""
    more: bool
    """True if there are more than were asked for."""


def query(
    session: SparkSession,
    statement: Statement,
    prepare: Callable[[], None],
    *,
    limit: int = 0,
    relations: Collection[str] = (),
) -> SqlResult:
    """Return the rows of a statement, or the first of them; an interruption cancels it.

    `prepare` is called before. `relations` are the names to suggest where one is not found.
    """
    silence_query_loggers()
    columns: list[ResultColumn] = []

    def collect() -> list[Any]:
        prepare()
        if job.is_ending.is_set():
            return []
        frame = _checked(session, statement, relations)
        columns.extend(ResultColumn(field.name, field.dataType.simpleString()) for field in frame.schema.fields)
        wanted = frame.limit(limit + 1) if limit else frame
        return [] if job.is_ending.is_set() else wanted.collect()

    job = Job(session, collect)
    try:
        rows = job.run(lambda _done, _count: None, 0)
    except SparkJobError as error:
        raise _translated(error, statement.text, relations, is_wrapped=not is_classic(session)) from error
    first = rows[:limit] if limit else rows
    return SqlResult(tuple(columns), tuple(tuple(map(_plain, row)) for row in first), len(rows) > len(first))


def _checked(session: SparkSession, statement: Statement, relations: Collection[str]) -> Any:  # noqa: ANN401 - a frame of either kind
    """Return the rows of a statement, after Spark has parsed and resolved it, and before it runs."""
    if is_classic(session):
        require_read_plan(session, statement)
        frame: Any = session.sql(statement.sent)
        require_own_relations(session, frame, relations)
        return frame
    if not statement.is_query:
        return session.sql(statement.sent)  # its first word cannot begin anything that writes
    frame = session.sql(_WRAPPED.format(statement.sent))
    require_own_plan_text(frame._explain_string(extended=True))  # noqa: SLF001 - the text that `explain` prints
    return frame


def _translated(failed: SparkJobError, statement: str, relations: Collection[str], *, is_wrapped: bool) -> CatalogError:
    """Return an error for the author of the statement, without a stack of Java."""
    from pyspark.errors import AnalysisException, ParseException, PySparkException  # noqa: PLC0415

    error = failed.__cause__
    if isinstance(error, CatalogError):
        return error
    if (ours := _OURS.search(str(error))) is not None:  # raised by a task that reads the store
        return CatalogError(*ours.groups())
    if not isinstance(error, PySparkException) or not error.getCondition():
        return failed
    is_wrong = isinstance(error, AnalysisException | ParseException)
    if not is_wrong and not str(error.getSqlState()).startswith(_OF_STATEMENTS):
        return failed
    found, *advice = _sentences(error.getMessage())
    position, excerpt = _pointed(error, statement, len(_WRAPPED.partition("{")[0]) if is_wrapped else 0)
    named = error.getMessageParameters() or {}
    fix = _fix(str(error.getCondition()), named, relations)
    return StatementError(
        _begun(found), position, excerpt, fix or _begun(next(filter(_ADVICE.match, advice), "correct it"))
    )


def _begun(sentence: str) -> str:
    """Return a sentence as it stands after a colon."""
    return sentence[:1].lower() + sentence[1:]


def _sentences(message: str) -> list[str]:
    """Return the sentences of Spark's message, without codes."""
    text = re.sub(r"^\[[\w.]+\]\s*|\s*SQLSTATE: \w+.*$", "", message.strip(), flags=re.DOTALL)
    return [part.strip().rstrip(".") for part in re.split(r"(?<=[.!?])\s+|\n", text) if part.strip()] or [message]


def _fix(condition: str, named: Mapping[str, str], relations: Collection[str]) -> str | None:
    if condition.startswith("TABLE_OR_VIEW_NOT_FOUND"):
        name = named.get("relationName", "").replace(_QUOTED, "")
        close = get_close_matches(name, relations, 1)
        return f"did you mean {close[0]}?" if close else "SHOW TABLES lists what there is"
    proposals = [own.rpartition(".")[2] for own in named.get("proposal", "").replace(_QUOTED, "").split(", ") if own]
    return (
        f"did you mean {', '.join(proposals[:-1])} or {proposals[-1]}?"
        if proposals[1:]
        else (f"did you mean {proposals[0]}?" if proposals else None)
    )


def _pointed(error: Any, statement: str, before: int) -> tuple[str, str]:  # noqa: ANN401 - pyspark has no types
    """Return where in the statement the error is, and that line of it with the place marked."""
    start, length = _place(error, statement, before)
    if start is None:
        return "", _cut(" ".join(statement.split()))
    line = statement.count("\n", 0, start)
    begin = statement.rfind("\n", 0, start) + 1
    text = statement[begin:].partition("\n")[0]
    column = start - begin
    marked = f"{text[:column]}»{text[column : column + length]}«{text[column + length :]}" if length else text
    return f"line {line + 1}, column {column + 1}", _cut(marked.strip(), max(0, column - _SHOWN // 2))


def _place(error: Any, statement: str, before: int) -> tuple[int | None, int]:  # noqa: ANN401
    """Return where the error begins and its length; `before` are the characters of the line before the statement."""
    for context in error.getQueryContext() or ():
        if context.contextType().name == "SQL" and context.objectType() != "VIEW":
            return max(0, context.startIndex() - before), context.stopIndex() - context.startIndex() + 1
    if (found := _PLACE.search(str(error))) is None:
        return None, 0
    line, column = (int(number) for number in found.groups() if number)
    line -= 1 if before else 0
    start = min(len(statement), sum(len(own) + 1 for own in statement.split("\n")[: line - 1]) + column)
    word = re.match(r"\w+|.", statement[start:])
    return start, len(word[0]) if word else 0


def _cut(text: str, start: int = 0) -> str:
    before, after = "…" if start else "", "…" if len(text) > start + _SHOWN else ""
    return f"{before}{text[start : start + _SHOWN]}{after}"


def _plain(value: Any) -> Any:  # noqa: ANN401, PLR0911 - whatever Spark has
    from pyspark.sql import Row  # noqa: PLC0415

    match value:
        case Row():
            members = zip(value.__fields__, value, strict=True)
            return {name: _plain(own) for name, own in members if own is not None}
        case list() | tuple():
            return [_plain(own) for own in value]
        case Mapping():
            return {str(_plain(name)): _plain(own) for name, own in value.items()}
        case Decimal():
            return int(value) if value == value.to_integral_value() and value.as_tuple().exponent == 0 else str(value)
        case float():
            return float_to_json(value)
        case None | bool() | int() | str():
            return value
        case bytes() | bytearray():
            return bytes(value)
        case date() | datetime() | time():
            return value.isoformat()
        case _:
            return str(value)
