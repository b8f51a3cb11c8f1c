"""What every log promises: the same tests in memory, in a folder and in an object store."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa
import pytest

from catalog.engine.base.fence import Fence
from catalog.engine.log.protocol import ROWS, AppTxn, DataFile, FileKind, Log, LogState, Operation
from catalog.errors import (
    ConflictError,
    CorruptFileError,
    FencedError,
    InvalidChangeError,
    MissingFileError,
    NoStoreError,
    NoSuchVersionError,
    RetiredError,
)
from tests.engine.log.places import FENCE, Place, append, change, created, grown, rows, tail


def test_a_new_log_is_empty(place: Place) -> None:
    """Version 0 holds no files and no marks, and says who made it."""
    log = place.open()
    assert log.create("first")
    assert log.verify() == 0
    assert log.state(0) == LogState(0, {}, {})
    assert (log.commit(0).operation, log.commit(0).txid) == (Operation.CREATE, "first")


def test_a_log_is_made_once(place: Place) -> None:
    """Whoever comes second is told so, and what is there stays."""
    assert place.open().create("first")
    assert not place.open().create("second")
    assert place.open().commit(0).txid == "first"


def test_where_no_log_is_none_is_read(place: Place) -> None:
    """An absent log is no empty one."""
    with pytest.raises(NoStoreError, match="there is no stash at"):
        place.open().verify()


def test_a_commit_is_read_as_it_was_made(place: Place) -> None:
    """Files, marks, details and time come back, from this log and from any other on the store."""
    log, state = created(place)
    asked = change(tail(log, state, b"a", b"b"), app_txns={AppTxn.EPOCH: 3}, details={"why": "a test"})
    commit = log.compare_and_append(state, asked)
    assert (commit.version, commit.txid, commit.adds) == (1, asked.txid, asked.adds)
    for reader in (log, place.open()):
        assert reader.commit(1) == commit
        assert reader.state(1) == state.after(commit)
        assert reader.verify() == reader.head(0) == 1


def test_rows_are_read_as_they_were_written(place: Place) -> None:
    """Any bytes, in the order they were in."""
    log, state = created(place)
    written = rows(1, b"", b"\x00\xff", "ключ".encode(), value=bytes(range(256)))
    file = log.write("Role_2", FileKind.TAIL, FENCE, written)
    state = state.after(log.compare_and_append(state, change(file)))
    (found,) = place.open().state(1).files.values()
    assert found == file == state.files[file.path]
    assert found.collection == "Role_2"
    assert place.open().read(found) == written
    assert place.open().read(found, ["key", "ts"]) == written.select(["key", "ts"])


def test_files_are_removed_and_added_in_one_commit(place: Place) -> None:
    """Over several collections."""
    log, state = created(place)
    for collection in ("role", "item"):
        state = state.after(log.compare_and_append(state, change(tail(log, state, collection=collection))))
    base = log.write("item", FileKind.BASE, FENCE, rows(2, b"a", b"b"))
    asked = change(base, removes=tuple(state.files.values()), operation=Operation.CONSOLIDATE)
    commit = log.compare_and_append(state, asked)
    assert place.open().commit(3) == commit
    assert place.open().state(3) == state.after(commit) == LogState(3, {base.path: base}, {})


def test_a_commit_may_change_no_file(place: Place) -> None:
    """Marks alone make a commit, and so does nothing at all."""
    log, state = created(place)
    state = state.after(log.compare_and_append(state, change(app_txns={AppTxn.STASH_VERSION: 22})))
    state = state.after(log.compare_and_append(state, change()))
    assert place.open().state(2) == state == LogState(2, {}, {AppTxn.STASH_VERSION: 22})


def test_marks_are_those_of_their_version(place: Place) -> None:
    """Each commit changes those it names, up or down; the others stay."""
    log, state = created(place)
    history = [state]
    history.append(append(log, history[-1], EPOCH=1, DEPLOY_GENERATION=4))
    history.append(append(log, history[-1], STASH_VERSION=22))
    history.append(append(log, history[-1], STASH_VERSION=21, EPOCH=2))
    assert [log.state(state.version).app_txns for state in history] == [state.app_txns for state in history]
    assert history[-1].app_txns == {AppTxn.EPOCH: 2, AppTxn.DEPLOY_GENERATION: 4, AppTxn.STASH_VERSION: 21}
    assert history[-1].fence == Fence(4, 2)


def test_only_one_of_two_commits_lands(place: Place) -> None:
    """Two processes at the same state: the second is refused, and can go on from what the first made."""
    first, state = created(place)
    second = place.open()
    after = append(first, state, b"first")
    with pytest.raises(ConflictError, match="is at ts 1, and the commit was prepared for ts 0"):
        append(second, state, b"second")
    assert second.head(0) == 1
    assert second.state(1) == after
    append(second, after, b"second")
    assert first.head(1) == 2


def test_many_at_once_lose_nothing(place: Place) -> None:
    """Each counts up by one, four times, whatever the others do."""
    created(place)

    def count_up(_: int) -> None:
        log = place.open()
        done = 0
        while done < 4:
            state = log.state(log.head(0))
            with contextlib.suppress(ConflictError):
                log.compare_and_append(state, change(app_txns={AppTxn.EPOCH: state.app_txns.get(AppTxn.EPOCH, 0) + 1}))
                done += 1

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(count_up, range(3)))
    newest = place.open().state(place.open().verify())
    assert (newest.version, newest.app_txns) == (12, {AppTxn.EPOCH: 12})


def test_a_commit_far_behind_is_refused(place: Place) -> None:
    """Even where the entries that it should have followed are long gone."""
    sleeper, state = created(place)
    log = place.open()
    stale = append(sleeper, state)
    newest = retired(log, grown(log, stale, 7), before=6)
    with pytest.raises(RetiredError):
        log.commit(2)
    for late in (sleeper, place.open()):
        with pytest.raises(ConflictError):
            append(late, stale)
    assert log.verify() == newest.version


def test_commits_come_in_order(place: Place) -> None:
    """A range of versions, both ends included."""
    log, state = created(place)
    grown(log, state, 5)
    assert [commit.version for commit in log.commits(2, 4)] == [2, 3, 4]
    assert list(log.commits(3, 2)) == []


def test_every_state_can_be_read(place: Place) -> None:
    """With checkpoints and without, a loaded state is the one that commits lead to."""
    log, state = created(place)
    history = [state]
    for number in range(1, 12):
        removes = tuple(history[-1].files.values())[:1] if number % 3 == 0 else ()
        history.append(append(log, history[-1], removes=removes, EPOCH=number))
        if number in {4, 8}:
            log.checkpoint(number)
    assert [place.open().state(version) for version in range(12)] == history
    assert log.last_checkpoint() == 8


def test_a_version_yet_to_come_says_so(place: Place) -> None:
    """And names the newest."""
    log, state = created(place)
    append(log, state)
    for version in (2, 1_000_000_000):
        with pytest.raises(NoSuchVersionError, match="the newest ts that can be read is 1"):
            log.state(version)
        with pytest.raises(NoSuchVersionError):
            log.commit(version)


def test_expired_versions_name_the_earliest_that_is_left(place: Place) -> None:
    """States from the frontier on stay as they were."""
    log, state = created(place)
    history = [state]
    for number in range(1, 13):
        history.append(append(log, history[-1], EPOCH=number))
        if number % 3 == 0:
            log.checkpoint(number)
    history.append(history[-1].after(log.compare_and_append(history[-1], change(app_txns={AppTxn.FRONTIER: 10}))))
    log.expire(10)
    other = place.open()
    assert [other.state(version) for version in range(10, 14)] == history[10:]
    with pytest.raises(RetiredError, match="the earliest ts that can be read is 10") as caught:
        other.state(1)
    assert caught.value.earliest == 10
    assert other.verify() == other.head(0) == other.head(12) == 13
    append(other, history[-1])


def test_a_log_reads_on_where_it_was_left_behind(place: Place) -> None:
    """A process that slept while all it knew expired finds the newest version all the same."""
    log, state = created(place)
    sleeper = place.open()
    assert sleeper.head(0) == 0
    newest = retired(log, grown(log, state, 8), before=6)
    assert sleeper.head(0) == newest.version


def test_every_file_is_listed_and_can_be_deleted(place: Place) -> None:
    """Committed or not, with its size and about the time it was written."""
    log, state = created(place)
    committed = tail(log, state)
    state = state.after(log.compare_and_append(state, change(committed)))
    orphan = tail(log, state)
    found = {file.path: file for file in log.files()}
    assert found.keys() == {committed.path, orphan.path}
    assert found[orphan.path].size == orphan.size
    assert abs(found[orphan.path].modified_ms - log.now_ms()) < 60_000
    log.delete([orphan.path, orphan.path])
    assert [file.path for file in log.files()] == [committed.path]


def test_a_missing_file_is_named(place: Place) -> None:
    """When it is read."""
    log, state = created(place)
    file = tail(log, state)
    log.delete([file.path])
    with pytest.raises(MissingFileError, match=file.path):
        log.read(file)


@pytest.mark.parametrize(
    ("collection", "kind", "table", "reason"),
    [
        ("", FileKind.TAIL, rows(1, b"a"), "'' is no name of a collection"),
        ("a/../b", FileKind.TAIL, rows(1, b"a"), "is no name of a collection"),
        ("role", FileKind.TAIL, rows(1), "a file of role needs rows"),
        ("role", FileKind.TAIL, rows(1, b"a").drop_columns(["ts"]), "rows of role have columns"),
        ("role", FileKind.TAIL, rows(1, b"a", diff=2), "a diff other than the kind allows"),
        ("role", FileKind.TAIL, rows(1, b"a", diff=0), "a diff other than the kind allows"),
        ("role", FileKind.BASE, rows(1, b"a", diff=-1), "a diff other than the kind allows"),
        ("role", FileKind.BASE, rows(1, b"b", b"a"), "not unique and in order"),
        ("role", FileKind.BASE, rows(1, b"a", b"a"), "not unique and in order"),
        (
            "role",
            FileKind.TAIL,
            pa.table({"key": [b"a"], "value": [None], "ts": [1], "diff": [1]}, schema=ROWS),
            "have NULLs in value",
        ),
    ],
)
def test_rows_that_no_file_may_hold_are_refused(
    place: Place, collection: str, kind: FileKind, table: pa.Table, reason: str
) -> None:
    """Before anything is written."""
    log, _ = created(place)
    with pytest.raises(InvalidChangeError, match=reason):
        log.write(collection, kind, FENCE, table)
    assert list(log.files()) == []


def refusals(
    log: Log, state: LogState
) -> list[tuple[type[Exception], str, tuple[DataFile, ...], tuple[DataFile, ...]]]:
    """Changes that Delta Lake would take without a word, and how each is refused."""
    (present,) = state.files.values()
    fresh, swept = tail(log, state), tail(log, state)
    early = log.write("role", FileKind.TAIL, state.fence, rows(1, b"a"))
    late = log.write("role", FileKind.BASE, state.fence, rows(9, b"a"))
    fenced = tail(log, state, fence=Fence(0, 0))
    log.delete([swept.path])
    return [
        (MissingFileError, "is missing", (swept,), ()),
        (CorruptFileError, f"it has {fresh.size} bytes of 7", (replace(fresh, size=7),), ()),
        (InvalidChangeError, "cannot remove files that the log does not hold", (), (fresh,)),
        (InvalidChangeError, "or that differ from its own", (), (replace(present, rows=9),)),
        (InvalidChangeError, "cannot add files that the log holds already", (present,), ()),
        (InvalidChangeError, "named twice in one commit", (fresh, fresh), ()),
        (InvalidChangeError, "named twice in one commit", (), (present, present)),
        (InvalidChangeError, "named twice in one commit", (present,), (present,)),
        (InvalidChangeError, "is not named as a tail file of ''", (replace(fresh, collection=""),), ()),
        (InvalidChangeError, "holds nothing", (replace(fresh, rows=0),), ()),
        (InvalidChangeError, "is not named as a base file of 'role'", (replace(fresh, kind=FileKind.BASE),), ()),
        (InvalidChangeError, "is no name of a data file", (replace(fresh, path="../up.parquet"),), ()),
        (InvalidChangeError, "has ts 1 to 1, the commit makes version 2", (early,), ()),
        (InvalidChangeError, "has ts 9 to 9, the commit makes version 2", (late,), ()),
        (FencedError, "this process holds generation 0, epoch 0", (fenced,), ()),
    ]


def test_changes_that_do_not_fit_are_refused(place: Place) -> None:
    """Each by name, and nothing is committed."""
    log, state = created(place)
    state = append(log, state, EPOCH=1)
    for kind, message, adds, removes in refusals(log, state):
        with pytest.raises(kind, match=message):
            log.compare_and_append(state, change(*adds, removes=removes))
    with pytest.raises(InvalidChangeError, match="app transactions below zero: epoch"):
        log.compare_and_append(state, change(app_txns={AppTxn.EPOCH: -1}))
    with pytest.raises(InvalidChangeError, match="needs a txid"):
        log.compare_and_append(state, replace(change(), txid=""))
    assert log.verify() == 1
    assert log.state(1) == state


def test_an_undo_may_bring_back_files_of_earlier_writers(place: Place) -> None:
    """They are committed history, whatever ts and fence they carry."""
    log, state = created(place)
    state = append(log, state)
    (file,) = state.files.values()
    state = append(log, state, removes=(file,), EPOCH=1)
    commit = log.compare_and_append(state, change(file, operation=Operation.UNDO))
    assert place.open().state(3) == state.after(commit)
    assert file.path in state.after(commit).files


def retired(log: Log, state: LogState, *, before: int) -> LogState:
    """A state after its log forgot what was before a version."""
    for version in (before - 2, before - 1, state.version):
        log.checkpoint(version)
    state = state.after(log.compare_and_append(state, change(app_txns={AppTxn.FRONTIER: before})))
    log.expire(before)
    return state
