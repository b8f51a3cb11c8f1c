"""Statements of SQL as text: where they end, what they name, and whether they only read. Loads no pyspark.

Only as much of the language is known here as is needed to never hand Spark a statement that would change something.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from catalog.errors import StatementError, StatementRefusedError

QUESTIONS: Final = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "SHOW", "DESCRIBE", "DESC", "EXPLAIN")
"""What a statement that only reads begins with."""

_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<comment>--[^\n]*)
  | (?P<block>/\*)
  | (?P<quoted>[rR]'[^']*' | [rR]"[^"]*" | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | `(?:[^`]|``)*`)
  | (?P<open>['"`])
  | (?P<word>\w+)
  | (?P<end>;)
  | (?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_WRITING = re.compile(
    r"\b(?:(?P<insert>INSERT) (?:INTO|OVERWRITE)|(?P<delete>DELETE) FROM|(?P<merge>MERGE) (?:INTO|WITH)"
    r"|(?P<update>UPDATE) .*\bSET)\b"
)
"""What may follow after WITH or FROM, and writes."""
_SHOWN: Final = 40
"""Characters of it that an error shows."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    end: int


@dataclass(frozen=True, slots=True)
class Statement:
    """One that only reads, without the semicolon after it."""

    text: str
    bare: str
    """The same on one line, without comments."""

    def named(self, names: Collection[str]) -> list[str]:
        """Those of the names that occur anywhere in it: all that it can refer to, and perhaps more."""
        found = {word.casefold() for word in re.findall(r"\w+", self.text)}
        return [name for name in names if name.casefold() in found]


def parse_statement(text: str) -> Statement:
    """The one statement that a text is; refuses none, several, one without end, and any that would change something."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise StatementError("the statement is no text", "", "some of its bytes are no characters", "write it as UTF-8")
    found, rest = split_statements(text)
    statements = [own for own in (*found, rest) if not is_blank(own)]
    if len(statements) != 1:
        what = f"here are {len(statements)} statements" if statements else "here is no statement"
        raise StatementError(what, "", "one is answered at a time", "give one, such as SELECT name FROM role")
    tokens = list(_tokens(statements[0]))
    if tokens[-1].kind == "open":
        quote = tokens[-1].text[:2] if tokens[-1].text.startswith("/*") else tokens[-1].text[0]
        raise StatementError(f"what {quote} begins has no end", "", _begun(statements[0]), "close it")
    words = tuple(token.text.upper() for token in tokens if token.kind == "word")
    meant = [token for token in tokens if token.kind not in {"space", "comment"}]
    first = meant[0]
    if first.text.upper() not in (*QUESTIONS, "("):
        close = get_close_matches(first.text.upper(), QUESTIONS, 1, cutoff=0.75)
        raise StatementRefusedError(first.text[:_SHOWN], close[0] if close else None)
    writing = _WRITING.search(" ".join(words))
    if words and words[0] in {"WITH", "FROM"} and writing is not None:
        raise StatementRefusedError(next(word for word in writing.groups() if word), None)
    return Statement(statements[0].strip(), " ".join(token.text for token in meant))


def split_statements(text: str) -> tuple[list[str], str]:
    """The statements that a semicolon ends, without it, and what follows after the last."""
    found, start = [], 0
    for token in _tokens(text):
        if token.kind == "end":
            found.append(text[start : token.end - 1])
            start = token.end
    return found, text[start:]


def is_blank(text: str) -> bool:
    """Whether there is nothing in it but space and comments."""
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
    """Where a comment ends, and those in it; none if it does not."""
    depth = 0
    for match in re.finditer(r"/\*|\*/", text[start:]):
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return start + match.end()
    return None
