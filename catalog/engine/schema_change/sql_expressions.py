"""Expressions of SQL text, read by sqlglot in the dialect of Spark into raw expressions.

sqlglot is made to forgive: it drops words (`NULLS FIRST`, a sign `+`, a comma too many), reads several functions as
one (`nvl`, `coalesce`), and joins `'it''s'` to `its`. What it would lose is refused before it parses, by tokens; in the
tree every argument that is set and not read is refused, and every word must have become part of the expression.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from math import isfinite
from typing import Any, NoReturn

from catalog.engine.schema_change.expressions import Name, RawCall, RawExpression, RawLiteral
from catalog.engine.schema_change.functions import Function
from catalog.engine.schema_change.sql_tokens import Kind, SqlText, Token, dialect, read_type
from catalog.engine.schema_change.types import ColumnType, TypeName, Value
from catalog.errors.tables import UnsupportedExpressionError

EXPRESSION_DEPTH_MAX = 100
"""Levels of calls in each other; all that handle expressions recurse."""
NUMBER_CHARACTERS_MAX = 100
"""The longest that mean something have about thirty."""

_FUNCTIONS = frozenset(
    ("ABS", "CAST", "COALESCE", "CONCAT", "CURRENT_TIMESTAMP", "DAY", "LENGTH", "LOWER", "MONTH", "SUBSTRING", "TRIM")
) | {"UPPER", "YEAR"}
_OPERATORS = frozenset(("AND", "BETWEEN", "ESCAPE", "IN", "IS", "LIKE", "NOT", "OR"))
_WORDS = _FUNCTIONS | _OPERATORS | {"DATE", "FALSE", "NULL", "TIMESTAMP", "TRUE"}
_SYMBOLS = frozenset(("(", ")", ",", "=", "==", "<>", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "||", "!"))
_PAIR = ("this", "expression")

_SHAPES: dict[str, tuple[Function, tuple[str, ...], tuple[str, ...]]] = {
    "eq": (Function.EQ, _PAIR, ()),
    "neq": (Function.NE, _PAIR, ()),
    "lt": (Function.LT, _PAIR, ()),
    "lte": (Function.LE, _PAIR, ()),
    "gt": (Function.GT, _PAIR, ()),
    "gte": (Function.GE, _PAIR, ()),
    "and": (Function.AND, _PAIR, ()),
    "or": (Function.OR, _PAIR, ()),
    "not": (Function.NOT, ("this",), ()),
    "in": (Function.IN, ("this", "expressions"), ()),
    "between": (Function.BETWEEN, ("this", "low", "high"), ()),
    "add": (Function.ADD, _PAIR, ()),
    "sub": (Function.SUBTRACT, _PAIR, ()),
    "mul": (Function.MULTIPLY, _PAIR, ()),
    "div": (Function.DIVIDE, _PAIR, ("typed", "safe")),
    "neg": (Function.NEGATE, ("this",), ()),
    "dpipe": (Function.CONCAT, _PAIR, ("safe",)),
    "like": (Function.LIKE, _PAIR, ("negate",)),
    "length": (Function.LENGTH, ("this",), ()),
    "lower": (Function.LOWER, ("this",), ()),
    "upper": (Function.UPPER, ("this",), ()),
    "trim": (Function.TRIM, ("this",), ()),
    "concat": (Function.CONCAT, ("expressions",), ("safe", "coalesce")),
    "substring": (Function.SUBSTRING, ("this", "start", "length"), ()),
    "coalesce": (Function.COALESCE, ("this", "expressions"), ()),
    "abs": (Function.ABS, ("this",), ()),
    "year": (Function.YEAR, ("this",), ()),
    "month": (Function.MONTH, ("this",), ()),
    "day": (Function.DAY, ("this",), ()),
    "currenttimestamp": (Function.CURRENT_TIMESTAMP, (), ()),
}
"""By sqlglot's node: the function, the arguments in order, and what sqlglot notes about the dialect."""
_ARGUMENTS_MIN = {Function.IN: 2, Function.SUBSTRING: 2, Function.YEAR: 1, Function.MONTH: 1, Function.DAY: 1}
_SIGNS = frozenset(("add", "sub"))
_ARITHMETIC = _SIGNS | {"mul", "div", "neg", "dpipe"}
_CONNECTIVES = frozenset(("and", "or", "not"))
_TESTS = frozenset(("eq", "neq", "lt", "lte", "gt", "gte", "in", "between", "like", "escape", "is"))


def completes_operand(token: Token) -> bool:
    """Tell if an expression may end behind a token."""
    return not token.is_word(*_OPERATORS) and (token.kind is not Kind.SYMBOL or token.text == ")")


def read_expression(text: SqlText, tokens: Sequence[Token]) -> RawExpression:
    """Read the expression that some tokens of a text are."""
    return _ExpressionReader(text, tokens).read()


_Number = int | float | Decimal


class _ExpressionReader:
    """The reading of one expression: judge its tokens, parse them, map the tree, account for the words."""

    def __init__(self, text: SqlText, tokens: Sequence[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.words: list[Token] = []
        """Words that are no part of the language, so that each must be the name of a column."""
        self.names: Counter[str] = Counter()
        self.suffixed = {token.parts[0].text for token in tokens if len(token.parts) > 1}
        self.sums = 0

    def read(self) -> RawExpression:
        if not self.tokens:
            self.refuse("it is empty")
        self.judge_tokens()
        try:
            raw = self.mapped(self.parsed(), 0)
        except RecursionError:
            self.refuse("it is nested too deeply")
        for token in self.words:
            if not self.names[token.text]:
                self.refuse(f"{token.text} at {self.text.place(token.start)}")
            self.names[token.text] -= 1
        if sum(token.is_symbol("+") for token in self.tokens) != self.sums:
            self.refuse("a sign +; leave it out")
        return raw

    def refuse(self, found: str) -> NoReturn:
        raise UnsupportedExpressionError(self.text.written(self.tokens), found)

    def judge_tokens(self) -> None:
        place = 0
        while place < len(self.tokens):
            token, following = self.tokens[place], self.tokens[place + 1] if place + 1 < len(self.tokens) else None
            if token.is_word("AS"):
                place += self.cast_type(token, self.tokens[place + 1 :])
            elif token.kind is Kind.WORD or token.kind is Kind.QUOTED:
                self.judge_word(token, following)
            elif token.kind is Kind.SYMBOL:
                self.judge_symbol(token, following)
            elif token.kind is Kind.STRING and following and following.kind is Kind.STRING:
                self.refuse("two texts side by side; write a quote as \\' and join texts by concat")
            elif token.kind is Kind.BYTES and token.text[0] not in "xX":
                self.refuse(f"{token.text}; write bytes as X'1F'")
            place += 1

    def cast_type(self, token: Token, rest: Sequence[Token]) -> int:
        """Judge the type of a cast as it is written, because sqlglot takes several types for one."""
        length = read_type(rest)[1] if rest else 0
        if len(rest) <= length or not rest[length].is_symbol(")"):
            self.refuse(f"AS at {self.text.place(token.start)}, which stands with one type in CAST (… AS …) only")
        return length

    def judge_word(self, token: Token, following: Token | None) -> None:
        if following and following.is_symbol("(") and not token.is_word(*_FUNCTIONS, *_OPERATORS):
            self.refuse(f"the function {token.text} at {self.text.place(token.start)}")
        if following and following.kind is Kind.STRING and not token.is_word(*_OPERATORS, "DATE", "TIMESTAMP"):
            self.refuse(f"{token.text} before a text at {self.text.place(token.start)}")
        if token.is_word("CASE", "IF"):
            self.refuse(f"{token.text} at {self.text.place(token.start)}")
        if token.kind is Kind.WORD and not token.is_word(*_WORDS):
            self.words.append(token)

    def judge_symbol(self, token: Token, following: Token | None) -> None:
        place = self.text.place(token.start)
        if token.text == ".":
            self.refuse(f". at {place}; write a column without its table, and a number with a digit before the point")
        if token.text not in _SYMBOLS:
            self.refuse(f"{token.text} at {place}")
        if following and following.is_symbol(*{",": (",", ")"), "(": (",",)}.get(token.text, ())):
            self.refuse(f"a comma without an argument at {place}")

    def parsed(self) -> Any:  # noqa: ANN401 - nodes of sqlglot are handled by their keys
        from sqlglot import exp  # noqa: PLC0415
        from sqlglot.errors import ParseError  # noqa: PLC0415

        parts = [part for token in self.tokens for part in token.parts]
        try:
            trees = dialect().parser().parse_into(exp.Condition, parts, f"({self.text.text}")
        except ParseError as error:
            told = error.errors[0] if error.errors else {}
            near = next((one for one in parts if (one.line, one.col) == (told.get("line"), told.get("col"))), parts[-1])
            self.refuse(f"it cannot be read near {self.text.text[near.start - 1 : near.end]} at {self.place_of(near)}")
        if len(trees) != 1 or trees[0] is None:
            self.refuse("it is not one expression")
        return trees[0]

    def place_of(self, part: Any) -> str:  # noqa: ANN401 - a token of sqlglot
        return self.text.place(part.start - 1)

    def mapped(self, node: Any, depth: int) -> RawExpression:  # noqa: ANN401
        if depth > EXPRESSION_DEPTH_MAX:
            self.refuse(f"it is nested more than {EXPRESSION_DEPTH_MAX} levels deep")
        key = node.key
        if key in _SHAPES:
            return self.call(node, depth)
        read = _READERS.get(key)
        if read is None:
            self.refuse(_text(node))
        return read(self, node, depth)

    def only(self, node: Any, *known: str) -> None:  # noqa: ANN401
        """Refuse a node that says something which is not read."""
        for name, value in node.args.items():
            if name not in known and value is not None and value is not False and value != []:
                self.refuse(f"{name} of {_text(node)}")

    def call(self, node: Any, depth: int) -> RawExpression:  # noqa: ANN401
        function, names, noted = _SHAPES[node.key]
        self.only(node, *names, *noted)
        if function is Function.NOT and node.this.key == "is":
            return RawCall(Function.IS_NOT_NULL, self.null_test(node.this, depth).arguments)
        if function is Function.NEGATE and (literal := self.number(node.this, sign="-")):
            return literal
        self.judge_operands(node, names)
        given = [node.args.get(name) for name in names]
        nodes = [one for some in given for one in (some if isinstance(some, list) else [some]) if one is not None]
        if function in {Function.YEAR, Function.MONTH, Function.DAY}:
            nodes = [one.this for one in nodes if one.key == "tsordstodate" and one.this is not None]
        if len(nodes) < _ARGUMENTS_MIN.get(function, 0):
            self.refuse(f"{_text(node)}, which lacks an argument")
        self.sums += function is Function.ADD
        call = RawCall(function, tuple(self.mapped(one, depth + 1) for one in nodes))
        return RawCall(Function.NOT, (call,)) if node.args.get("negate") else call

    def judge_operands(self, node: Any, names: tuple[str, ...]) -> None:  # noqa: ANN401
        """Refuse operators in a row that sqlglot and Spark group differently."""
        inner = {child.key for name in names if hasattr(child := node.args.get(name), "key")}
        mixed = node.key in _ARITHMETIC | _TESTS and inner & (_TESTS | _CONNECTIVES)
        if mixed or (node.key == "dpipe" and inner & _SIGNS):
            self.refuse(f"{_text(node)}, which has operators in a row; write parentheses")

    def null_test(self, node: Any, depth: int) -> RawCall:  # noqa: ANN401
        self.only(node, "this", "expression")
        self.judge_operands(node, ("this",))
        if node.expression.key != "null":
            self.refuse(f"IS {_text(node.expression)}")
        return RawCall(Function.IS_NULL, (self.mapped(node.this, depth + 1),))

    def escaped(self, node: Any, depth: int) -> RawExpression:  # noqa: ANN401
        """Read LIKE … ESCAPE …, whose third argument is the letter."""
        self.only(node, "this", "expression")
        if node.this.key != "like":
            self.refuse(_text(node))
        self.judge_operands(node, ("expression",))
        negated, letter = node.this.args.get("negate"), self.mapped(node.expression, depth + 1)
        node.this.set("negate", None)
        like = self.mapped(node.this, depth)
        call = RawCall(Function.LIKE, (*(like.arguments if isinstance(like, RawCall) else ()), letter))
        return RawCall(Function.NOT, (call,)) if negated else call

    def parenthesised(self, node: Any, depth: int) -> RawExpression:  # noqa: ANN401
        self.only(node, "this")
        return self.mapped(node.this, depth)

    def column(self, node: Any, _: int) -> RawExpression:  # noqa: ANN401
        self.only(node, "this")
        self.only(node.this, "this", "quoted")
        if node.this.key != "identifier" or not node.name:
            self.refuse(f"the name {_text(node)}")
        if not node.this.args.get("quoted"):
            self.names[node.name] += 1
        return Name(node.name)

    def literal(self, node: Any, _: int) -> RawExpression:  # noqa: ANN401
        self.only(node, "this", "is_string")
        return self.number(node) or RawLiteral(node.this)

    def constant(self, node: Any, _: int) -> RawExpression:  # noqa: ANN401
        self.only(node, "this")
        return RawLiteral(node.args.get("this", False) if node.key == "boolean" else None)

    def bytes_literal(self, node: Any, _: int) -> RawExpression:  # noqa: ANN401
        self.only(node, "this")
        try:
            return RawLiteral(bytes.fromhex(node.this))
        except ValueError:
            self.refuse(f"X'{node.this}', which needs two digits for each byte")

    def dated(self, node: Any, _: int) -> RawExpression:  # noqa: ANN401
        """Read DATE '…' and TIMESTAMP '…'."""
        self.only(node, "this", "to")
        of = ColumnType.parse(_text(node.to))
        if of.name not in {TypeName.DATE, TypeName.TIMESTAMP} or node.this.key != "literal" or not node.this.is_string:
            self.refuse(f"{_text(node)}, where only DATE and TIMESTAMP stand before a text")
        return RawLiteral(self.checked(of, node.this.this), of)

    def cast(self, node: Any, depth: int) -> RawExpression:  # noqa: ANN401
        if literal := self.number(node):
            return literal
        self.only(node, "this", "to")
        return RawCall(Function.CAST, (self.mapped(node.this, depth + 1),), ColumnType.parse(_text(node.to)))

    def number(self, node: Any, sign: str = "") -> RawLiteral | None:  # noqa: ANN401
        """Return a number, with the type of its suffix in 1L, 1D and 1BD; None for all else."""
        if node.key == "literal" and not node.is_string:
            return RawLiteral(self.number_value(sign + node.this))
        if node.key != "trycast" or node.this.key != "literal" or node.this.this not in self.suffixed:
            return None
        self.only(node, "this", "to")
        of, value = ColumnType.parse(_text(node.to)), self.number_value(sign + node.this.this)
        return RawLiteral(self.checked(of, float(value) if of.name is TypeName.DOUBLE else value), of)

    def number_value(self, text: str) -> _Number:
        try:
            if len(text) > NUMBER_CHARACTERS_MAX:
                self.refuse(f"a number of {len(text)} digits")
            value = float(text) if "e" in text.lower() else Decimal(text) if "." in text else int(text)
        except (ValueError, ArithmeticError):
            self.refuse(f"the number {text}")
        return value if isfinite(value) else self.refuse(f"the number {text}, which no DOUBLE holds")

    def checked(self, of: ColumnType, value: object) -> Value:
        try:
            return of.check(value)
        except (ValueError, OverflowError) as error:
            self.refuse(f"{value} is no {of.text}: {error}")


def _text(node: Any) -> str:  # noqa: ANN401
    return str(node.sql(dialect="spark"))


_READERS = {
    "paren": _ExpressionReader.parenthesised,
    "is": _ExpressionReader.null_test,
    "escape": _ExpressionReader.escaped,
    "column": _ExpressionReader.column,
    "literal": _ExpressionReader.literal,
    "boolean": _ExpressionReader.constant,
    "null": _ExpressionReader.constant,
    "hexstring": _ExpressionReader.bytes_literal,
    "cast": _ExpressionReader.dated,
    "trycast": _ExpressionReader.cast,
}
