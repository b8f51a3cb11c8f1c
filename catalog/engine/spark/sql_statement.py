"""Statements of SQL as text: where they end, which names they use, and whether they only read. Loads no pyspark.

Knows only as much of the language as is needed to never hand Spark a statement that would change something. Spark's
own parser judges it again where it is in this process: see `sql_plan`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import accumulate
from typing import Final

from catalog.errors import StatementError, StatementRefusedError

LEAVE_OUT: Final = "leave it out, or compute it from the result in a program"
QUESTIONS: Final = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "SHOW", "DESCRIBE", "DESC", "EXPLAIN")
"""The first words of statements that only read."""

ACTING_FUNCTIONS: Final = frozenset(
    """
    from_avro from_protobuf from_xml input_file_block_length input_file_block_start input_file_name java_method
    python_worker_logs reflect schema_of_avro schema_of_xml to_avro to_protobuf to_xml try_reflect
    """.split()  # noqa: SIM905 - a list of words is read more easily
)
"""Functions of Spark that run code, or that read or name files."""
_OF_QUERIES: Final = frozenset({*QUESTIONS[:5], "("})
_EXPLAINING: Final = frozenset({"EXTENDED", "CODEGEN", "COST", "FORMATTED", "LOGICAL"})
_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<comment>--(?:\\\n|[^\r\n])*\r?\n?)
  | (?P<sign>/\*\+|\*/)
  | (?P<block>/\*)
  | (?P<quoted>[rR]'[^']*' | [rR]"[^"]*" | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | `(?:[^`]|``)*`)
  | (?P<open>['"`])
  | (?P<word>\w+)
  | (?P<end>;)
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_WRITING = re.compile(
    r"\b(?:(?P<insert>INSERT) (?:INTO|OVERWRITE)|(?P<delete>DELETE) FROM|(?P<merge>MERGE) (?:INTO|WITH)"
    r"|(?P<update>UPDATE) .*\bSET)\b"
)
"""Writing statements that may follow after WITH or FROM."""
_SHOWN: Final = 40
"""Characters of it that an error shows."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    end: int


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement that only reads, without the semicolon after it."""

    text: str
    bare: str
    """The same on one line, without comments."""
    sent: str
    """The same with spaces in place of comments, so that Spark has none to see otherwise; each place stays."""
    is_query: bool
    """True if it has rows of its own; false if it tells about relations, or explains a query."""

    def named(self, names: Collection[str]) -> list[str]:
        """Return those of the names that occur anywhere in it: all that it can refer to, and perhaps more."""
        found = {word.casefold() for word in re.findall(r"\w+", self.text)}
        return [name for name in names if name.casefold() in found]


def parse_statement(text: str) -> Statement:
    """Return the one statement of a text; refuse none, several, an unfinished one, and one that would write."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise StatementError("the statement is no text", "", "some of its bytes are no characters", "write it as UTF-8")
    found, rest = split_statements(text)
    statements = [own for own in (*found, rest) if not is_blank(own)]
    if len(statements) != 1:
        what = f"the text holds {len(statements) or 'no'} statement{'s' if statements else ''}"
        raise StatementError(what, "", "one statement is run at a time", "give one, such as SELECT name FROM role")
    tokens = list(_tokens(statements[0]))
    if tokens[-1].kind == "open":
        quote = tokens[-1].text[:2] if tokens[-1].text.startswith("/*") else tokens[-1].text[0]
        raise StatementError(f"{quote} is not closed", "", _begun(statements[0]), "close it")
    meant = [token for token in tokens if token.kind not in {"space", "comment"}]
    first = meant[0]
    if first.text.upper() not in (*QUESTIONS, "("):
        close = get_close_matches(first.text.upper(), QUESTIONS, 1, cutoff=0.75)
        raise StatementRefusedError(first.text[:_SHOWN], close[0] if close else None)
    is_query = first.text.upper() in _OF_QUERIES
    _require_reading(meant)
    text = statements[0].strip()
    sent = "".join(_blank(token.text) if token.kind == "comment" else token.text for token in _tokens(text))
    return Statement(text, " ".join(token.text for token in meant), sent, is_query)


def _require_reading(meant: list[_Token]) -> None:
    """Refuse what writes, runs a program, calls a function that acts, or closes more than it opens."""
    words = [token.text.upper() for token in meant]
    explained = next(word for word in [*words[1:], ""] if word not in _EXPLAINING)
    if words[0] == "EXPLAIN" and explained not in _OF_QUERIES:
        raise StatementRefusedError(
            f"EXPLAIN {explained}".strip(), None, "only queries are explained", "explain the query alone"
        )
    writing = _WRITING.search(" ".join(token.text.upper() for token in meant if token.kind == "word"))
    if writing is not None and words[0] in {"WITH", "FROM", "EXPLAIN", "("}:
        raise StatementRefusedError(next(word for word in writing.groups() if word), None)
    if min(accumulate({"(": 1, ")": -1}.get(word, 0) for word in words)) < 0:
        raise StatementError("a ) closes nothing", "", "it has no ( before it", "remove it, or open it")
    for token, word, after in zip(meant, words, [*words[1:], ""], strict=True):
        name = word[1:-1] if word.startswith("`") else word
        if word == "$":
            raise StatementRefusedError(word, None, "texts stand in quotes, and nothing is replaced", LEAVE_OUT)
        if word == "USING" and re.match(r"R?['\":?]", after):
            raise StatementRefusedError(word, None, "before a text it names a program to run", LEAVE_OUT)
        if token.kind in {"word", "quoted"} and after == "(":
            if name.lower() in ACTING_FUNCTIONS:
                raise StatementRefusedError(
                    name.lower(), None, "this function reaches beyond the rows it is given", LEAVE_OUT
                )
            if name == "IDENTIFIER":
                raise StatementRefusedError(name, None, "it hides what the statement names", "write the name itself")


def _blank(comment: str) -> str:
    return re.sub(r"[^\r\n]", " ", comment)


def split_statements(text: str) -> tuple[list[str], str]:
    """Return the statements that a semicolon ends, without it, and the rest after the last."""
    found, start = [], 0
    for token in _tokens(text):
        if token.kind == "end":
            found.append(text[start : token.end - 1])
            start = token.end
    return found, text[start:]


def is_blank(text: str) -> bool:
    """Tell if a text holds nothing but space and comments."""
    return all(token.kind in {"space", "comment"} for token in _tokens(text))


def _begun(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"


def _tokens(text: str) -> Iterator[_Token]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        kind, end = (str(match.lastgroup), match.end()) if match else ("open", len(text))
        if kind == "block":
            closed = _end_of_comment(text, position)
            kind, end = ("open", len(text)) if closed is None else ("comment", closed)
        elif kind == "open":
            end = len(text)
        yield _Token(kind, text[position:end], end)
        position = end


def _end_of_comment(text: str, start: int) -> int | None:
    """Return where a comment ends, with those nested in it; none if it does not. A hint in it is no comment."""
    depth = 0
    for match in re.finditer(r"/\*(?!\+)|\*/", text[start:]):
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return start + match.end()
    return None
