"""What outlives its retention, feeds, and tails that grow: the same promises on every log."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from google.protobuf.message import Message

from catalog.constraints import CONSTRAINTS
from catalog.engine.log.maintenance import Policy, clean
from catalog.engine.log.protocol import AppTxn, CommitRequest, FaultPoint, FileKind, Operation
from catalog.engine.stash.compaction import CompactionPolicy
from catalog.engine.stash.engine_rows import NOT_PROTECTED
from catalog.engine.stash.recorded_types import record_name
from catalog.engine.stash.registry import encode
from catalog.engine.stash.stash import Stash
from catalog.engine.stash.transaction import Transaction
from catalog.engine.stash.view import View
from catalog.errors import (
    FencedError,
    MissingFileError,
    NoSuchVersionError,
    RetiredError,
    TransactionConflictError,
    VersionChangedError,
)
from catalog.generated import objects_pb2 as types
from tests.engine.log.places import MemoryPlace, Place
from tests.engine.stash.test_stash import REGISTRY, begin, open_stash, setting

POLICY = Policy(retention_ms=1000)


@pytest.fixture
def stash(place: Place) -> Stash:
    """A stash of version 21 that this process leads, with three settings in a base."""
    stash = open_stash(place)
    stash.take_over(1, "test")
    tx = begin(stash)
    for number in range(3):
        tx.insert(*setting(f"s{number}", str(number)))
    stash.commit(tx, {AppTxn.STASH_VERSION: 21})
    stash.consolidate("setting")
    return stash


def put(stash: Stash, name: str, value: str) -> int:
    with stash.transaction() as tx:
        tx.upsert(*setting(name, value))
    return stash.ts


def values(view: View) -> list[str]:
    return [types.SettingValue.FromString(value).value for _, value in view.rows("setting")]


def retire(stash: Stash, place: Place) -> int:
    """Change and consolidate all, and let the retention of all before it end; answer the earliest ts that is left."""
    put(stash, "s0", "new")
    stash.consolidate("setting")
    place.wait(2 * POLICY.retention_ms)
    clean(stash.log, stash.state, POLICY)
    stash.refresh()
    return stash.state.frontier


READS: dict[str, Callable[[View], object]] = {
    "a row": lambda view: view.get("setting", encode(types.SettingKey(name="s1"))),
    "all rows": lambda view: list(view.rows("setting")),
    "a table": lambda view: view.table("setting"),
}


@pytest.mark.parametrize("read", READS)
def test_a_view_that_outlived_its_retention_says_so(stash: Stash, place: Place, read: str) -> None:
    """A process that slept is told the earliest ts that is left, and reads on after a refresh."""
    asleep = open_stash(place)
    earliest = retire(stash, place)
    with pytest.raises(RetiredError, match=f"the earliest ts that can be read is {earliest}$"):
        READS[read](asleep.view())
    asleep.refresh()
    assert values(asleep.view()) == ["new", "1", "2"]


def test_what_was_read_of_a_view_is_kept(stash: Stash, place: Place) -> None:
    """Its rows stay as they were, for as long as they are in memory."""
    awake = open_stash(place)
    before = values(awake.view())
    retire(stash, place)
    assert values(awake.view()) == before == ["0", "1", "2"]


def test_a_file_that_is_lost_is_not_taken_for_retired(stash: Stash, place: Place) -> None:
    """Of a ts that is retained, a missing file is damage."""
    retire(stash, place)
    other = open_stash(place)
    stash.log.delete([path for path, file in other.state.files.items() if file.collection == "setting"])
    with pytest.raises(MissingFileError):
        values(other.view())


TRANSACTIONS: dict[str, Callable[[Transaction], object]] = {
    "a row": lambda tx: tx.get(types.SettingKey(name="s1")),
    "all rows": lambda tx: list(tx.rows(types.SettingKey)),
    "before a change": lambda tx: tx.upsert(*setting("s1", "x")),
}


@pytest.mark.parametrize("read", TRANSACTIONS)
def test_a_transaction_that_outlived_its_view_is_to_be_run_again(stash: Stash, place: Place, read: str) -> None:
    """Whoever runs transactions again when told to needs to know nothing of retention."""
    asleep = open_stash(place)
    asleep.join()
    slow = Transaction(REGISTRY, asleep.view())
    retire(stash, place)
    with pytest.raises(TransactionConflictError, match="run the transaction again"):
        TRANSACTIONS[read](slow)
    with asleep.transaction() as tx:
        TRANSACTIONS[read](tx)


def test_a_transaction_scans_what_it_changed_in_its_place(stash: Stash) -> None:
    """Its own rows stand among the others in the order of keys."""
    with stash.transaction() as tx:
        for name in ("s0+", "a", "z"):
            tx.insert(*setting(name, name))
        tx.update(*setting("s1", "changed"))
        tx.delete(types.SettingKey(name="s2"))
        found = tx.rows(types.SettingKey)
        assert [(key.name, value.value) for key, value in found] == [  # type: ignore[attr-defined]
            ("a", "a"),
            ("z", "z"),
            ("s0", "0"),
            ("s1", "changed"),
            ("s0+", "s0+"),
        ]


def feed(stash: Stash, since: int) -> Iterator[tuple[Message, Message, int, int]]:
    return stash.subscribe(types.SettingKey, since)


def test_a_feed_from_a_ts_to_come_is_refused(stash: Stash) -> None:
    """Whoever asks from beyond the newest ts is at another store, or has lost its place."""
    assert list(feed(stash, stash.ts)) == []
    with pytest.raises(NoSuchVersionError, match=f"the newest ts that can be read is {stash.ts}$"):
        list(feed(stash, stash.ts + 1))


def test_a_feed_passes_over_consolidation(stash: Stash) -> None:
    """Files change and rows do not: there is nothing to tell."""
    since = stash.ts
    stash.consolidate("setting")
    assert stash.ts == since + 1
    assert list(feed(stash, since)) == []


def change_version(place: Place, version: int, operation: Operation = Operation.MIGRATE) -> int:
    """As a migration does that has no rows to rewrite; answer its ts."""
    log = place.open()
    state = log.state(log.verify())
    asked = CommitRequest(operation, f"to {version} at {state.version}", app_txns={AppTxn.STASH_VERSION: version})
    return log.compare_and_append(state, asked).version


def ending(found: Iterator[tuple[Message, Message, int, int]]) -> tuple[list[int], tuple[int, int, int]]:
    """The ts that a feed yields until its version ends, and how it ends."""
    seen: list[int] = []
    with pytest.raises(VersionChangedError, match="feeds start again from ts") as caught:
        seen.extend(ts for _, _, ts, _ in found)
    return seen, (caught.value.before, caught.value.after, caught.value.ts)


def test_a_feed_ends_where_the_version_changes(stash: Stash, place: Place) -> None:
    """It yields what came before, and names the ts to start again from, however often it is asked."""
    reader = open_stash(place)
    since = reader.ts
    put(stash, "s1", "last")
    changed = change_version(place, 22)
    later = change_version(place, 23)
    with pytest.raises(VersionChangedError):
        reader.refresh()
    for _ in range(2):
        assert ending(feed(reader, since)) == ([changed - 1] * 2, (21, 22, changed))
    assert ending(feed(reader, changed)) == ([], (22, 23, later))
    assert ending(feed(reader, later))[0] == []


def test_a_feed_never_reads_rows_of_an_earlier_version(stash: Stash, place: Place) -> None:
    """From a ts before the version that is served, it says at once where that begins."""
    since = stash.ts
    put(stash, "s1", "old types")
    change_version(place, 22)
    changed = change_version(place, 23)
    reader = open_stash(place)
    assert ending(feed(reader, since)) == ([], (22, 23, changed))
    assert list(feed(reader, changed)) == []


@pytest.mark.usefixtures("stash")
def test_a_feed_ends_at_a_version_that_was_undone(place: Place) -> None:
    """There and back again is a change all the same: rows in between had other types."""
    reader = open_stash(place)
    changed, undone = change_version(place, 22), change_version(place, 21, Operation.UNDO)
    assert ending(feed(reader, changed - 1)) == ([], (21, 22, changed))
    again = open_stash(place)
    assert ending(feed(again, changed - 1)) == ([], (21, 22, changed))
    assert ending(feed(again, changed)) == ([], (22, 21, undone))
    assert list(feed(again, undone)) == []
    for _ in range(2):
        with pytest.raises(VersionChangedError):
            reader.refresh()


def record(stash: Stash, types_hash: str) -> int:
    """Record the types of version 21, as the engine does; return the ts."""
    with stash.transaction(NOT_PROTECTED) as tx:
        tx.upsert(types.ConfigKey(name=record_name(21)), types.ConfigValue(text=f"sha256:{types_hash} 1.0.0"))
    return stash.ts


def test_changed_collections_are_those_of_the_commits_since(stash: Stash, place: Place) -> None:
    """Also where `config` is among them, with the same types as before."""
    since = stash.ts
    put(stash, "s1", "changed")
    assert open_stash(place).replica.changed_collections(since) == {"setting"}
    recorded = record(stash, "aa")
    assert open_stash(place).replica.changed_collections(since) == {"setting", "config"}
    put(stash, "s2", "changed")
    assert open_stash(place).replica.changed_collections(recorded) == {"setting"}


def test_changed_collections_are_not_known_from_a_ts_with_other_types(stash: Stash, place: Place) -> None:
    """Another version, or other types under the same number: whatever followed its rows begins again."""
    since = record(stash, "aa")
    record(stash, "bb")
    with pytest.raises(VersionChangedError):
        open_stash(place).replica.changed_collections(since)
    recorded = stash.ts
    changed = change_version(place, 22)
    with pytest.raises(VersionChangedError):
        open_stash(place).replica.changed_collections(recorded)
    assert open_stash(place).replica.changed_collections(changed) == set()


def settings_files(stash: Stash) -> list[tuple[FileKind, int]]:
    return [(file.kind, file.rows) for file in stash.state.files.values() if file.collection == "setting"]


def test_a_tail_is_bounded_by_what_it_takes_to_hold_it(stash: Stash, place: Place) -> None:
    """However well its files are compressed, and rewriting only the base files that it reaches."""
    stash.compaction = CompactionPolicy(tail_bytes_max=100_000)
    put(stash, "t0", "." * 90_000)
    assert (FileKind.TAIL, 1) in settings_files(stash)
    put(stash, "t1", "." * 20_000)
    assert sorted(settings_files(stash)) == [(FileKind.BASE, 2), (FileKind.BASE, 3)]
    put(stash, "s1", "." * 120_000)
    put(stash, "s0+", "." * 1_000)
    with stash.transaction() as tx:
        tx.delete(types.SettingKey(name="t0"))
        tx.insert(*setting("t2", "." * 120_000))
    assert sorted(settings_files(stash)) == [(FileKind.BASE, 3), (FileKind.BASE, 3)]
    lengths = [len(value) for value in values(open_stash(place).view())]
    assert lengths == [1, 120_000, 1, 20_000, 120_000, 1_000]
    assert stash.last_error is None


def test_a_tail_that_reaches_everything_becomes_one_base(stash: Stash, place: Place) -> None:
    """Parts that meet are put together, and rows that are gone leave nothing."""
    stash.compaction = CompactionPolicy(tail_bytes_max=1000)
    for name in ("t0", "u0"):
        put(stash, name, "." * 2000)
    with stash.transaction() as tx:
        for name in ("s0", "s1", "s2", "t0"):
            tx.delete(types.SettingKey(name=name))
        tx.update(*setting("u0", "." * 3000))
    assert settings_files(stash) == [(FileKind.BASE, 1)]
    assert [len(value) for value in values(open_stash(place).view())] == [3000]


@pytest.mark.parametrize("seed", range(5))
def test_bases_that_are_merged_in_part_never_overlap(seed: int) -> None:
    """Whatever a tail reaches, the rows are those that were written, and base files follow each other."""
    chance = random.Random(seed)  # noqa: S311 - nothing secret
    place, rows, most = MemoryPlace(), dict[str, str](), 0
    stash = open_stash(place)
    stash.take_over(1, "test")
    stash.compaction = CompactionPolicy(tail_files_max=1000, tail_bytes_max=300)
    for step in range(40):
        with stash.transaction() as tx:
            start = chance.choice([10 * step, 10 * step, chance.randrange(10 * step + 1)])
            for name in (f"{number:03d}" for number in range(start, start + chance.choice([1, 4, 12]))):
                if name in rows and chance.random() < 0.5:
                    tx.delete(types.SettingKey(name=name))
                    del rows[name]
                else:
                    rows[name] = "." * chance.randrange(60)
                    tx.upsert(*setting(name, rows[name]))
        bases = sum(kind is FileKind.BASE for kind, _ in settings_files(stash))
        assert len(stash.view().runs("setting")) == bases
        most = max(most, bases)
    assert stash.last_error is None
    assert most > 1, "there was never a part to leave alone"
    assert values(open_stash(place).view()) == [rows[name] for name in sorted(rows)]


def test_damage_that_maintenance_finds_fails_the_next_transaction(stash: Stash) -> None:
    """The transaction before has landed; damage is raised each time that it is found, and never forgotten."""
    stash.compaction = CompactionPolicy(tail_files_max=1, tail_share_max=100)
    put(stash, "n0", "1")
    stash.log.delete([path for path, file in stash.state.files.items() if file.kind is FileKind.TAIL])
    for number in range(1, 4):
        assert put(stash, f"n{number}", "1") == stash.ts, "a transaction that landed has not failed"
        assert isinstance(stash.last_error, MissingFileError)
        before = stash.ts
        with pytest.raises(MissingFileError):
            put(stash, "never", "1")
        assert stash.refresh() == before


@pytest.mark.usefixtures("stash")
def test_a_writer_whose_file_was_swept_is_told_of_the_fence(place: Place) -> None:
    """A new leader sweeps what those before it had not committed: to them that is no damage."""
    swept: list[str] = []

    def take_over(point: FaultPoint) -> None:
        if point is FaultPoint.WRITE_AFTER_FILE and not swept:
            swept.append("soon")
            newer = open_stash(place)
            newer.take_over(2, "newer")
            swept.extend(clean(newer.replica.log, newer.replica.state, Policy()).deleted)

    slow = Stash.open(place.open(take_over), REGISTRY, CONSTRAINTS)
    slow.join()
    with pytest.raises(FencedError):
        put(slow, "s1", "never")
    assert len(swept) == 2
