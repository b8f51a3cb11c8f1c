"""The row groups of a data file, read from its footer: as few rows as possible are read.

The checksum in the file's name covers the footer only once the whole file is read: a caller that relies on the bounds
of keys checks them again on the rows.
"""

from __future__ import annotations

from collections.abc import Callable

from catalog.engine.base.lazy_arrow import pa, pc, pq
from catalog.engine.log.protocol import DataFile, RowGroup
from catalog.errors import CorruptFileError

_FOOTER_BYTES = 16 * 1024
"""Read of a file's end at first: enough for the footer of most."""
_LENGTH_BYTES = 8
"""A file ends in the length of its footer and a mark of the format."""


def read_groups(
    uri: str, file: DataFile, read_end: Callable[[int], bytes], read_keys: Callable[[], pa.Table]
) -> tuple[RowGroup, ...]:
    """Return the row groups in their order; the keys themselves are read only if they are too long for a footer."""
    end = read_end(min(_FOOTER_BYTES, file.size))
    needed = int.from_bytes(end[-_LENGTH_BYTES:-4], "little") + _LENGTH_BYTES
    if len(end) < needed <= file.size:
        end = read_end(needed)
    return _decoded(uri, file, end) or (_whole(file, read_keys()),)


def _decoded(uri: str, file: DataFile, end: bytes) -> tuple[RowGroup, ...] | None:
    try:
        metadata = pq.read_metadata(pa.BufferReader(end))
    except (OSError, ValueError) as error:
        raise CorruptFileError(uri, file.path, str(error)) from error
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    keys = [group.column(0).statistics for group in groups]
    if any(key is None or not key.has_min_max for key in keys):
        return None
    return tuple(
        RowGroup(bytes(key.min), bytes(key.max), group.num_rows, group.total_byte_size)
        for group, key in zip(groups, keys, strict=True)
    )


def _whole(file: DataFile, rows: pa.Table) -> RowGroup:
    """Return all the rows of a file as one group."""
    keys = pc.min_max(rows["key"]).as_py()
    return RowGroup(keys["min"], keys["max"], file.rows, file.size)
