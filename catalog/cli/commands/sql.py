"""`catalog sql`: statements about a store, answered by Spark.

A relation becomes a view of Spark when a statement names it, so that a query reads only the collections it names.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from catalog.cli.answer import CommandResult
from catalog.engine.spark.datasource.relations import Relation, Relations, collection_relations
from catalog.engine.spark.java import find_java
from catalog.engine.spark.session_start import SessionStart
from catalog.engine.spark.sql_statement import Statement, parse_statement
from catalog.errors import UnknownCollectionError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from catalog.cli.app import Invocation
    from catalog.cli.context import StoreTarget
    from catalog.cli.screen import Screen

Waiting = Callable[[str], AbstractContextManager[None]]
"""Shows a message while something takes long."""

_LISTING = re.compile(r"SHOW (?:TABLES|VIEWS)", re.IGNORECASE)
_DESCRIBING = re.compile(r"(?:DESCRIBE|DESC) (?:TABLE )?`?(\w+)`?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ColumnLine:
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class QueryResult:
    store: str
    version: int
    ts: int
    columns: tuple[ColumnLine, ...]
    rows: tuple[tuple[Any, ...], ...]
    """A value for each column; two columns may have the same name."""
    more: bool
    """True if the limit left rows out."""


def sql(run: Invocation, *, statement: str | None, as_of: int | None, limit: int, csv: bool) -> CommandResult:
    """Run a statement, or without one on a terminal the shell."""
    if csv and run.screen.format == "json":
        raise UsageError(
            "--csv and --format json exclude each other", "each says how to write rows", "give one of them"
        )
    session = SqlSession(run.target, as_of, limit, run.screen.waiting)
    if statement is None and run.screen.is_attended:
        from catalog.cli.commands.sql_shell import SqlShell  # noqa: PLC0415 - few sit at a terminal

        return SqlShell(session, run.screen, csv=csv).run()
    return rows_answer(run.screen, session.ask(_read_statement(statement)), csv=csv)


def relations(target: StoreTarget, as_of: int | None) -> Relations:
    """Return every relation that a statement can name, at one state of the store."""
    found = collection_relations(target.store, target.options, as_of, target.project.name)
    if as_of is not None:
        return found  # builtins have times of their own
    return replace(found, by_name=dict(sorted({**_builtins(target), **found.by_name}.items())))


def _builtins(target: StoreTarget) -> Mapping[str, Relation]:
    from catalog.engine.builtins.migrate import attach_as_found  # noqa: PLC0415
    from catalog.engine.builtins.tables import open_builtins  # noqa: PLC0415 - the past has none
    from catalog.engine.spark.datasource.shard_relations import ShardRelation  # noqa: PLC0415
    from catalog.engine.store.leadership import own_stash  # noqa: PLC0415

    place = target.place
    keeper = open_builtins(place, own_stash(place.project, target.look().log), None, attach_as_found)
    if keeper is None:
        return {}
    schemas = {name.object_name: used.schema for name, used in keeper.outcome.used.items()}
    return {name: ShardRelation(name, schema, partial(keeper.snapshot, name)) for name, schema in schemas.items()}


@dataclass(slots=True)
class SqlSession:
    """Statements about one store; the first one that needs Spark starts the session."""

    target: StoreTarget
    as_of: int | None
    limit: int
    waiting: Waiting
    _seen: Relations | None = None
    """The relations that the last statement found."""
    _start: SessionStart | None = None
    """It continues if the statement that waits for it is interrupted."""
    _session: SparkSession | None = None
    _views: dict[str, int] = field(default_factory=dict)
    """The ts of each view."""

    def ask(self, text: str) -> QueryResult:
        """Run a statement on the newest state, or on that of `as_of`."""
        statement = parse_statement(text)
        if not _LISTING.fullmatch(statement.bare) and not _DESCRIBING.fullmatch(statement.bare):
            self._begin()  # while the store is read
        found = self._seen = relations(self.target, self.as_of)
        if _LISTING.fullmatch(statement.bare):
            return self.listed()
        if (described := _DESCRIBING.fullmatch(statement.bare)) and described[1].lower() in found.by_name:
            return self.described(described[1].lower())
        return self._run(statement, found)

    def look(self) -> Relations:
        """Return the relations that the last statement found."""
        if self._seen is None:
            self._seen = relations(self.target, self.as_of)
        return self._seen

    def listed(self) -> QueryResult:
        """List every relation with the names of its columns."""
        found = self.look()
        rows = [(name, ", ".join(own.columns)) for name, own in found.by_name.items()]
        return _queried(found, (("relation", "string"), ("columns", "string")), rows)

    def described(self, name: str) -> QueryResult:
        """List the columns of a relation."""
        found = self.look()
        if name not in found.by_name:
            raise UnknownCollectionError(name, tuple(found.by_name))
        return _queried(found, (("column", "string"), ("type", "string")), list(found.by_name[name].columns.items()))

    def _run(self, statement: Statement, found: Relations) -> QueryResult:
        from catalog.engine.spark.sql_query import query  # noqa: PLC0415 - lists need no Spark

        session = self._started()

        def register() -> None:
            for name in statement.named(found.by_name):
                if self._views.get(name) != found.ts:
                    found.by_name[name].frame(session).createOrReplaceTempView(name)
                    self._views[name] = found.ts

        with self.waiting("running the statement"):
            result = query(session, statement, register, limit=self.limit, relations=tuple(found.by_name))
        columns = tuple(ColumnLine(column.name, column.type) for column in result.columns)
        return QueryResult(found.store, found.version, found.ts, columns, result.rows, result.more)

    def _begin(self) -> None:
        """Start Spark in the background, unless that was done and did not fail."""
        if self._start is not None and not self._start.is_failed:
            return
        if find_spec("pyspark") is None:
            raise UsageError(
                "Spark runs statements, and pyspark is not installed",
                "`catalog show` reads collections without it",
                "install Java 17 or 21, then Spark: pip install 'stash-catalog[spark]'",
            )
        self._require_java()
        self._session, self._start = None, SessionStart(self.target.spark, self.target.class_archive, warms_up=False)
        self._start.begin()

    def _started(self) -> SparkSession:
        from catalog.engine.spark.session import own_session  # noqa: PLC0415 - the thread loads it
        from catalog.engine.spark.sql_plan import make_read_only  # noqa: PLC0415

        self._begin()
        with self.waiting("starting Spark"):
            if self._session is None:
                session = own_session(self._start.session())  # type: ignore[union-attr]  # it was just begun
                self._session = make_read_only(session)
            return self._session

    def _require_java(self) -> None:
        """Refuse, before Spark is started, if there is no Java for it."""
        if self.target.spark is not None or os.environ.get("SPARK_REMOTE"):
            return
        java = find_java(os.environ)
        if java is None or not java.is_there:
            found = "there is no Java" if java is None else f"JAVA_HOME is wrong: there is no {java.program}"
            raise UsageError(
                f"Spark runs statements, and {found}",
                "`catalog show` reads collections without it",
                "install Java 17 or 21 and set JAVA_HOME, or put it on the path and unset JAVA_HOME",
            )


def rows_answer(screen: Screen, found: QueryResult, *, csv: bool) -> CommandResult:
    """Return the result in the format asked for; of CSV, a note about missing rows goes to standard error."""
    if not csv:
        return CommandResult(found)
    if found.more:
        screen.note(f"there are more than {len(found.rows):,} rows: see --limit")
    return CommandResult(found, renderer="render_csv")


def _read_statement(given: str | None) -> str:
    """Return the given statement, or read it from standard input."""
    if given not in {None, "-"}:
        return str(given)
    try:
        return sys.stdin.read() if sys.stdin is not None else ""
    except (OSError, ValueError) as error:
        raise UsageError(
            f"standard input cannot be read: {error}",
            "it must contain a statement",
            "give the statement as an argument, or as UTF-8 in a file or pipe",
        ) from error


def _queried(found: Relations, columns: Iterable[tuple[str, str]], rows: Sequence[tuple[Any, ...]]) -> QueryResult:
    described = tuple(ColumnLine(name, kind) for name, kind in columns)
    return QueryResult(found.store, found.version, found.ts, described, tuple(rows), more=False)
