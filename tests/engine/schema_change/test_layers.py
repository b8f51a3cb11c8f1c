"""Rows of tables at a state: the newest change of each key wins, wherever it is, and little is read to find it."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.engine.log.data_files import rows_table
from catalog.engine.log.protocol import ROWS as COLUMNS
from catalog.engine.log.protocol import AppTxn, DataFile, FileKind, LogState, Operation, Row
from catalog.engine.schema_change.layers import LayerCache, LayeredView, after_prefix
from catalog.errors import CorruptFileError, InvalidChangeError, MissingFileError, RetiredError
from tests.engine.log.places import DeltaPlace, MemoryPlace, Place, change, created
from tests.engine.schema_change.layered import FENCE, KEYS, ROWS, Layered, small_pieces, value_at
from tests.memory_log import Memory, MemoryLog

GROUP_ROWS = 8_192

some_keys = st.sets(st.sampled_from(KEYS), max_size=6)
happenings = st.one_of(
    st.tuples(st.just("write"), some_keys, some_keys, st.booleans()),
    st.tuples(st.just("layer"), some_keys, some_keys, st.integers(0, 5)),
    st.just(("spill",)),
    st.just(("merge",)),
    st.tuples(st.just("fold"), st.booleans()),
)


@pytest.fixture(params=["memory", "local"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return MemoryPlace() if request.param == "memory" else DeltaPlace(str(tmp_path / "store" / "tables"))


def play(tables: Layered, happened: list[tuple[object, ...]]) -> None:
    for verb, *given_ in happened:
        match verb, given_:
            case "write", [added, removed, told]:
                tables.write(added=added, removed=removed, told=told)  # type: ignore[arg-type]
            case "layer", [added, removed, int(age)]:
                tables.layer(max(0, tables.state.version + 1 - age), added, removed)  # type: ignore[arg-type]
            case "spill", _:
                tables.spill()
            case "merge", _:
                tables.merge()
            case "fold", [kept]:
                tables.fold(keep_tombstones=bool(kept))
            case _:
                raise AssertionError(verb)


@settings(deadline=None, max_examples=60)
@given(st.lists(happenings, max_size=12), st.sampled_from([0, 512]))
def test_whatever_happened_the_rows_are_those_of_a_dictionary(
    happened: list[tuple[object, ...]], few_rows_max: int
) -> None:
    """At every version, for a process that followed and for a new one, by every way to read."""
    with small_pieces(few_rows_max):
        tables = Layered.at(MemoryPlace())
        play(tables, happened)
        tables.check()


@pytest.mark.parametrize("seed", range(6))
def test_random_histories_on_delta_lake_are_those_of_a_dictionary(tmp_path: Path, seed: int) -> None:
    """As above, with files in a folder."""
    chance = random.Random(seed)  # noqa: S311 - a history, and no secret

    def some() -> list[bytes]:
        return chance.sample(KEYS, chance.randrange(7))

    def happening() -> tuple[object, ...]:
        verb = chance.choices(["write", "layer", "spill", "merge", "fold"], [6, 3, 1, 1, 1])[0]
        match verb:
            case "write":
                return verb, some(), some(), chance.random() < 0.5
            case "layer":
                return verb, some(), some(), chance.randrange(6)
            case "fold":
                return verb, chance.random() < 0.5
            case _:
                return (verb,)

    with small_pieces(chance.choice([0, 512])):
        tables = Layered.at(DeltaPlace(str(tmp_path / "store" / "tables")))
        play(tables, [happening() for _ in range(25)])
        tables.check()


def test_the_rows_are_the_same_on_delta_lake(place: Place) -> None:
    """One long history, with row groups of the usual size."""
    tables = Layered.at(place)
    tables.write(added=KEYS)
    tables.fold(keep_tombstones=False)
    tables.write(added=KEYS[:3], removed=KEYS[2:5])
    tables.layer(1, KEYS[4:8])
    tables.spill()
    tables.write(removed=KEYS[6:], told=False)
    tables.layer(tables.state.version + 1, KEYS[9:], KEYS[:2])
    tables.merge()
    tables.fold(keep_tombstones=True)
    tables.write(added=KEYS[1:2])
    tables.check()


def test_at_one_ts_a_base_wins_then_an_added_row_then_a_removed_one(place: Place) -> None:
    """In whatever order they were committed."""
    tables = Layered.at(place)
    tables.write(added=[b"a", b"b", b"c"])
    tables.fold(keep_tombstones=False)
    ts = tables.state.version - 1
    tables.layer(ts, [b"a"], [b"b"])
    assert tables.view.get(ROWS, b"a") == value_at(b"a", 1)
    assert tables.view.get(ROWS, b"b") == value_at(b"b", 1)
    tables.write(added=[b"c"], removed=[b"c"])
    tables.layer(tables.state.version, (), [b"c"])
    assert tables.view.get(ROWS, b"c") == value_at(b"c", tables.state.version - 1)
    tables.check()


def test_a_view_stays_as_it_was(place: Place) -> None:
    """Commits and folds after it change nothing of it."""
    tables = Layered.at(place)
    tables.write(added=[b"a"])
    before = tables.view
    tables.write(removed=[b"a"], added=[b"b"])
    tables.fold(keep_tombstones=False)
    assert list(before.rows(ROWS)) == [(b"a", b"a@1")]


class CountingLog(MemoryLog):
    """Counts the row groups and the bytes that are read, and the tail files."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self.ranges: list[int] = []
        self.tails: Counter[str] = Counter()

    def _range(self, file: DataFile, start: int, end: int) -> bytes:
        self.ranges.append(end - start)
        return super()._range(file, start, end)

    def rows(self, file: DataFile) -> list[Row]:
        self.tails[file.path] += 1
        return super().rows(file)

    def read(self, file: DataFile, *_: object) -> pa.Table:
        raise AssertionError(f"{file.path} is read whole")


def large(count: int, kind: FileKind = FileKind.LAYER) -> tuple[CountingLog, LogState, DataFile]:
    """Commit a file of numbered keys."""
    place = MemoryPlace()
    _, state = created(place)
    log = CountingLog(place.memory)
    rows = rows_table([(b"%08d" % number, b"%d" % number * 10, 1, 1) for number in range(0, 2 * count, 2)])
    file = log.write(ROWS, kind, FENCE, rows)
    return log, state.after(log.compare_and_append(state, change(file, operation=Operation.LOAD))), file


@pytest.mark.parametrize("kind", [FileKind.LAYER, FileKind.BASE])
def test_a_lookup_reads_the_footer_once_and_only_the_row_group_that_can_hold_the_key(kind: FileKind) -> None:
    """A key before, between or after all groups is looked up in none."""
    log, state, file = large(5 * GROUP_ROWS, kind)
    view = LayeredView(LayerCache(log), state)
    assert view.get(ROWS, b"%08d" % 2000) == b"2000" * 10
    footer, group = log.ranges
    assert group < file.size / 2
    assert view.get(ROWS, b"%08d" % 2001) is None
    assert view.get(ROWS, b"%08d" % (2 * 16_384 - 1)) is None
    assert view.get(ROWS, b"a") is None
    assert list(view.prefixed(ROWS, b"%07d" % 200)) == [(b"%08d" % n, b"%d" % n * 10) for n in range(2000, 2010, 2)]
    assert view.dated(ROWS, [b"%08d" % 2000, b"%08d" % 2001]) == {b"%08d" % 2000: (1, b"2000" * 10)}
    assert log.ranges == [footer, group]
    assert list(view.rows(ROWS, b"%08d" % 80_000)) == [(b"%08d" % n, b"%d" % n * 10) for n in range(80_000, 81_920, 2)]
    assert len(log.ranges) == 3


def test_many_keys_are_looked_up_by_the_group(place: Place) -> None:
    """All that are there are found, however many of a group are asked for."""
    log, state = created(place)
    file = log.write(ROWS, FileKind.LAYER, FENCE, rows_table([(b"%05d" % n, b"v%d" % n, 1, 1) for n in range(10_000)]))
    state = state.after(log.compare_and_append(state, change(file)))
    view = LayeredView(LayerCache(log), state)
    wanted = [b"%05d" % number for number in range(0, 20_000, 7)]
    assert view.dated(ROWS, wanted) == {b"%05d" % n: (1, b"v%d" % n) for n in range(0, 10_000, 7)}


def test_memory_is_bounded_whatever_is_read() -> None:
    """Groups that were used longest ago are let go; a scan keeps none."""
    log, state, _ = large(8 * GROUP_ROWS)
    cache = LayerCache(log, bytes_max=1_500_000)
    view = LayeredView(cache, state)
    for number in range(0, 16 * GROUP_ROWS, GROUP_ROWS):
        assert view.get(ROWS, b"%08d" % number) is not None
        assert cache.size < 1_600_000
    many = LayeredView(LayerCache(log), state)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("catalog.engine.schema_change.layers._KEPT_GROUPS_MAX", 4)
        assert sum(table.num_rows for table in many.tables(ROWS)) == 8 * GROUP_ROWS
    assert many.cache.size < 20_000
    assert max(table.num_rows for table in many.tables(ROWS)) == GROUP_ROWS


def test_each_tail_file_is_read_once_and_none_of_a_commit_that_is_known() -> None:
    """Merged files are not read either, by who knows the rows."""
    place = MemoryPlace()
    log = CountingLog(place.memory)
    created(place)
    state = log.state(0)
    tables = Layered(log, state, LayeredView(LayerCache(log), state))
    tables.view.tail(ROWS)
    tables.write(added=[b"a"])
    assert list(tables.view.rows(ROWS)) == [(b"a", b"a@1")]
    assert not log.tails
    tables.write(added=[b"b"], told=False)
    tables.write(added=[b"c"], told=False)
    assert tables.view.get(ROWS, b"b") == b"b@2"
    assert len(log.tails) == 2
    known = tables.view
    tables.merge()
    log.tails.clear()
    assert [key for key, _ in known.after(tables.state).rows(ROWS)] == [b"a", b"b", b"c"]
    assert not log.tails
    tables.spill()
    assert tables.view.tail(ROWS).size == 0
    assert [key for key, _ in tables.view.rows(ROWS)] == [b"a", b"b", b"c"]


def test_a_commit_to_a_large_tail_costs_as_much_as_its_own_rows() -> None:
    """Runs are merged now and then, and most of the tail is shared by the views before and after."""
    tables = Layered.at(MemoryPlace())
    tables.view.tail(ROWS)
    tables.write(added=[b"%06d" % number for number in range(5_000)])
    large = tables.view.tail(ROWS).runs[0]
    for number in range(20):
        tables.write(added=[b"x%d" % number])
        assert tables.view.tail(ROWS).runs[0] is large
    assert len(tables.view.tail(ROWS).runs) <= 6
    assert len(list(tables.view.rows(ROWS))) == 5_020


def test_rows_whose_retention_has_ended_are_retired(place: Place) -> None:
    """A file that is gone before that is damage."""
    tables = Layered.at(place)
    tables.layer(1, [b"a"])
    tables.write(added=[b"b"])
    old = tables.state
    tables.fold(keep_tombstones=False)
    tables.log.delete([*old.files])
    view = LayeredView(LayerCache(tables.log), old)
    for read in (lambda: view.get(ROWS, b"a"), lambda: list(view.rows(ROWS)), lambda: view.dated(ROWS, [b"a"])):
        with pytest.raises(MissingFileError):
            read()
    tables.commit(change(operation=Operation.RETAIN, app_txns={AppTxn.FRONTIER: tables.state.version}))
    for read in (lambda: view.get(ROWS, b"a"), lambda: list(view.rows(ROWS)), lambda: view.dated(ROWS, [b"a"])):
        with pytest.raises(RetiredError):
            read()


@pytest.mark.parametrize("kind", [FileKind.LAYER, FileKind.BASE])
def test_a_flipped_bit_is_found_or_changes_nothing(tmp_path: Path, kind: FileKind) -> None:
    """In a page, in the footer, in the bounds: no lookup answers wrongly."""
    place = DeltaPlace(str(tmp_path / "store" / "tables"))
    log, state = created(place)
    keys = [b"%05d" % number for number in range(0, 40_000, 2)]
    rows = rows_table([(key, key * 3, 1, 1) for key in keys])
    file = log.write(ROWS, kind, FENCE, rows)
    state = state.after(log.compare_and_append(state, change(file, operation=Operation.LOAD)))
    path = place.folder / file.path
    whole = path.read_bytes()
    asked = {key: key * 3 if key in keys else None for key in (keys[0], keys[9_000], keys[-1], b"16381", b"50000")}
    found = 0
    for position in [*range(4, len(whole), len(whole) // 150), *range(len(whole) - 2_000, len(whole), 7)]:
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1 << position % 8]) + whole[position + 1 :])
        view = LayeredView(LayerCache(place.open()), state)
        try:
            assert {key: view.get(ROWS, key) for key in asked} == asked
            assert list(view.rows(ROWS, b"39990")) == [(key, key * 3) for key in keys[-5:]]
        except CorruptFileError:
            found += 1
    assert found > 100


def test_a_file_that_was_cut_is_corrupt(tmp_path: Path) -> None:
    """Its footer is gone, or the pages before it have moved."""
    place = DeltaPlace(str(tmp_path / "store" / "tables"))
    tables = Layered.at(place)
    tables.layer(1, [b"%d" % number for number in range(100)])
    path = place.folder / next(iter(tables.state.files))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(CorruptFileError):
        tables.view.get(ROWS, b"1")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([(b"b", b"", 1, 1), (b"a", b"", 1, 1)], "keys of a layer file of e12 are not unique and in order"),
        ([(b"a", b"", 1, -1), (b"a", b"", 1, 1)], "keys of a layer file of e12 are not unique and in order"),
        ([(b"a", b"", 1, 2)], "rows of a layer file of e12 have a diff other than the kind allows"),
    ],
)
def test_a_layer_holds_one_change_of_each_key_in_order(place: Place, rows: list[Row], words: str) -> None:
    log, _ = created(place)
    with pytest.raises(InvalidChangeError, match=words):
        log.write(ROWS, FileKind.LAYER, FENCE, rows_table(rows))


def test_a_layer_holds_no_nulls(place: Place) -> None:
    log, _ = created(place)
    rows = pa.table({"key": [b"a", b"b"], "value": [b"", None], "ts": [1, 1], "diff": [1, 1]}, schema=COLUMNS)
    with pytest.raises(InvalidChangeError, match="NULLs in value"):
        log.write(ROWS, FileKind.LAYER, FENCE, rows)


def test_a_layer_is_dated_up_to_its_commit(place: Place) -> None:
    """At any earlier ts, and at no later one."""
    log, state = created(place)
    later = log.write(ROWS, FileKind.LAYER, FENCE, rows_table([(b"a", b"", 2, 1)]))
    with pytest.raises(InvalidChangeError, match="has ts 2 to 2, the commit makes version 1"):
        log.compare_and_append(state, change(later, operation=Operation.LOAD))
    earlier = log.write(ROWS, FileKind.LAYER, FENCE, rows_table([(b"a", b"", 0, 1), (b"b", b"", 1, -1)]))
    commit = log.compare_and_append(
        state, change(earlier, operation=Operation.LOAD, app_txns={AppTxn.TABLES_FORMAT: 1})
    )
    assert place.open().commit(1) == commit
    assert place.open().state(1).files_of(ROWS, FileKind.LAYER) == [earlier]
    log.compare_and_append(state.after(commit), change(operation=Operation.CLAIM))
    assert place.open().commit(2).operation is Operation.CLAIM


@pytest.mark.parametrize(
    ("prefix", "after"),
    [(b"", None), (b"a", b"b"), (b"a\xff", b"b"), (b"\xff\xff", None), (b"a\xff\x00", b"a\xff\x01")],
)
def test_the_end_of_a_prefix(prefix: bytes, after: bytes | None) -> None:
    assert after_prefix(prefix) == after
