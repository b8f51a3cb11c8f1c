"""The tests of `catalog show --where`, such as `name~^u` or `key.id>=3`."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor

from catalog.engine.stash.registry import Collection
from catalog.errors import UsageError

_TEST = re.compile(r"\s*([A-Za-z_][\w.]*)\s*(!=|<=|>=|=|<|>|~)\s*(.*)", re.DOTALL)
_NUMBERS: Final = frozenset(
    {
        FieldDescriptor.CPPTYPE_INT32,
        FieldDescriptor.CPPTYPE_INT64,
        FieldDescriptor.CPPTYPE_UINT32,
        FieldDescriptor.CPPTYPE_UINT64,
        FieldDescriptor.CPPTYPE_DOUBLE,
        FieldDescriptor.CPPTYPE_FLOAT,
    }
)
_ORDER: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Filter:
    """One test; a row passes if any value at its path does."""

    paths: tuple[tuple[str, ...], ...]
    sign: str
    operand: str

    def __call__(self, key: Any, value: Any) -> bool:  # noqa: ANN401 - JSON
        found = [leaf for path in self.paths for leaf in _follow({"key": key, "value": value}, path)]
        if self.sign == "!=":
            return not any(_equal(leaf, self.operand) for leaf in found)
        return any(self._passes(leaf) for leaf in found)

    def _passes(self, leaf: Any) -> bool:  # noqa: ANN401 - JSON
        if self.sign == "=":
            return _equal(leaf, self.operand)
        if self.sign == "~":
            return re.search(self.operand, _text(leaf)) is not None
        if isinstance(leaf, bool) or leaf is None:
            return False
        other = _number(self.operand) if isinstance(leaf, int | float) else self.operand
        return other is not None and _ORDER[self.sign](leaf, other)


def parse_filters(texts: Sequence[str], kind: object) -> list[Filter]:
    """Parse the tests for the rows of a collection; refuse fields that it does not have."""
    return [_parse(text, kind) for text in texts]


def _parse(text: str, kind: object) -> Filter:
    match = _TEST.fullmatch(text)
    if match is None:
        raise UsageError(
            f"{text!r} is not a test",
            "a test is a field, one of = != < <= > >= ~, and a value",
            "write it as name=orders, name~^ord or key.id>=3",
        )
    path, sign, operand = match[1].split("."), match[2], match[3].strip()
    if sign == "~":
        try:
            re.compile(operand)
        except re.error as error:
            raise UsageError(
                f"{operand!r} is not a pattern: {error}", "~ takes a regular expression", "correct it"
            ) from error
    paths = [path] if path[0] in {"key", "value"} else [["value", *path], ["key", *path]]
    if isinstance(kind, Collection):
        paths = [path for path in paths if _is_there(kind, path)]
        if not paths:
            raise _no_field(kind, match[1])
        if sign != "~":
            _require_fitting(_leaf(kind, paths[0]), match[1], operand)
    return Filter(tuple(map(tuple, paths)), sign, operand)


def _is_there(kind: Collection, path: Sequence[str]) -> bool:
    message: Any = _side(kind, path[0])
    for name in path[1:]:
        if message is None or name not in message.fields_by_name:
            return False
        message = message.fields_by_name[name].message_type
    return True


def _leaf(kind: Collection, path: Sequence[str]) -> Any:  # noqa: ANN401 - the descriptor of a field
    message, found = _side(kind, path[0]), None
    for name in path[1:]:
        found = message.fields_by_name[name]
        message = found.message_type
    return found


def _require_fitting(field: Any, path: str, operand: str) -> None:  # noqa: ANN401
    """Refuse a value that the field can never have."""
    if field is None or field.message_type is not None:
        return
    if field.enum_type is not None and operand not in field.enum_type.values_by_name:
        known = list(field.enum_type.values_by_name)
        close = get_close_matches(operand, known, 1, cutoff=0.3)
        raise UsageError(
            f"{path} is never {operand}", f"it is one of {', '.join(known)}", f"did you mean {(close or known)[0]}?"
        )
    if field.cpp_type in _NUMBERS and _number(operand) is None:
        raise UsageError(f"{path} is a number, and {operand!r} is not", "no row could pass", "compare it with a number")


def _side(kind: Collection, side: str) -> Any:  # noqa: ANN401 - a descriptor, of either implementation
    return (kind.key_type if side == "key" else kind.value_type).DESCRIPTOR


def _no_field(kind: Collection, path: str) -> UsageError:
    known = [f"{side}.{name}" for side in ("key", "value") for name in _side(kind, side).fields_by_name]
    close = get_close_matches(path, [*known, *(name.partition(".")[2] for name in known)], 1)
    return UsageError(
        f"`{kind.name}` has no field {path}",
        f"its fields are {', '.join(known)}",
        f"did you mean {close[0]}?" if close else "name one of these",
    )


def _follow(data: Any, path: Sequence[str]) -> Iterator[Any]:  # noqa: ANN401 - JSON
    if isinstance(data, list):
        for own in data:
            yield from _follow(own, path)
    elif not path:
        yield data
    elif isinstance(data, Mapping) and path[0] in data:
        yield from _follow(data[path[0]], path[1:])


def _equal(leaf: Any, operand: str) -> bool:  # noqa: ANN401 - JSON
    if isinstance(leaf, int | float) and not isinstance(leaf, bool):
        return leaf == _number(operand)
    return _text(leaf) == operand


def _number(text: str) -> int | float | None:
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return None


def _text(leaf: Any) -> str:  # noqa: ANN401 - JSON
    return leaf if isinstance(leaf, str) else json.dumps(leaf, ensure_ascii=False)
