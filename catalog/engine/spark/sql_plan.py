"""Plans of Spark: which of them only read the relations of a store.

A plan is judged by the classes of its tree, as Spark has parsed it and again as Spark has resolved it. What is not
known to read is refused: an operator, a function or a relation that a later Spark adds, too. Loads no pyspark.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from catalog.engine.spark.sql_statement import ACTING_FUNCTIONS, LEAVE_OUT, Statement
from catalog.errors import StatementError, StatementRefusedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READ_ONLY: Final = {
    "fs.file.impl": "catalog.no.file.system",
    "fs.file.impl.disable.cache": "true",
    "fs.hdfs.impl": "catalog.no.file.system",
    "fs.hdfs.impl.disable.cache": "true",
    "fs.s3a.impl": "catalog.no.file.system",
    "fs.s3a.impl.disable.cache": "true",
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.scripting.enabled": "false",
    "spark.sql.variable.substitute": "false",
}
"""Settings of a session that has no file system and replaces nothing in a statement.

The second line of defence: relations of a store are read by Python and need none of it.
"""

_CATALYST: Final = "org.apache.spark.sql.catalyst."
_HARMLESS: Final = (
    "java.",
    "org.apache.spark.sql.types.",
    "org.apache.spark.sql.util.",
    "org.apache.spark.unsafe.",
    "scala.",
)
"""Packages of data that a plan holds: numbers, texts, types, options."""
_HOLDERS: Final = ("scala.Some", "scala.Tuple", "scala.collection.", "scala.util.")
_PARTS: Final = re.compile(r"(?:AliasIdentifier|FunctionIdentifier|TableIdentifier|plans\.\w+\$?)")
"""Names, and the kinds of joins."""
_OPERATORS: Final = frozenset(
    """
    Aggregate AsOfJoin CTERelationDef CTERelationRef Distinct Except Expand Filter Generate GlobalLimit HintInfo
    Intersect Join JoinHint LateralJoin LocalLimit LocalRelation NearestByJoin Offset OneRowRelation Pivot Project Range
    RebalancePartitions Repartition RepartitionByExpression ResolvedHint Sample Sort SubqueryAlias Union UnionLoop
    UnionLoopRef Unpivot UnresolvedHint UnresolvedWith Window WithCTE WithWindowDefinition
    """.split()  # noqa: SIM905 - a list of words is read more easily
)
_UNRESOLVED: Final = frozenset(
    """
    GetColumnByOrdinal MultiAlias NamedParameter PosParameter ResolvedInlineTable UnresolvedAlias UnresolvedAttribute
    UnresolvedDeserializer UnresolvedExtractValue UnresolvedFunction UnresolvedGenerator UnresolvedHaving
    UnresolvedInlineTable UnresolvedOrdinal UnresolvedRegex UnresolvedRelation UnresolvedStar
    UnresolvedStarExceptOrReplace UnresolvedStarWithColumns UnresolvedSubqueryColumnAliases UnresolvedTVFAliases
    UnresolvedTableValuedFunction
    """.split()  # noqa: SIM905
)
_COMMANDS: Final = frozenset(
    """
    DescribeColumn DescribeFunction DescribeNamespace DescribeQueryCommand DescribeRelation ExplainCommand
    ShowCatalogsCommand ShowColumns ShowCreateTable ShowCurrentNamespaceCommand ShowFunctions ShowNamespaces
    ShowNamespacesCommand ShowPartitions ShowTableProperties ShowTables ShowTablesExtended ShowViews
    """.split()  # noqa: SIM905
)
"""Statements that tell about relations; they stand at the root only."""
_COMMAND_PARTS: Final = frozenset(
    {"CurrentNamespace", "Ddl", "QueryLike", "UnresolvedFunctionName", "UnresolvedNamespace", "UnresolvedTableOrView"}
)
_ACTING_EXPRESSIONS: Final = re.compile(
    r"Reflect|InputFile|UDF|UDTF|UserDefined|Python|Protobuf|Avro|Xml|External|Executable|DynamicPruning.*Exec"
)
_WHOLE: Final = frozenset({"AttributeReference", "Literal", "LocalRelation", "UnresolvedAttribute", "UnresolvedStar"})
"""Classes that hold nothing to look into."""
_PRINTED: Final = re.compile(r"(?m)^[ :]*[+:]- '?~?(\w+)(.*)$")
"""A line of a plan below its root, which is the projection around the statement."""
_OPERATORS_TOLD: Final = _OPERATORS | {"LogicalRDD", "MapInArrow", "PythonMapInArrow", "RelationV2", "View"}
"""With those by which relations of a store are read; no statement has words for them."""
_OWN_RELATION: Final = re.compile(r"\] catalog\b")
_REASONS: Final = {"Script": "it runs a program", "Insert": "it writes", "Identifier": "it hides what it names"}


def is_classic(session: SparkSession) -> bool:
    """Tell if the session is in this process, so that its parser can be asked."""
    return not type(session).__module__.startswith("pyspark.sql.connect")


def make_read_only(session: SparkSession) -> SparkSession:
    """Return the session after taking from it what a write needs."""
    for name, value in READ_ONLY.items():
        session.conf.set(name, value)
    return session


def require_read_plan(session: SparkSession, statement: Statement) -> None:
    """Refuse a statement unless Spark parses it as a query, or as one that tells about relations."""
    parsed = _jvm_session(session).sessionState().sqlParser().parsePlan(statement.sent)
    name = _class(parsed).rpartition(".")[2]
    functions = _BuiltinFunctions(session)
    extra: frozenset[str] = frozenset()
    if name in _COMMANDS:
        inner = {"ExplainCommand": "logicalPlan", "DescribeQueryCommand": "plan"}.get(name)
        if inner is not None:
            _require(getattr(parsed, inner)(), functions, extra)
            return
        extra = _COMMAND_PARTS | {name}
    _require(parsed, functions, extra)


def require_own_relations(session: SparkSession, frame: Any, relations: Collection[str]) -> None:  # noqa: ANN401 - pyspark's
    """Refuse a query that Spark has resolved to other relations than those of the store."""
    analyzed = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - no public way leads to the plan
    if _class(analyzed).startswith(_CATALYST):  # or a command that was let through, and has run
        _require(analyzed, _BuiltinFunctions(session), frozenset(), frozenset(relations))


def require_own_plan_text(explained: str) -> None:
    """Refuse a query of a server by what Spark tells of its plan: an operator or a relation that is not ours.

    What a statement could add to that text makes more lines, and none less.
    """
    analyzed = explained.partition("== Analyzed Logical Plan ==")[2].rpartition("== Optimized Logical Plan ==")[0]
    for name, rest in _PRINTED.findall(analyzed):
        if name not in _OPERATORS_TOLD or (name == "RelationV2" and not _OWN_RELATION.search(rest)):
            raise _refused_operator(name)


def _require(
    root: Any,  # noqa: ANN401 - Java's
    functions: _BuiltinFunctions,
    extra: frozenset[str],
    relations: frozenset[str] = frozenset(),
) -> None:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        kind = _class(node)
        name = re.split(r"[.$]", kind.rstrip("$"))[-1]
        if kind.startswith(_HOLDERS):
            waiting += _members(node.iterator() if kind.startswith("scala.collection.") else node.productIterator())
        elif kind.startswith(_HARMLESS):
            continue
        elif name == "View" and relations:
            if not (node.isTempView() and node.desc().identifier().table().lower() in relations):
                raise _refused_relation(node.desc().identifier().unquotedString())
        elif not _is_allowed(kind, name, extra):
            raise _refused_operator(name)
        else:
            _require_names(node, name, functions)
            if name not in _WHOLE:
                waiting += _members(node.productIterator())


def _is_allowed(kind: str, name: str, extra: frozenset[str]) -> bool:
    package, _, rest = kind.removeprefix(_CATALYST).partition(".") if kind.startswith(_CATALYST) else ("", "", "")
    if name in extra:
        return True
    match package:
        case "expressions":
            return _ACTING_EXPRESSIONS.search(name) is None
        case "plans" if rest.startswith("logical."):
            return name in _OPERATORS or rest.endswith("$")
        case "analysis":
            return name in _UNRESOLVED
        case _:
            return _PARTS.fullmatch(kind.removeprefix(_CATALYST)) is not None and kind.startswith(_CATALYST)


def _require_names(node: Any, name: str, functions: _BuiltinFunctions) -> None:  # noqa: ANN401 - Java's
    """Refuse functions that are not Spark's own or that act, and relations of other catalogs, files and options."""
    match name:
        case "UnresolvedFunction":
            functions.require(_texts(node.nameParts()))
        case "UnresolvedTableValuedFunction":
            functions.require(_texts(node.name()))
        case "UnresolvedGenerator":
            functions.require([node.name().unquotedString()])
        case "UnresolvedRelation" | "UnresolvedTableOrView":
            parts = _texts(node.multipartIdentifier())
            if len(parts) != 1 or (
                name == "UnresolvedRelation" and (node.isStreaming() or not node.options().isEmpty())
            ):
                raise _refused_relation(".".join(parts))
        case _:
            pass


class _BuiltinFunctions:
    """The names of Spark's own functions."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._names: frozenset[str] | None = None

    def require(self, parts: list[str]) -> None:
        """Refuse a function that is not Spark's own, or that acts beside the rows it gets."""
        *schema, name = (part.lower() for part in parts)
        if name in ACTING_FUNCTIONS:
            raise StatementRefusedError(name, None, "this function reaches beyond the rows it is given", LEAVE_OUT)
        if schema not in ([], ["builtin"], ["system", "builtin"]) or name not in self.names:
            close = get_close_matches(name, self.names, 1, cutoff=0.75)
            fix = f"did you mean {close[0]}?" if close else "SHOW FUNCTIONS lists what there is"
            raise StatementError(
                f"there is no function {'.'.join(parts)}", "", "only Spark's own functions are called", fix
            )

    @property
    def names(self) -> frozenset[str]:
        if self._names is None:
            analysis = _java(self._session).org.apache.spark.sql.catalyst.analysis
            registries = (getattr(analysis, f"{kind}FunctionRegistry$") for kind in ("", "Table"))
            told = [getattr(own, "MODULE$").functionSet().mkString("\n") for own in registries]
            self._names = frozenset(own.removeprefix("system.builtin.") for own in "\n".join(told).lower().split("\n"))
        return self._names


def _refused_relation(name: str) -> StatementRefusedError:
    why = "only the relations of the store are read, as they are"
    return StatementRefusedError(f"reading {name}", None, why, "SHOW TABLES lists what can be read")


def _refused_operator(name: str) -> StatementRefusedError:
    if "TimeTravel" in name:
        why = "all relations of a statement are read at one ts"
        return StatementRefusedError("AS OF", None, why, "give that ts to the command: --as-of TS")
    reason = next((why for begun, why in _REASONS.items() if begun in name), "it is not known to only read")
    fix = "" if reason == _REASONS["Insert"] else "leave it out; SELECT, SHOW TABLES and DESCRIBE are answered"
    return StatementRefusedError(name, None, f"{reason}; only queries are answered", fix)


def _jvm_session(session: SparkSession) -> Any:  # noqa: ANN401 - Java's
    return session._jsparkSession  # noqa: SLF001 - no public way leads to the parser


def _java(session: SparkSession) -> Any:  # noqa: ANN401 - Java's
    return session._jvm  # noqa: SLF001 - as above


def _class(node: Any) -> str:  # noqa: ANN401 - Java's
    return str(node.getClass().getName())


def _members(iterator: Any) -> Iterator[Any]:  # noqa: ANN401 - Java's
    while iterator.hasNext():
        member = iterator.next()
        if type(member).__module__.startswith("py4j."):  # else Python's own: a number or a text
            yield member


def _texts(names: Any) -> list[str]:  # noqa: ANN401 - Java's
    return [str(names.apply(number)) for number in range(names.size())]
