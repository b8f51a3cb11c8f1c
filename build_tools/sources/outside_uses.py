"""Uses, in a migration, of what its rows do not hold: files, other code, clocks and random numbers.

Read from its syntax tree. What is called by other means, the rehearsal of an upgrade finds: it runs a sample twice.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from .syntax_tree import called_name

_BUILTINS = {"open", "exec", "eval", "__import__", "compile", "input", "print", "globals", "breakpoint", "hash", "id"}
"""Builtins that read or write other things than rows, or whose result differs between processes."""
_OF_NOW = frozenset(
    """
    current_timestamp current_date current_time localtimestamp now curdate curtime current_timezone
    """.split()  # noqa: SIM905 - a list of words is read more easily
)
_OF_THE_RUN = frozenset(
    """
    rand randn random uuid shuffle uniform randstr monotonically_increasing_id spark_partition_id current_user
    session_user current_database current_schema current_catalog input_file_name sample sampleBy randomSplit
    dropDuplicates drop_duplicates any_value
    """.split()  # noqa: SIM905
)
_VARYING = _OF_NOW | _OF_THE_RUN
"""Functions of Spark and pyarrow whose result differs between runs, processes or environments."""
ORDER_OF_A_SET = "the order of a set"
"""That of texts differs between processes, so that no rehearsal in one of them sees it."""
_SETS = frozenset({"set", "frozenset"})
_ORDERLESS = frozenset({"sorted", "set", "frozenset", "sum", "len", "any", "all", "min", "max"})
"""Functions whose result does not depend on the order of what they are given."""
_ORDERED = frozenset({"list", "tuple", "enumerate", "iter", "map", "filter", "zip", "join", "extend", "next"})
_NOW_WITHOUT_ARGUMENTS = frozenset({"unix_timestamp", "to_unix_timestamp"})
_CALLED_BY_NAME = frozenset({"call_function", "call_udf"})
_MODULES = frozenset({"pyspark.sql.functions", "pyarrow.compute"})
_CALL = re.compile(
    rf"(?i)(?<![\w.])(?:({'|'.join(sorted(_VARYING))})\s*\(|({'|'.join(sorted(_NOW_WITHOUT_ARGUMENTS))})\s*\(\s*\))"
)
"""A call in the text of an expression."""
_WORD = re.compile(r"(?i)(?<![\w.])(current_timestamp|current_date|current_time|localtimestamp|tablesample)\b(?!\s*\()")
"""A call that needs no parentheses; elsewhere than in an expression it may be the name of a column."""
_EXPRESSIONS = frozenset({"expr", "selectExpr", "where", "filter", "sql"})
"""Functions that take texts of expressions."""
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`")
"""Texts and names inside the text of an expression."""


def outside_uses(module: ast.Module, own: AbstractSet[str], *, has_frames: bool) -> Iterator[tuple[str, int]]:
    """Yield the name of each function and its line; `own` are the names that the module binds itself."""
    nodes = list(ast.walk(module))
    prose = {id(node.value) for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)}
    for node in nodes:
        if isinstance(node, ast.expr | ast.stmt) and id(node) not in prose:
            found = _used(node, own)
            yield from ((name, node.lineno) for name in (*found, *(_used_in_sql(node) if has_frames else ())))
    yield from ((ORDER_OF_A_SET, line) for line in _set_orders(nodes))


def _set_orders(nodes: list[ast.AST]) -> Iterator[int]:
    """Yield the lines at which the elements of a set are taken in its order."""
    named, orderless = _named_sets(nodes), _orderless(nodes)
    for node in nodes:
        is_ordered = isinstance(node, ast.expr | ast.For) and id(node) not in orderless
        if is_ordered and any(_is_set(taken, named) for taken in _taken_in_order(node)):  # type: ignore[arg-type]
            yield node.lineno  # type: ignore[attr-defined]  # an expression or a loop


def _taken_in_order(node: ast.expr | ast.For) -> list[ast.expr]:
    """Return what a node takes element by element."""
    match node:
        case ast.For(iter=taken) | ast.Starred(value=taken):
            return [taken]
        case ast.ListComp(generators=parts) | ast.GeneratorExp(generators=parts) | ast.DictComp(generators=parts):
            return [part.iter for part in parts]
        case ast.Call(args=arguments) if called_name(node) in _ORDERED:
            return arguments
        case _:
            return []


def _orderless(nodes: list[ast.AST]) -> set[int]:
    """Return the expressions whose order is lost: arguments of `sorted` and the like, and parts of sets."""
    calls = [node for node in nodes if isinstance(node, ast.Call) and called_name(node) in _ORDERLESS]
    sets = [node for node in nodes if isinstance(node, ast.Set)]
    return {id(own) for call in calls for own in call.args} | {id(own) for one in sets for own in one.elts}


def _named_sets(nodes: list[ast.AST]) -> set[str]:
    named: set[str] = set()
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_set(value, named):
                named.add(name)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if _is_set(value, named):
                named.add(name)
            case _:
                pass
    return named


def _is_set(node: ast.expr, named: AbstractSet[str]) -> bool:
    match node:
        case ast.Set() | ast.SetComp():
            return True
        case ast.Call():
            return isinstance(node.func, ast.Name) and called_name(node) in _SETS
        case ast.Name(id=name):
            return name in named
        case ast.BinOp(left=left, op=ast.BitOr() | ast.BitAnd() | ast.Sub() | ast.BitXor(), right=right):
            return _is_set(left, named) or _is_set(right, named)
        case _:
            return False


def _used(node: ast.AST, own: AbstractSet[str]) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Load()) if name in _BUILTINS - own:
            yield name
        case ast.Call(func=ast.Attribute(attr=name), args=arguments):
            if name in _VARYING or (name in _NOW_WITHOUT_ARGUMENTS and not arguments):
                yield name
            elif name in _CALLED_BY_NAME:
                yield from (called for called in _texts(arguments[:1]) if called.lower() in _VARYING)
        case ast.ImportFrom(module=origin, names=names) if origin in _MODULES:
            yield from (alias.name for alias in names if alias.name in _VARYING)


def _used_in_sql(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(text)):
            yield from (found[1] or found[2] for found in _CALL.finditer(_QUOTED.sub("", text)))
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=arguments) if name in _EXPRESSIONS:
            for text in _texts(arguments):
                yield from (found[1] for found in _WORD.finditer(_QUOTED.sub("", text)))


def _texts(nodes: list[ast.expr]) -> Iterator[str]:
    yield from (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
