"""Data files: their names, their content, and the rows that none may hold.

A name holds the collection and the kind of the file, the fence of its writer and the checksum of its bytes, so that an
orphan can be judged by its name alone and any flipped bit is found.
"""

from __future__ import annotations

import re
import uuid
import zlib
from collections.abc import Sequence
from functools import lru_cache

from catalog.engine.base.arrow import binary_column, number_array, repeated
from catalog.engine.base.fence import Fence
from catalog.engine.base.lazy_arrow import pa, pc, pq
from catalog.engine.log import protocol, small_parquet
from catalog.engine.log.protocol import DataFile, FileKind, Row
from catalog.errors import CorruptFileError, InvalidChangeError

_SMALL_BYTES_MAX = 1 << 20
"""A file so small is read quicker by one thread than by several."""
_GROUP_ROWS_MAX, _LAYER_GROUP_ROWS_MAX = 16_384, 8_192
"""Of a row group, the smallest piece of a file that is read by itself, and so the smallest part of a step. A layer is
read for the sake of single keys."""
_LENGTH_BYTES = 8
"""A file ends in the length of its footer and a mark of the format."""
_FEW_VALUES = ["ts", "diff"]
"""Columns that a dictionary makes smaller. Keys and values hardly repeat: it would be made and then thrown away."""
_BOUNDED = ["key", "ts", "diff"]
"""Columns whose bounds somebody asks for."""
FEW_ROWS_MAX, _FEW_BYTES_MAX = 64, 8192
"""A file of so few rows and bytes is written without compression, so that it can be read without Arrow."""
_NAME = re.compile(
    r"collection=(?P<collection>[A-Za-z0-9_]+)/"
    r"(?P<kind>tail|base|layer)-(?P<generation>\d+)\.(?P<epoch>\d+)-[0-9a-f]{24}(?P<footer_crc>[0-9a-f]{8})-(?P<crc>[0-9a-f]{8})\.parquet"
)


def name_file(collection: str, kind: FileKind, fence: Fence, content: memoryview) -> str:
    """Return a new name, in a folder that other readers of Delta tables take the collection from.

    Of files that are read by row groups, what makes the name unique ends in the checksum of the footer.
    """
    unique = uuid.uuid4().hex
    if kind is not FileKind.TAIL:
        unique = f"{unique[:-8]}{zlib.crc32(memoryview(content)[-footer_size(content) :]):08x}"
    name = f"{kind}-{fence.generation}.{fence.epoch}-{unique}-{zlib.crc32(content):08x}.parquet"
    return f"collection={collection}/{name}"


def footer_size(end: bytes | memoryview) -> int:
    """Return the size of the footer of a file that ends in these bytes, with its length and the mark of the format."""
    return int.from_bytes(bytes(memoryview(end)[-_LENGTH_BYTES:-4]), "little") + _LENGTH_BYTES


def is_named_footer(path: str, footer: bytes) -> bool:
    """Tell if a footer is the one that the name of its file tells; earlier builds name files that tell none."""
    return f"{zlib.crc32(footer):08x}" == _parts(path)["footer_crc"]


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


def describe_tail(path: str, size: int, rows: Sequence[Row]) -> DataFile:
    ts = [row[2] for row in rows]
    return DataFile(path, file_collection(path), FileKind.TAIL, size, len(rows), min(ts), max(ts))


def describe_content(uri: str, path: str, content: bytes) -> DataFile:
    """Describe a file by its content; refuse content that does not fit its name."""
    _check_sum(uri, path, content)
    return describe(path, len(content), pq.ParquetFile(pa.BufferReader(content)).read())


def encode_tail(collection: str, rows: Sequence[Row]) -> memoryview:
    """Return the content of a file of a transaction; refuse rows that none may hold."""
    if len(rows) > FEW_ROWS_MAX or not 0 < sum(len(row[0]) + len(row[1]) for row in rows) <= _FEW_BYTES_MAX:
        table = rows_table(rows)
        check_rows(collection, FileKind.TAIL, table)
        return encode_rows(table, FileKind.TAIL)
    _check_collection(collection)
    if any(abs(diff) != 1 for *_, diff in rows):
        raise _unfit_diff(collection, FileKind.TAIL)
    return memoryview(small_parquet.write_rows(rows))


def _group_rows(kind: FileKind) -> int:
    return _LAYER_GROUP_ROWS_MAX if kind is FileKind.LAYER else _GROUP_ROWS_MAX


def encode_rows(rows: pa.Table, kind: FileKind = FileKind.BASE) -> memoryview:
    if 0 < rows.num_rows <= FEW_ROWS_MAX and rows.nbytes <= _FEW_BYTES_MAX and rows.schema.equals(protocol.ROWS):
        return memoryview(small_parquet.write_rows(row_list(rows)))
    buffer = pa.BufferOutputStream()
    pq.write_table(
        rows,
        buffer,
        compression="zstd",
        write_page_checksum=True,
        row_group_size=_group_rows(kind),
        use_dictionary=_FEW_VALUES,
        write_statistics=_BOUNDED,
    )
    return memoryview(buffer.getvalue())


def decode_rows(
    uri: str, file: DataFile, content: bytes, columns: Sequence[str] | None, groups: Sequence[int] | None = None
) -> pa.Table:
    """Return the rows of a file, or of some of its row groups; raise if any byte was changed, lost or added."""
    check_content(uri, file, content)
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


def decode_row_list(uri: str, file: DataFile, content: bytes) -> list[Row]:
    """Return the rows of a file; raise as `decode_rows` does."""
    if file.rows <= FEW_ROWS_MAX:
        check_content(uri, file, content)
        rows = small_parquet.read_rows(content)
        if rows is not None and len(rows) == file.rows:
            return rows
    return row_list(decode_rows(uri, file, content, None))


def row_list(rows: pa.Table) -> list[Row]:
    """Return the rows of columns as Python values."""
    return list(zip(*(rows[name].to_pylist() for name in protocol.ROWS.names), strict=True))


def check_content(uri: str, file: DataFile, content: bytes) -> None:
    """Refuse the content of a file if any byte was changed, lost or added."""
    if len(content) != file.size:
        raise CorruptFileError(uri, file.path, f"it has {len(content)} bytes of {file.size}")
    _check_sum(uri, file.path, content)


def _check_sum(uri: str, path: str, content: bytes) -> None:
    if f"{zlib.crc32(content):08x}" != _parts(path)["crc"]:
        raise CorruptFileError(uri, path, "its checksum does not fit its content")


def check_rows(collection: str, kind: FileKind, rows: pa.Table) -> None:
    """Refuse rows that no file may hold; an empty collection would become NULL as a partition."""
    _check_collection(collection)
    if not rows.schema.equals(protocol.ROWS):
        raise InvalidChangeError(
            f"rows of {collection} have columns {rows.schema.names}, or types, other than {protocol.ROWS}"
        )
    if rows.num_rows == 0:
        raise InvalidChangeError(f"a file of {collection} needs rows")
    if nulls := [name for name in protocol.ROWS.names if rows[name].null_count]:
        raise InvalidChangeError(f"rows of {collection} have NULLs in {', '.join(nulls)}")
    diff = pc.min_max(rows["diff"] if kind is FileKind.BASE else pc.abs(rows["diff"])).as_py()
    if diff != {"min": 1, "max": 1}:
        raise _unfit_diff(collection, kind)
    if kind is not FileKind.TAIL and not _ascends(rows["key"]):
        raise InvalidChangeError(f"keys of a {kind} file of {collection} are not unique and in order")


def _check_collection(collection: str) -> None:
    if re.fullmatch(r"[A-Za-z0-9_]+", collection) is None:
        raise InvalidChangeError(f"{collection!r} is no name of a collection")


def _unfit_diff(collection: str, kind: FileKind) -> InvalidChangeError:
    return InvalidChangeError(f"rows of a {kind} file of {collection} have a diff other than the kind allows")


def _ascends(keys: pa.ChunkedArray) -> bool:
    if len(keys) == 1:
        return True
    return bool(pc.all(pc.less(keys.slice(0, len(keys) - 1), keys.slice(1))).as_py())


@lru_cache(1024)  # of each file that is read, kind, collection and fence are asked for in turn
def _parts(path: str) -> re.Match[str]:
    found = _NAME.fullmatch(path)
    if found is None:
        raise InvalidChangeError(f"{path} is no name of a data file")
    return found


def rows_table(rows: Sequence[Row]) -> pa.Table:
    """Return rows of (key, value, ts, diff) in the columns of a data file."""
    keys, values, ts, diffs = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [], [])
    columns = [
        binary_column(keys),
        binary_column(values),
        pa.chunked_array([number_array(pa.int64(), ts)]),
        pa.chunked_array([number_array(pa.int32(), diffs)]),
    ]
    return pa.Table.from_arrays(columns, schema=protocol.ROWS)


def with_ts(rows: pa.RecordBatch, ts: int) -> pa.Table:
    """Return rows of keys and values in the columns of a data file, all of them added at one ts."""
    count = rows.num_rows
    columns = [rows["key"], rows["value"], repeated(pa.int64(), ts, count), repeated(pa.int32(), 1, count)]
    return pa.Table.from_arrays(columns, schema=protocol.ROWS)
