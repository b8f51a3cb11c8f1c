"""Columns that are to become messages: what fits, what is refused and how it is named, and how tables are cut."""

from __future__ import annotations

import pickle
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.engine.codec import bounded_batches, from_spark, rebatch, spark_type
from catalog.engine.codec.columns import fit
from catalog.errors import UnfitColumnError
from catalog.generated import objects_v22_pb2 as v22
from tests.engine.codec.test_message_codec import codec_of, serialise

SIZE = {"executors": 1, "cores": 2, "memory_mib": 3}
REPLICA = {"cluster_id": 1, "name": "r1", "owner_id": None, "size": SIZE}


def test_members_are_found_by_name() -> None:
    """A struct in another order means the same; by position, values would be swapped silently."""
    size = dict(reversed(SIZE.items()))
    messages = pa.array([dict(reversed(REPLICA.items())) | {"size": size}])
    expected = v22.ClusterReplicaValue(cluster_id=1, name="r1", size=v22.ReplicaSize(**SIZE))
    assert codec_of(v22.ClusterReplicaValue).encode(messages).equals(serialise(expected))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cluster_id": Decimal(-1)}, ".cluster_id holds numbers from -1 to 1; needed: uint64"),
        ({"cluster_id": Decimal(2**64)}, ".cluster_id holds numbers from 1 to 18446744073709551616; needed: uint64"),
        ({"size": SIZE | {"cores": -5}}, ".size.cores holds numbers from -5 to 2; needed: uint32"),
        ({"size": SIZE | {"cores": 2**32}}, ".size.cores holds numbers from 2 to 4294967296; needed: uint32"),
        ({"size": SIZE | {"cores": None}}, ".size.cores holds null; needed: uint32"),
        ({"name": None}, ".name holds null; needed: string"),
        ({"owner_id": {"public": False}}, ".owner_id.public holds false; needed: true"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(change: dict[str, object], message: str) -> None:
    """Nothing wraps, nothing becomes a default: the column is named by its path."""
    codec = codec_of(v22.ClusterReplicaValue)
    held = pa.array([REPLICA, REPLICA | change, REPLICA | {"size": None}], spark_type(codec.type))
    with pytest.raises(UnfitColumnError) as caught:
        from_spark(held, codec.type, codec.name)
    assert f"{codec.name}{message}" in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301
    with pytest.raises(UnfitColumnError, match="holds"):
        codec.encode(held)
    assert len(from_spark(held[2:], codec.type)) == 1


NUMBER, TEXT = pa.array([1], pa.uint64()), pa.nulls(1, pa.string())


@pytest.mark.parametrize(
    ("names", "members", "message"),
    [
        (["text"], [TEXT], "holds the members text; needed: number, text"),
        (["number", "text", "more"], [NUMBER, TEXT, TEXT], "holds the members number, text, more"),
        (["number", "number"], [NUMBER, NUMBER], "holds the members number, number"),
        (["number", "text"], [TEXT, TEXT], ".number holds string; needed: uint64"),
        (["number", "text"], [pa.array([1.0]), TEXT], ".number holds double; needed: uint64"),
        (["number", "text"], [NUMBER, pa.array([[]])], ".text holds list<item: null>; needed: string"),
    ],
)
def test_a_column_of_another_shape_is_refused(names: list[str], members: list[pa.Array], message: str) -> None:
    """What it does not find or does not like, ptars would leave out without a word."""
    with pytest.raises(UnfitColumnError, match=message):
        codec_of(v22.ConfigValue).encode(pa.StructArray.from_arrays(members, names=names))


def test_a_struct_that_is_never_null_fits_where_the_struct_around_it_is() -> None:
    """The null is the outer one's alone, whatever lies under it."""
    inner = pa.struct([pa.field("number", pa.int32(), nullable=False), pa.field("none", pa.struct([]), nullable=False)])
    target = pa.struct([pa.field("inner", inner, nullable=False)])
    rows = [{"inner": {"number": 1, "none": {}}}, None]
    fitted = fit(pa.array(rows, target), target)
    fitted.validate(full=True)
    assert fitted.to_pylist() == rows
    assert fitted.field(0).null_count == 0


def test_what_is_no_column_of_messages_is_refused() -> None:
    codec = codec_of(v22.ConfigValue)
    with pytest.raises(TypeError, match="no field of a message is of type timestamp"):
        spark_type(pa.timestamp("ns"))
    with pytest.raises(UnfitColumnError, match="holds null; needed: a message in every row"):
        codec.encode(pa.nulls(1, codec.type))
    with pytest.raises(UnfitColumnError, match="holds int64; needed: struct<"):
        codec.encode(pa.array([1]))
    with pytest.raises(TypeError, match="not a ChunkedArray"):
        codec.decode(pa.chunked_array([serialise(v22.ConfigValue())]))


def test_other_whole_numbers_and_untyped_nulls_fit() -> None:
    """A literal of a query or a migration need not be of the exact width, if its value fits."""
    codec = codec_of(v22.ConfigValue)
    for number in (pa.array([7], pa.int8()), pa.array([Decimal(7)], pa.decimal128(38, 2)), pa.array([7], pa.uint64())):
        messages = pa.StructArray.from_arrays([number, pa.nulls(1)], names=["number", "text"])
        assert codec.encode(messages).equals(serialise(v22.ConfigValue(number=7)))


@given(st.lists(st.lists(st.integers(0, 50), max_size=20), max_size=4), st.integers(1, 200), st.integers(1, 9))
def test_batches_are_bounded(chunks: list[list[int]], bytes_max: int, rows_max: int) -> None:
    """All rows in order, each batch within both bounds unless it is one row, and none that could be longer."""
    table = pa.table({"value": pa.chunked_array([[b"x" * size for size in chunk] for chunk in chunks], pa.binary())})
    batches = list(bounded_batches(table, bytes_max=bytes_max, rows_max=rows_max))
    if batches:
        assert pa.Table.from_batches(batches).equals(table)
    assert sum(batch.num_rows for batch in batches) == table.num_rows
    start = 0
    for batch in batches:
        assert batch.num_rows <= rows_max
        assert batch.nbytes <= bytes_max or batch.num_rows == 1
        longer = table.slice(start, batch.num_rows + 1)
        start += batch.num_rows
        assert longer.num_rows > rows_max or longer.nbytes > bytes_max or start == table.num_rows


@given(st.lists(st.lists(st.integers(0, 50), max_size=20), max_size=6), st.integers(1, 200))
def test_tables_are_joined_to_batches_that_are_as_large_as_they_may_be(parts: list[list[int]], bytes_max: int) -> None:
    """All rows in order, whatever table each came in, and none but the last batch could be longer."""
    tables = [pa.table({"value": pa.array([b"x" * size for size in part], pa.binary())}) for part in parts]
    batches = list(rebatch(tables, bytes_max))
    expected = [value for table in tables for value in table["value"].to_pylist()]
    assert [value for batch in batches for value in batch["value"].to_pylist()] == expected
    for batch, following in pairwise(batches):
        assert batch.nbytes <= bytes_max or batch.num_rows == 1
        assert pa.concat_batches([batch, following.slice(0, 1)]).nbytes > bytes_max


def test_columns_beyond_32_bit_offsets_are_cut() -> None:
    """Rows of more than 2 GiB, the same buffer many times over, come out in batches of at most 64 MiB."""
    chunk = pa.table({"value": pa.array([b"x" * 200_000] * 100, pa.binary())})
    table = pa.concat_tables([chunk] * 120)
    assert table.nbytes > 2**31
    assert sum(batch.num_rows for batch in bounded_batches(table) if batch.nbytes <= 64 * 2**20) == table.num_rows
