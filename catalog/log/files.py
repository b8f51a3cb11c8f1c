"""Data files: their names, their content, and what none may hold.

A name tells the collection and the kind of the file, the fence of its writer and the checksum of its bytes, so that an
orphan can be judged by its name alone and any flipped bit is found.
"""

from __future__ import annotations

import re
import uuid
import zlib
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from catalog.errors import CorruptFileError, InvalidChangeError
from catalog.log.protocol import ROWS, DataFile, Fence, FileKind

_SMALL_BYTES_MAX = 1 << 20
"""A file so small is read quicker by one thread than by several."""
_GROUP_ROWS_MAX = 65_536
"""Of a row group, the smallest piece of a file that is read by itself."""
_NAME = re.compile(
    r"collection=(?P<collection>[A-Za-z0-9_]+)/"
    r"(?P<kind>tail|base)-(?P<generation>\d+)\.(?P<epoch>\d+)-[0-9a-f]{32}-(?P<crc>[0-9a-f]{8})\.parquet"
)


def name_file(collection: str, kind: FileKind, fence: Fence, content: memoryview) -> str:
    """A new name, in a folder that other readers take the collection from."""
    name = f"{kind}-{fence.generation}.{fence.epoch}-{uuid.uuid4().hex}-{zlib.crc32(content):08x}.parquet"
    return f"collection={collection}/{name}"


def is_data_file(path: str) -> bool:
    return _NAME.fullmatch(path) is not None


def file_collection(path: str) -> str:
    return _parts(path)["collection"]


def file_kind(path: str) -> FileKind:
    return FileKind(_parts(path)["kind"])


def file_fence(path: str) -> Fence:
    parts = _parts(path)
    return Fence(int(parts["generation"]), int(parts["epoch"]))


def describe(path: str, size: int, rows: pa.Table) -> DataFile:
    ts = pc.min_max(rows["ts"]).as_py()
    return DataFile(path, file_collection(path), file_kind(path), size, rows.num_rows, ts["min"], ts["max"])


def encode_rows(rows: pa.Table) -> memoryview:
    buffer = pa.BufferOutputStream()
    pq.write_table(rows, buffer, compression="zstd", write_page_checksum=True, row_group_size=_GROUP_ROWS_MAX)
    return memoryview(buffer.getvalue())


def decode_rows(
    uri: str, file: DataFile, content: bytes, columns: Sequence[str] | None, groups: Sequence[int] | None = None
) -> pa.Table:
    """The rows of a file, or of some of its row groups; any byte that was changed, lost or added is noticed."""
    if len(content) != file.size:
        raise CorruptFileError(uri, file.path, f"it has {len(content)} bytes of {file.size}")
    if f"{zlib.crc32(content):08x}" != _parts(file.path)["crc"]:
        raise CorruptFileError(uri, file.path, "its checksum does not fit its content")
    try:
        parquet = pq.ParquetFile(pa.BufferReader(content))
        if parquet.metadata.num_rows != file.rows:
            raise CorruptFileError(uri, file.path, f"it has {parquet.metadata.num_rows} rows of {file.rows}")
        return parquet.read_row_groups(
            range(parquet.metadata.num_row_groups) if groups is None else list(groups),
            None if columns is None else list(columns),
            use_threads=file.size > _SMALL_BYTES_MAX,
        )
    except (OSError, ValueError) as error:
        raise CorruptFileError(uri, file.path, str(error)) from error


def check_rows(collection: str, kind: FileKind, rows: pa.Table) -> None:
    """Refuse rows that no file may hold; an empty collection would become NULL as a partition."""
    if re.fullmatch(r"[A-Za-z0-9_]+", collection) is None:
        raise InvalidChangeError(f"{collection!r} is no name of a collection")
    if not rows.schema.equals(ROWS):
        raise InvalidChangeError(f"rows of {collection} have columns {rows.schema.names}, or types, other than {ROWS}")
    if rows.num_rows == 0:
        raise InvalidChangeError(f"a file of {collection} needs rows")
    if nulls := [name for name in ROWS.names if rows[name].null_count]:
        raise InvalidChangeError(f"rows of {collection} have NULLs in {', '.join(nulls)}")
    diff = pc.min_max(pc.abs(rows["diff"]) if kind is FileKind.TAIL else rows["diff"]).as_py()
    if diff != {"min": 1, "max": 1}:
        raise InvalidChangeError(f"rows of a {kind} file of {collection} have a diff other than the kind allows")
    if kind is FileKind.BASE and not _ascends(rows["key"]):
        raise InvalidChangeError(f"keys of a base file of {collection} are not unique and in order")


def _ascends(keys: pa.ChunkedArray) -> bool:
    if len(keys) == 1:
        return True
    return bool(pc.all(pc.less(keys.slice(0, len(keys) - 1), keys.slice(1))).as_py())


def _parts(path: str) -> re.Match[str]:
    found = _NAME.fullmatch(path)
    if found is None:
        raise InvalidChangeError(f"{path} is no name of a data file")
    return found
