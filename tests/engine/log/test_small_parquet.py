"""Small files that are written and read without Arrow: Arrow agrees about every one of them, and judges the others."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.engine.log.protocol import ROWS, Row
from catalog.engine.log.small_parquet import read_columns, read_rows, write_rows

rows = st.lists(
    st.tuples(
        st.binary(max_size=40),
        st.binary(max_size=300),
        st.integers(-(2**63), 2**63 - 1),
        st.integers(-(2**31), 2**31 - 1),
    ),
    min_size=1,
    max_size=70,
)
names = st.sampled_from(["a", "bc", "longer than that"])
tables = st.lists(
    st.fixed_dictionaries(
        {
            "plain": st.integers(-(2**63), 2**63 - 1),
            "some": st.none() | st.integers(-5, 5),
            "add": st.none()
            | st.fixed_dictionaries({"path": st.none() | names, "size": st.none() | st.integers(0, 9)}),
            "listed": st.none() | st.lists(st.integers(0, 9), max_size=2),
        }
    ),
    max_size=60,
)
SCHEMA = pa.schema(
    [
        pa.field("plain", pa.int64(), nullable=False),
        pa.field("some", pa.int32()),
        pa.field("add", pa.struct([pa.field("path", pa.string()), pa.field("size", pa.int64())])),
        pa.field("listed", pa.list_(pa.int64())),
    ]
)
COLUMNS = ["plain", "some", "add.path", "add.size"]


def encoded(found: list[dict[str, Any]], **options: Any) -> bytes:  # noqa: ANN401 - those of the writer
    buffer = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(found, SCHEMA), buffer, **{"compression": "none", **options})
    return bytes(buffer.getvalue())


@given(rows)
def test_arrow_reads_what_is_written(written: list[Row]) -> None:
    """With the columns of a data file, and the checksum of each page."""
    content = write_rows(written)
    table = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True).read()
    assert table.schema.equals(ROWS)
    assert [tuple(row.values()) for row in table.to_pylist()] == written
    assert read_rows(content) == written


@given(tables, st.booleans(), st.integers(1, 20), st.booleans())
def test_what_arrow_writes_is_read_alike(
    found: list[dict[str, Any]],
    use_dictionary: bool,  # noqa: FBT001 - drawn
    group_rows: int,
    checked: bool,  # noqa: FBT001 - drawn
) -> None:
    """Absent values and structs, dictionaries, several row groups and pages; columns of lists beside them."""
    options = {"row_group_size": group_rows, "data_page_size": 16, "write_page_checksum": checked}
    content = encoded(found, use_dictionary=use_dictionary, **options)
    flat = pq.ParquetFile(pa.BufferReader(content)).read().flatten()
    expected = {name: flat[name].to_pylist() for name in COLUMNS}
    expected["add.path"] = [None if path is None else path.encode() for path in expected["add.path"]]
    assert read_columns(content, COLUMNS) == expected


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "zstd"},
        {"compression": "snappy"},
        {"data_page_version": "2.0"},
        {"use_dictionary": False, "column_encoding": {"plain": "DELTA_BINARY_PACKED"}},
    ],
    ids=str,
)
def test_what_only_arrow_can_read_is_left_to_it(options: dict[str, Any]) -> None:
    """Compressed pages, and encodings that no file of ours has."""
    found = [{"plain": number, "some": None, "add": None, "listed": None} for number in range(9)]
    assert read_columns(encoded(found, **options), COLUMNS) is None
    assert read_columns(encoded(found), ["plain", "listed"]) is None
    assert read_columns(encoded(found), ["no such column"]) is None


@given(rows, st.data())
def test_a_file_that_is_not_whole_is_never_read_as_another(written: list[Row], data: st.DataObject) -> None:
    """Neither cut off nor with a page that was changed: whatever is answered is what was written, or nothing."""
    content = write_rows(written)
    assert read_rows(content[: data.draw(st.integers(0, len(content) - 1))]) is None
    place = data.draw(st.integers(4, content.rindex(b"schema") - 16))
    changed = bytearray(content)
    changed[place] ^= data.draw(st.integers(1, 255))
    assert read_rows(bytes(changed)) in (None, written)
