"""The verb that asks: sql. It prints nothing, and leaves the store as it is.

Relations become views of Spark only when a statement names them, so that asking for one collection reads only that.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from catalog.cli.environment import Environment
from catalog.cli.inquiries import ColumnLine, Csv, Queried
from catalog.cli.render import Screen
from catalog.cli.results import Answer
from catalog.datasource.relations import Relation, Relations, collection_relations
from catalog.errors import UnknownCollectionError, UsageError
from catalog.spark.java import find_java
from catalog.spark.statements import Statement, parse_statement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Waiting = Callable[[str], AbstractContextManager[None]]
"""Shows what is waited for, while it is."""

_LISTING = re.compile(r"SHOW (?:TABLES|VIEWS)", re.IGNORECASE)
_DESCRIBING = re.compile(r"(?:DESCRIBE|DESC) (?:TABLE )?`?(\w+)`?", re.IGNORECASE)


def relations(environment: Environment, as_of: int | None) -> Relations:
    """All that a statement can name, of one state of the store: the one place where relations are put together."""
    found = collection_relations(environment.store, environment.options, as_of, environment.project.name)
    if as_of is not None:
        return found  # builtins have times of their own
    return replace(found, by_name=dict(sorted({**_builtins(environment), **found.by_name}.items())))


def _builtins(environment: Environment) -> Mapping[str, Relation]:
    from catalog.builtin.keeping import keep  # noqa: PLC0415 - the past has none
    from catalog.builtin.run import find  # noqa: PLC0415
    from catalog.datasource.shard_relations import ShardRelation  # noqa: PLC0415
    from catalog.leading import own_stash  # noqa: PLC0415

    place = environment.place
    keeper = keep(place, own_stash(place.project, environment.look().log), None, find)
    if keeper is None:
        return {}
    schemas = {name.object_name: used.schema for name, used in keeper.outcome.used.items()}
    return {name: ShardRelation(name, schema, partial(keeper.snapshot, name)) for name, schema in schemas.items()}


@dataclass(slots=True)
class Inquiry:
    """Statements to one store, in one session of Spark that the first one starts which needs it."""

    environment: Environment
    as_of: int | None
    limit: int
    waiting: Waiting
    _seen: Relations | None = None
    """As the newest statement found them."""
    _session: Future[SparkSession] | None = None
    """It goes on starting if whoever waits for it is interrupted."""
    _views: dict[str, int] = field(default_factory=dict)
    """The ts that each view is of."""

    def ask(self, text: str) -> Queried:
        """What a statement answers, of the newest state or of the one that was asked for."""
        statement = parse_statement(text)
        found = self._seen = relations(self.environment, self.as_of)
        if _LISTING.fullmatch(statement.bare):
            return self.listed()
        if (described := _DESCRIBING.fullmatch(statement.bare)) and described[1].lower() in found.by_name:
            return self.described(described[1].lower())
        return self._run(statement, found)

    def look(self) -> Relations:
        """What there was to ask for when something was asked last."""
        if self._seen is None:
            self._seen = relations(self.environment, self.as_of)
        return self._seen

    def listed(self) -> Queried:
        """Every relation, with the names of its columns."""
        found = self.look()
        rows = [(name, ", ".join(own.columns)) for name, own in found.by_name.items()]
        return _queried(found, (("relation", "string"), ("columns", "string")), rows)

    def described(self, name: str) -> Queried:
        """The columns of a relation."""
        found = self.look()
        if name not in found.by_name:
            raise UnknownCollectionError(name, tuple(found.by_name))
        return _queried(found, (("column", "string"), ("type", "string")), list(found.by_name[name].columns.items()))

    def _run(self, statement: Statement, found: Relations) -> Queried:
        from catalog.spark.queries import query  # noqa: PLC0415 - lists need no Spark

        session = self._started()

        def register() -> None:
            for name in statement.named(found.by_name):
                if self._views.get(name) != found.ts:
                    found.by_name[name].frame(session).createOrReplaceTempView(name)
                    self._views[name] = found.ts

        with self.waiting("asking"):
            result = query(session, statement, register, limit=self.limit, relations=tuple(found.by_name))
        columns = tuple(ColumnLine(column.name, column.type) for column in result.columns)
        return Queried(found.store, found.version, found.ts, columns, result.rows, result.more)

    def _started(self) -> SparkSession:
        if self._session is None or (self._session.done() and self._session.exception()):
            if find_spec("pyspark") is None:
                raise UsageError(
                    "a statement is answered by Spark, and pyspark is not installed",
                    "collections can be looked at without it, by `catalog show`",
                    "pip install 'stash-catalog[spark]', beside Java 17 or 21",
                )
            self._require_java()
            starter = ThreadPoolExecutor(1, "catalog-spark")
            self._session = starter.submit(_start, self.environment.spark)
            starter.shutdown(wait=False)
        with self.waiting("starting Spark"):
            return self._session.result()

    def _require_java(self) -> None:
        """Refuse before Spark is started where it could only fail."""
        if self.environment.spark is not None or os.environ.get("SPARK_REMOTE"):
            return
        java = find_java(os.environ)
        if java is None or not java.is_there:
            found = "there is no Java" if java is None else f"JAVA_HOME leads to none: there is no {java.program}"
            raise UsageError(
                f"a statement is answered by Spark, and {found}",
                "collections can be looked at without it, by `catalog show`",
                "install Java 17 or 21 and set JAVA_HOME, or put it on the path and unset JAVA_HOME",
            )


def rows_answer(screen: Screen, found: Queried, *, csv: bool) -> Answer:
    """Rows as they are to be shown; of CSV, whatever is no row is said beside it."""
    if not csv:
        return Answer(found)
    if found.more:
        screen.note(f"there are more than {len(found.rows):,} rows: see --limit")
    return Answer(Csv(found))


def read_statement(given: str | None) -> str:
    """A statement that was given, or that standard input holds."""
    if given not in {None, "-"}:
        return str(given)
    try:
        return sys.stdin.read() if sys.stdin is not None else ""
    except (OSError, ValueError) as error:
        raise UsageError(
            f"standard input cannot be read: {error}",
            "it was to hold a statement",
            "give the statement itself, or a file or pipe that holds it as UTF-8",
        ) from error


def _start(address: str | None) -> SparkSession:
    from catalog.spark.session import find_session, own_session  # noqa: PLC0415

    return own_session(find_session(address))


def _queried(found: Relations, columns: Iterable[tuple[str, str]], rows: Sequence[tuple[Any, ...]]) -> Queried:
    told = tuple(ColumnLine(name, kind) for name, kind in columns)
    return Queried(found.store, found.version, found.ts, told, tuple(rows), more=False)
