"""Tokens of SQL text, cut by sqlglot's tokenizer in the dialect of Spark, so that strings and comments are right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cache
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from catalog.engine.schema_change.types import ColumnType
from catalog.errors.tables import UnsupportedTypeError

if TYPE_CHECKING:
    from sqlglot.dialects.dialect import Dialect

TYPE_CHARACTERS_MAX = 100
"""The longest that mean something have about thirty."""
_SOUGHT_MAX = 100
"""Places where a string without end is looked for, so that a long text costs no more than a short one."""


class Kind(Enum):
    WORD = auto()
    QUOTED = auto()
    """A name in backquotes."""
    STRING = auto()
    NUMBER = auto()
    BYTES = auto()
    SYMBOL = auto()


_KINDS = {"IDENTIFIER": Kind.QUOTED, "STRING": Kind.STRING, "NUMBER": Kind.NUMBER, "HEX_STRING": Kind.BYTES}


@dataclass(frozen=True, slots=True)
class Token:
    kind: Kind
    text: str
    """As written, but a string and a name in backquotes without their quotes."""
    start: int
    end: int
    parts: tuple[Any, ...] = field(repr=False, compare=False)
    """The tokens of sqlglot that it stands for."""

    def is_word(self, *words: str) -> bool:
        return self.kind is Kind.WORD and self.text.upper() in words

    def is_symbol(self, *symbols: str) -> bool:
        return self.kind is Kind.SYMBOL and self.text in symbols


class UnreadableTextError(ValueError):
    """A text that cannot be cut into tokens; readers tell it in the words of what they read."""

    def __init__(self, found: str, place: str) -> None:
        super().__init__(found, place)
        self.found = found
        self.place = place


class SqlText:
    """A text and its tokens."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tuple(_tokens(text))

    def written(self, tokens: Sequence[Token]) -> str:
        return self.text[tokens[0].start : tokens[-1].end] if tokens else ""

    def place(self, offset: int) -> str:
        return _place(self.text, offset)


def read_type(tokens: Sequence[Token]) -> tuple[ColumnType, int]:
    """Read the type that tokens begin with, and tell how many of them it takes."""
    length = _type_length(tokens)
    text = ""
    for token in tokens[:length]:
        text += f" {token.text}" if text[-1:].isalnum() and token.kind is not Kind.SYMBOL else token.text
    if tokens[0].kind is not Kind.WORD or len(text) > TYPE_CHARACTERS_MAX:
        raise UnsupportedTypeError(text[:TYPE_CHARACTERS_MAX], "it cannot be read")
    return ColumnType.parse(text), length


def _type_length(tokens: Sequence[Token]) -> int:
    opening = tokens[1].text if len(tokens) > 1 and tokens[1].is_symbol("(", "<") else ""
    depth = 0
    for length, token in enumerate(tokens, 1):
        depth += token.is_symbol(opening) - token.is_symbol(")" if opening == "(" else ">")
        if not depth and (length > 1 or not opening):
            return length
    return len(tokens)


@cache
def dialect() -> Dialect:
    from sqlglot.dialects.dialect import Dialect  # noqa: PLC0415 - takes half a second, and few processes read SQL

    return Dialect.get_or_raise("spark")


def _tokens(text: str) -> Iterator[Token]:
    from sqlglot.errors import SqlglotError  # noqa: PLC0415 - as above

    try:
        parts = _cut(text)
    except SqlglotError as error:
        place = _place(text, _unended(text))
        raise UnreadableTextError("a string, a name in backquotes or a comment has no end", place) from error
    for _, together in groupby(parts, key=attrgetter("start")):  # 1L is three tokens of sqlglot in one place
        yield from _token(text, tuple(together))


def _cut(text: str) -> list[Any]:
    """Return sqlglot's tokens; each stands one character further on than in the text.

    Behind a parenthesis no word is a command, whose rest sqlglot would take as one string.
    """
    return list(dialect().tokenize(f"({text}"))[1:]


def _token(text: str, parts: tuple[Any, ...]) -> Iterator[Token]:
    """Yield a token, or the words of a token such as PRIMARY KEY, the first of which stands for it."""
    start, end, of = parts[0].start - 1, parts[0].end, parts[0].token_type.name
    written = text[start:end]
    if of in _KINDS:
        shown = parts[0].text if of in {"IDENTIFIER", "STRING"} else written
        yield Token(_KINDS[of], shown, start, end, parts)
    elif all(letter.isalnum() or letter == "_" or letter.isspace() for letter in written):
        for place, word in enumerate(written.split()):
            yield Token(Kind.WORD, word, start, end, () if place else parts)
    else:
        yield Token(Kind.SYMBOL, written, start, end, parts)


def _unended(text: str) -> int:
    """Return where the text begins that has no end: the longest prefix that can be cut ends there."""
    from sqlglot.errors import SqlglotError  # noqa: PLC0415 - as above

    offsets = [offset for offset, letter in enumerate(text) if letter in "'\"`" or text.startswith("/*", offset)]
    for offset in reversed(offsets[-_SOUGHT_MAX:]):
        try:
            _cut(text[:offset])
        except SqlglotError:
            continue
        return offset
    return 0


def _place(text: str, offset: int) -> str:
    before = text[:offset]
    return f"line {before.count(chr(10)) + 1}, column {offset - before.rfind(chr(10))}"
