"""Thrift's compact protocol, as far as the headers of parquet files need it: structs as their fields by number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_TRUE, _FALSE, _I32, _I64, _BINARY, _LIST, _STRUCT = 1, 2, 5, 6, 8, 9, 12
_LONG_LIST = 15
"""Stands for the length of a list that is told after it."""
_BITS_MAX = 63
"""Of a number, in groups of seven."""


class I64(int):
    """A number that is written as one of 64 bits; others are written as numbers of 32 bits."""


@dataclass(slots=True)
class ThriftReader:
    """Reads values one after another; raises IndexError or ValueError if the bytes are no such values."""

    data: bytes
    position: int = 0

    def struct(self) -> dict[int, Any]:
        """Read a struct up to its end; lists, and structs in it, are Python's own."""
        fields: dict[int, Any] = {}
        number = 0
        while (head := self._byte()) != 0:
            number = number + (head >> 4) if head >> 4 else self._integer()
            fields[number] = self._value(head & 15)
        return fields

    def _value(self, kind: int) -> Any:  # noqa: ANN401 - whatever the struct holds
        match kind:
            case 1 | 2:
                return kind == _TRUE
            case 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._integer()
            case 8:
                return self.bytes(self.varint())
            case 9 | 10:
                return self._list()
            case 12:
                return self.struct()
            case _:
                raise ValueError(f"thrift type {kind}")

    def _list(self) -> list[Any]:
        head = self._byte()
        count = self.varint() if head >> 4 == _LONG_LIST else head >> 4
        kind = head & 15
        if kind in {_TRUE, _FALSE}:
            return [self._byte() == _TRUE for _ in range(count)]
        return [self._value(kind) for _ in range(count)]

    def _byte(self) -> int:
        self.position += 1
        return self.data[self.position - 1]

    def bytes(self, count: int) -> bytes:
        start, self.position = self.position, self.position + count
        if count < 0 or self.position > len(self.data):
            raise ValueError("the bytes end early")
        return self.data[start : self.position]

    def varint(self) -> int:
        number = shift = 0
        while (byte := self._byte()) & 0x80:
            number |= (byte & 0x7F) << shift
            shift += 7
            if shift > _BITS_MAX:
                raise ValueError("a number is too long")
        return number | byte << shift

    def _integer(self) -> int:
        number = self.varint()
        return (number >> 1) ^ -(number & 1)


def write_struct(fields: dict[int, Any]) -> bytes:
    """Return a struct of integers, byte strings, structs, and lists of one of these; fields are in their order."""
    written, before = bytearray(), 0
    for number, value in fields.items():
        written.append((number - before) << 4 | _kind(value))
        written += _content(value)
        before = number
    return bytes(written) + b"\0"


def _kind(value: Any) -> int:  # noqa: ANN401 - one of those that `write_struct` names
    match value:
        case int():
            return _I64 if isinstance(value, I64) else _I32
        case bytes():
            return _BINARY
        case dict():
            return _STRUCT
        case _:
            return _LIST


def _content(value: Any) -> bytes:  # noqa: ANN401 - as above
    match value:
        case int():
            return _varint(value << 1 ^ value >> 63)
        case bytes():
            return _varint(len(value)) + value
        case dict():
            return write_struct(value)
        case _:
            return _list(value)


def _list(values: Sequence[Any]) -> bytes:
    kind = _kind(values[0])
    head = bytes([len(values) << 4 | kind]) if len(values) < _LONG_LIST else bytes([0xF0 | kind]) + _varint(len(values))
    return head + b"".join(map(_content, values))


def _varint(number: int) -> bytes:
    written = bytearray()
    while number >= 0x80:  # noqa: PLR2004 - seven bits in a byte
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)
