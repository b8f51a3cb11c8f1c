"""The row groups of a data file: their bounds by its footer, and each of them read by itself.

The checksum of a file covers its footer only once the whole file is read: a caller that relies on the bounds of keys
checks them again on the rows. `ParquetGroups` checks the footer by the checksum of its own, and pages by theirs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from catalog.engine.base.lazy_arrow import pa, pc, pq
from catalog.engine.log import protocol
from catalog.engine.log.data_files import check_content, footer_size, is_named_footer
from catalog.engine.log.protocol import DataFile, RowGroup
from catalog.errors import CorruptFileError

ReadRange: TypeAlias = Callable[[int, int], bytes]
"""Returns the bytes of a file from one position to before another, or as many as there are."""

_FOOTER_BYTES = 16 * 1024
"""Read of a file's end at first: enough for the footer of most."""


def read_groups(
    uri: str, file: DataFile, read_range: ReadRange, read_keys: Callable[[], pa.Table]
) -> tuple[RowGroup, ...]:
    """Return the row groups in their order; the keys themselves are read only if they are too long for a footer."""
    metadata = _decoded_footer(uri, file, _footer(uri, file, read_range))
    told = [_told(metadata, number) for number in range(metadata.num_row_groups)]
    groups = tuple(group for group in told if group is not None)
    return groups if groups and len(groups) == len(told) else (_whole(file, read_keys()),)


@dataclass(frozen=True, slots=True)
class ParquetGroups:
    """A data file whose keys are unique and in order, read by row groups."""

    uri: str
    file: DataFile
    groups: tuple[RowGroup, ...]
    footer_size: int
    _metadata: pq.FileMetaData
    _read_range: ReadRange

    @classmethod
    def opened(cls, uri: str, file: DataFile, read_range: ReadRange) -> ParquetGroups:
        """Read the footer, and the keys of groups that are too long for it.

        A footer is checked before Arrow sees it, since some damaged ones end the process. If the name does not tell its
        checksum, the whole file is read once.
        """
        footer = _footer(uri, file, read_range)
        if not is_named_footer(file.path, footer):
            check_content(uri, file, read_range(0, file.size))
        metadata = _decoded_footer(uri, file, footer)
        if metadata.num_rows != file.rows:
            raise CorruptFileError(uri, file.path, f"it has {metadata.num_rows} rows of {file.rows}")
        found = cls(uri, file, (), len(footer), metadata, read_range)
        groups = (_told(metadata, number) or found._group_of(number) for number in range(metadata.num_row_groups))
        return replace(found, groups=tuple(groups))

    def read(self, number: int) -> pa.Table:
        """Return the rows of a group; refuse rows that are not within the bounds that the footer tells."""
        group, rows = self.groups[number], self._decoded(number, protocol.ROWS.names)
        if rows.num_rows != group.rows or not rows.schema.equals(protocol.ROWS):
            raise self._corrupt(f"row group {number} has {rows.num_rows} rows of {group.rows}, or other columns")
        if (rows["key"][0].as_py(), rows["key"][-1].as_py()) != (group.first, group.last):
            raise self._corrupt(f"row group {number} does not have the bounds that the footer tells")
        return rows

    def _group_of(self, number: int) -> RowGroup:
        """Return a group whose keys the footer does not tell."""
        described, keys = self._metadata.row_group(number), self._decoded(number, ["key"])["key"]
        if not len(keys):
            raise self._corrupt(f"row group {number} is empty")
        return RowGroup(keys[0].as_py(), keys[-1].as_py(), described.num_rows, described.total_byte_size)

    def _decoded(self, number: int, columns: Sequence[str]) -> pa.Table:
        try:
            start, end = _extent(self._metadata.row_group(number), columns)
            content = self._read_range(start, end)
            if len(content) != end - start:
                raise self._corrupt(f"it has fewer bytes than {end}")
            window = pa.PythonFile(_FileWindow(content, start, self.file.size), mode="r")
            parquet = pq.ParquetFile(window, metadata=self._metadata, page_checksum_verification=True, pre_buffer=False)
            rows = parquet.read_row_group(number, list(columns), use_threads=False)
        except (OSError, ValueError, LookupError, OverflowError, pa.ArrowException) as error:
            raise self._corrupt(str(error)) from error
        return rows.replace_schema_metadata(None).combine_chunks()

    def _corrupt(self, reason: str) -> CorruptFileError:
        return CorruptFileError(self.uri, self.file.path, reason)


class _FileWindow:
    """A file of which some bytes were read, as Arrow reads files; any other bytes are refused."""

    closed = False

    def __init__(self, content: bytes, start: int, size: int) -> None:
        self._content, self._start, self._size, self._position = memoryview(content), start, size, 0

    def read(self, count: int) -> bytes:
        start = self._position - self._start
        if start < 0 or count < 0 or start + count > len(self._content):
            raise ValueError(f"bytes from {self._position} on belong to no page of the row group")
        self._position += count
        return bytes(self._content[start : start + count])

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._position = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        return self._position

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        """Do nothing: the bytes are in memory."""


def _footer(uri: str, file: DataFile, read_range: ReadRange) -> bytes:
    """Read the footer, with its length and the mark of the format."""

    def read_end(count: int) -> bytes:
        found = read_range(file.size - count, file.size)
        if len(found) != count:
            raise CorruptFileError(uri, file.path, f"it has fewer bytes than {file.size}")
        return found

    end = read_end(min(_FOOTER_BYTES, file.size))
    needed = footer_size(end)
    return read_end(needed) if len(end) < needed <= file.size else end[-needed:]


def _decoded_footer(uri: str, file: DataFile, footer: bytes) -> pq.FileMetaData:
    try:
        return pq.read_metadata(pa.BufferReader(footer))
    except (OSError, ValueError, LookupError, OverflowError, pa.ArrowException) as error:
        raise CorruptFileError(uri, file.path, str(error)) from error


def _told(metadata: pq.FileMetaData, number: int) -> RowGroup | None:
    """Return a group as the footer tells it; none if its keys are too long."""
    group = metadata.row_group(number)
    key = group.column(0).statistics
    if key is None or not key.has_min_max:
        return None
    return RowGroup(bytes(key.min), bytes(key.max), group.num_rows, group.total_byte_size)


def _extent(group: pq.RowGroupMetaData, columns: Sequence[str]) -> tuple[int, int]:
    """Return the positions between which the pages of some columns of a group are."""
    starts, ends = [], []
    for column in (group.column(number) for number in range(group.num_columns)):
        if column.path_in_schema in columns:
            starts.append(column.dictionary_page_offset or column.data_page_offset)
            ends.append(starts[-1] + column.total_compressed_size)
    return min(starts), max(ends)


def _whole(file: DataFile, rows: pa.Table) -> RowGroup:
    """Return all the rows of a file as one group."""
    keys = pc.min_max(rows["key"]).as_py()
    return RowGroup(keys["min"], keys["max"], file.rows, file.size)
