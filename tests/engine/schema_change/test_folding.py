"""Folding: files become fewer or larger, and no row that a reader sees changes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from catalog.engine.base.fence import Fence
from catalog.engine.log.data_files import rows_table
from catalog.engine.log.protocol import CommitRequest, DataFile, FileKind, Log, Operation
from catalog.engine.schema_change.folding import FoldingPolicy, FoldingTask, due, fold, merge_tails, spill
from catalog.engine.schema_change.layers import LayerCache, LayeredView
from catalog.errors import InvalidChangeError
from tests.engine.log.places import DeltaPlace, MemoryPlace, Place, change, created
from tests.engine.schema_change.layered import FENCE, KEYS, OTHER, ROWS, Layered, check_view, small_pieces, value_at


@pytest.fixture(params=["memory", "local"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return MemoryPlace() if request.param == "memory" else DeltaPlace(str(tmp_path / "store" / "tables"))


def kinds(tables: Layered) -> list[FileKind]:
    return sorted(file.kind for file in tables.state.files.values())


def written(place: Place) -> Layered:
    """Tables with a base, a layer and a tail, each with rows that another one removes."""
    tables = Layered.at(place)
    tables.write(added=KEYS[:6])
    tables.fold(keep_tombstones=False)
    tables.layer(tables.state.version + 1, KEYS[5:9], KEYS[:1])
    tables.write(added=KEYS[8:11], removed=KEYS[1:2])
    tables.write(removed=[KEYS[5], b"never there"])
    return tables


def test_a_tail_is_spilled_into_one_layer_with_its_tombstones(place: Place) -> None:
    """The newest change of each key, with the ts that it had."""
    tables = written(place)
    tables.write(added=KEYS[8:9])
    tables.spill()
    assert kinds(tables) == [FileKind.BASE, FileKind.LAYER, FileKind.LAYER]
    assert tables.log.commit(tables.state.version).operation is Operation.REORGANISE
    layer = max(tables.state.files_of(ROWS, FileKind.LAYER), key=lambda file: file.ts_max)
    rows = {key: (value, ts, diff) for key, value, ts, diff in tables.log.rows(layer)}
    assert rows[b"never there"] == (b"", 5, -1)
    assert rows[KEYS[1]] == (b"", 4, -1)
    assert rows[KEYS[8]] == (value_at(KEYS[8], 6), 6, 1)
    assert tables.view.tail(ROWS).size == 0
    tables.check()


def test_everything_is_folded_into_a_base_without_tombstones(place: Place) -> None:
    """It is dated at the version that it was read at."""
    tables = written(place)
    version = tables.state.version
    tables.fold(keep_tombstones=False)
    (base,) = tables.state.files.values()
    assert (base.kind, base.ts_min, base.ts_max) == (FileKind.BASE, version, version)
    assert tables.view.dated(ROWS, [*KEYS, b"never there"]).keys() == {key for key, _ in tables.view.rows(ROWS)}
    tables.check()


def test_tombstones_are_kept_while_asked(place: Place) -> None:
    """Rows that are dated earlier, and come later, stay removed."""
    tables = written(place)
    tables.fold(keep_tombstones=True)
    assert kinds(tables) == [FileKind.LAYER]
    tables.layer(2, [b"never there", KEYS[1], KEYS[11]])
    assert tables.view.get(ROWS, b"never there") is None
    assert tables.view.get(ROWS, KEYS[1]) is None
    assert tables.view.get(ROWS, KEYS[11]) == value_at(KEYS[11], 2)
    tables.check()


def test_rows_that_are_all_removed_leave_no_file(place: Place) -> None:
    tables = Layered.at(place)
    tables.write(added=KEYS)
    tables.write(removed=KEYS)
    tables.fold(keep_tombstones=False)
    assert tables.state.files == {}
    tables.check()


def test_what_is_committed_meanwhile_stays_on_top() -> None:
    """A fold that was read before other commits removes exactly what it read."""
    makers: tuple[Callable[[Log, LayeredView, str, Fence], CommitRequest], ...] = (
        partial(fold, keep_tombstones=False),
        partial(fold, keep_tombstones=True),
        spill,
        merge_tails,
    )
    for make in makers:
        tables = written(MemoryPlace())
        request = make(tables.log, tables.view, ROWS, FENCE)
        tables.write(added=[KEYS[1], KEYS[11]], removed=[KEYS[2]])
        tables.commit(request)
        live = {key: (ts, min(rank, 1), value) for key, (ts, rank, value) in tables.model.items() if rank}
        assert dict(tables.view.rows(ROWS)) == {key: value for key, (_, _, value) in live.items()}
        assert list(LayeredView(LayerCache(tables.log), tables.state).rows(ROWS)) == list(tables.view.rows(ROWS))
        with pytest.raises(InvalidChangeError, match="cannot remove files that the log does not hold"):
            tables.commit(replace(request, txid="again", adds=()))


def test_small_tail_files_are_merged_and_large_ones_left(place: Place) -> None:
    """The merged file has the ts of the changes in it."""
    tables = Layered.at(place)
    tables.write(added=[b"%04d" % number for number in range(3_000)])
    (large,) = tables.state.files.values()
    for number in range(4):
        tables.write(added=KEYS[number : number + 3], removed=KEYS[:1])
    tables.merge(FoldingPolicy(small_tail_bytes_max=large.size - 1))
    merged = [file for file in tables.state.files.values() if file != large]
    assert [(file.kind, file.ts_min, file.ts_max) for file in merged] == [(FileKind.TAIL, 3, 5)]
    assert large.path in tables.state.files
    assert merged[0].rows == 6
    assert tables.view.get(ROWS, KEYS[2]) == value_at(KEYS[2], 4)


def test_the_task_that_is_due() -> None:
    """Small files first, then the tail as a whole, then layers; nothing while all is in proportion."""
    policy = FoldingPolicy(tail_files_max=2, tail_bytes_max=1_000, small_tail_bytes_max=1_500, layers_max=2)
    tables = Layered.at(MemoryPlace())
    assert due(tables.view, ROWS, policy) is None
    for number in range(2):
        tables.write(added=[b"%d" % number])
        assert due(tables.view, ROWS, policy) is None
    tables.write(added=[b"2"])
    assert due(tables.view, ROWS, policy) is FoldingTask.MERGE
    assert due(tables.view, OTHER, policy) is None
    assert due(tables.view, ROWS, replace(policy, small_tail_bytes_max=1)) is FoldingTask.SPILL
    tables.merge(policy)
    assert due(tables.view, ROWS, policy) is None
    tables.write(added=[b"%0200d" % number for number in range(4)])
    tables.view.tail(ROWS)
    assert due(tables.view, ROWS, policy) is FoldingTask.SPILL
    tables.spill()
    assert due(tables.view, ROWS, policy) is None


def test_layers_are_counted_where_they_lie_over_one_another() -> None:
    """Those side by side are one layer, however many files it has."""
    tables, policy = Layered.at(MemoryPlace()), FoldingPolicy(layers_max=2)
    for first in (b"a", b"b", b"c"):
        tables.layer(1, [first, first + b"z"])
    assert (tables.view.depth(ROWS), due(tables.view, ROWS, policy)) == (1, None)
    tables.layer(1, [b"bz", b"c"])
    assert (tables.view.depth(ROWS), due(tables.view, ROWS, policy)) == (2, None)
    tables.layer(1, [b"bz", b"bzz"])
    assert (tables.view.depth(ROWS), due(tables.view, ROWS, policy)) == (3, FoldingTask.FOLD)
    tables.fold(keep_tombstones=True)
    assert tables.view.depth(ROWS) == 1


@pytest.mark.parametrize("keep_tombstones", [False, True])
def test_a_fold_writes_several_files_side_by_side(*, keep_tombstones: bool) -> None:
    """None is larger than it may be, and together they are all rows."""
    with small_pieces():
        tables = written(MemoryPlace())
        tables.fold(keep_tombstones=keep_tombstones)
        assert len(tables.state.files) > 1
        assert tables.view.depth(ROWS) == int(keep_tombstones)
        tables.check()


def test_a_fold_of_many_rows_holds_few_of_them() -> None:
    """Memory follows from the size of a file and the number of layers, not from the rows."""
    log, state = created(MemoryPlace())
    files: list[DataFile] = []
    for ts in (0, 1):
        rows = [(b"%08d" % number, b"%d" % number * 10, ts, 1) for number in range(ts, 200_000, 2 - ts)]
        files.append(log.write(ROWS, FileKind.LAYER, FENCE, rows_table(rows)))
    state = state.after(log.compare_and_append(state, change(*files, operation=Operation.LOAD)))
    view = LayeredView(LayerCache(log, bytes_max=2**20), state)
    tracemalloc.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("catalog.engine.schema_change.folding.FILE_BYTES_MAX", 2**20)
        request = fold(log, view, ROWS, FENCE, keep_tombstones=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(file.rows for file in request.adds) == 200_000
    assert peak < 16 * 2**20
    assert [key for key, _ in view.rows(ROWS, b"00199990")] == [b"%08d" % number for number in range(199_990, 200_000)]


def test_folds_of_one_collection_leave_others_alone(place: Place) -> None:
    tables = written(place)
    other = tables.log.write_tail(OTHER, FENCE, [(b"a", b"1", tables.state.version + 1, 1)])
    tables.commit(change(other))
    tables.fold(keep_tombstones=False)
    assert tables.view.get(OTHER, b"a") == b"1"
    assert tables.state.files[other.path] == other
    model = tables.model
    assert list(tables.view.rows(ROWS)) == [(key, value) for key, (_, _, value) in sorted(model.items())]


def test_a_new_process_sees_what_a_follower_sees(place: Place) -> None:
    """After a history with every kind of file."""
    tables = written(place)
    tables.spill()
    tables.write(added=KEYS[::2], removed=KEYS[1::3], told=False)
    tables.merge()
    check_view(LayeredView(LayerCache(place.open()), tables.state), tables.model)
