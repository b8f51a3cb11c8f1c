"""Small parquet files, written and read without Arrow: to import it takes longer than to open a store.

Written are files of a few rows, in the columns of a data file: one row group, plain values, no compression, a checksum
for each page. Read are columns without lists, of files that are not compressed: these, and checkpoints of delta-rs.
Arrow reads what this module writes, and judges everything that this module does not read.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from catalog.engine.log.protocol import Row
from catalog.engine.log.thrift import I64, ThriftReader, write_struct

Values = list[Any]
"""The values of a column: numbers, bytes, or none."""

_MAGIC: Final = b"PAR1"
_TAIL_BYTES: Final = 8
"""A file ends in the length of its footer, and the mark of the format."""
_INT32, _INT64, _BYTE_ARRAY = 1, 2, 6
_FORMATS: Final = {_INT32: "i", _INT64: "q"}
_REQUIRED, _OPTIONAL = 0, 1
_PLAIN, _PLAIN_DICTIONARY, _RLE, _RLE_DICTIONARY = 0, 2, 3, 8
_UNCOMPRESSED = 0
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_COLUMNS: Final = ((b"key", _BYTE_ARRAY), (b"value", _BYTE_ARRAY), (b"ts", _INT64), (b"diff", _INT32))


def write_rows(rows: Sequence[Row]) -> bytes:
    """Return a parquet file of rows."""
    content, chunks = bytearray(_MAGIC), []
    for (name, kind), values in zip(_COLUMNS, zip(*rows, strict=True), strict=True):
        start, page = len(content), _page(kind, values)
        content += page
        size = I64(len(page))
        described = {1: kind, 2: [_PLAIN, _RLE], 3: [name], 4: _UNCOMPRESSED, 5: I64(len(rows)), 6: size, 7: size}
        chunks.append({2: I64(0), 3: {**described, 9: I64(start)}})
    columns = [{1: kind, 3: _REQUIRED, 4: name} for name, kind in _COLUMNS]
    group = {1: chunks, 2: I64(len(content) - len(_MAGIC)), 3: I64(len(rows))}
    schema = [{4: b"schema", 5: len(columns)}, *columns]
    footer = write_struct({1: 2, 2: schema, 3: I64(len(rows)), 4: [group], 6: b"catalog"})
    return bytes(content) + footer + struct.pack("<i", len(footer)) + _MAGIC


def read_rows(content: bytes) -> list[Row] | None:
    """Return the rows of a data file; none if only Arrow can read them."""
    found = read_columns(content, [name.decode() for name, _ in _COLUMNS])
    return None if found is None else list(zip(*found.values(), strict=True))


def read_columns(content: bytes, paths: Sequence[str]) -> dict[str, Values] | None:
    """Return columns by their paths, such as `add.size`; none if only Arrow can read them, or tell what is wrong."""
    try:
        if content[:4] != _MAGIC or content[-4:] != _MAGIC:
            return None
        length = int.from_bytes(content[-_TAIL_BYTES:-4], "little")
        start = len(content) - _TAIL_BYTES - length
        footer = ThriftReader(content[start:-_TAIL_BYTES]).struct() if start > 0 else {}
        levels = _levels(footer[2])
        found: dict[str, Values] = {path: [] for path in paths}
        for group in footer[4]:
            chunks = {b".".join(chunk[3][3]).decode(): chunk[3] for chunk in group[1]}
            for path in paths:
                found[path] += _ColumnChunk(content, chunks[path], levels[path]).values()
        is_whole = all(len(values) == footer[3] for values in found.values())
    except (LookupError, ValueError, TypeError, RecursionError, StopIteration, struct.error):
        return None
    return found if is_whole else None


def _page(kind: int, values: Sequence[Any]) -> bytes:
    """Return a column as one page, with its header."""
    if kind == _BYTE_ARRAY:
        body = b"".join(chain.from_iterable((struct.pack("<i", len(value)), value) for value in values))
    else:
        body = struct.pack(f"<{len(values)}{_FORMATS[kind]}", *values)
    described = {1: len(values), 2: _PLAIN, 3: _RLE, 4: _RLE}
    return write_struct({1: _DATA_PAGE, 2: len(body), 3: len(body), 4: _checksum(body), 5: described}) + body


def _levels(schema: Iterable[Mapping[int, Any]]) -> dict[str, int]:
    """Return how many fields on the path of each column may be absent; columns in lists are left out."""
    elements, found = iter(schema), dict[str, int]()

    def walk(count: int, above: tuple[bytes, ...], level: int | None) -> None:
        for _ in range(count):
            element = next(elements)
            path, repetition = (*above, element[4]), element[3]
            own = level + repetition if level is not None and repetition in {_REQUIRED, _OPTIONAL} else None
            if children := element.get(5):
                walk(children, path, own)
            elif own is not None:
                found[b".".join(path).decode()] = own

    walk(next(elements)[5], (), 0)
    return found


@dataclass(frozen=True, slots=True)
class _ColumnChunk:
    """A column of a row group."""

    content: bytes
    described: Mapping[int, Any]
    level: int
    """The number of its fields that may be absent."""

    def values(self) -> Values:
        """Return the values of all pages; raise ValueError for what only Arrow can read."""
        if self.described[4] != _UNCOMPRESSED:
            raise ValueError("it is compressed")
        position = min(self.described[9], self.described.get(11, self.described[9]))
        dictionary, found = Values(), Values()
        while len(found) < self.described[5]:
            header, body, position = self._page_at(position)
            if header[1] == _DICTIONARY_PAGE:
                dictionary = _plain(self.described[1], body, header[7][1])
            elif header[1] == _DATA_PAGE:
                found += self._page_values(header[5], body, dictionary)
            else:
                raise ValueError(f"page type {header[1]}")
        return found

    def _page_at(self, position: int) -> tuple[Mapping[int, Any], bytes, int]:
        """Return the header and the body of a page, and where the next one begins."""
        reader = ThriftReader(self.content, position)
        header = reader.struct()
        end = reader.position + header[3]
        body = self.content[reader.position : end]
        if header[2] != header[3] or len(body) != header[3] or header.get(4, _checksum(body)) != _checksum(body):
            raise ValueError("a page is not whole")
        return header, body, end

    def _page_values(self, page: Mapping[int, Any], body: bytes, dictionary: Values) -> Values:
        count, levels = page[1], []
        if self.level:
            size = int.from_bytes(body[:4], "little")
            levels = _runs(body[4 : 4 + size], self.level.bit_length(), count)
            body, count = body[4 + size :], levels.count(self.level)
        if page[2] == _PLAIN:
            values = _plain(self.described[1], body, count)
        elif page[2] in {_PLAIN_DICTIONARY, _RLE_DICTIONARY}:
            values = [dictionary[index] for index in _runs(body[1:], body[0], count)]
        else:
            raise ValueError(f"encoding {page[2]}")
        if not self.level:
            return values
        present = iter(values)
        return [next(present) if own == self.level else None for own in levels]


def _plain(kind: int, body: bytes, count: int) -> Values:
    """Return values that stand one after another."""
    if kind != _BYTE_ARRAY:
        return list(struct.unpack(f"<{count}{_FORMATS[kind]}", body))
    values, position = Values(), 0
    for _ in range(count):
        start = position + 4
        position = start + int.from_bytes(body[position:start], "little")
        values.append(body[start:position])
    if position != len(body):
        raise ValueError("a page does not end with its last value")
    return values


def _runs(data: bytes, width: int, count: int) -> list[int]:
    """Return small numbers of some bits each: runs of one number, or groups of eight of them."""
    reader, found = ThriftReader(data), list[int]()
    while (lacking := count - len(found)) > 0:
        head = reader.varint()
        length = head >> 1
        if length > lacking:
            raise ValueError("a run is too long")
        if head & 1:
            bits = int.from_bytes(reader.bytes(length * width), "little")
            found += [bits >> place * width & (1 << width) - 1 for place in range(min(8 * length, lacking))]
        else:
            found += [int.from_bytes(reader.bytes((width + 7) // 8), "little")] * length
    return found


def _checksum(body: bytes) -> int:
    """Return the checksum of a page as the format keeps it: a signed number."""
    checksum = zlib.crc32(body)
    return checksum - (checksum >> 31 << 32)
