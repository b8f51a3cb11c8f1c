"""Where the batches of a stream end, asked of the reader as Spark's planner asks it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from catalog import open_catalog
from catalog.engine.log.protocol import Operation
from catalog.engine.spark.datasource import stream
from catalog.engine.spark.datasource.feed_scan import FeedPartition, find_feed
from catalog.engine.spark.datasource.read_options import ReadOptions
from catalog.engine.spark.datasource.stream import FeedStreamReader
from catalog.engine.store.catalog import Catalog
from catalog.errors import OtherFeedError, ReadOptionError, RetiredError, VersionChangedError
from catalog.objects import ItemKey
from catalog.upgrade import PROJECT
from tests.engine.spark.conftest import change_version, item, retire_all, set_colour
from tests.engine.spark.test_datasource import writer
from tests.object_store import make_bucket, storage_options

Offset = dict[str, Any]


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "_PAUSE_S", 0)


def test_a_long_backlog_becomes_many_batches(catalog: Catalog, store: Path) -> None:
    """Each of so many commits at most, from one to the next, until all was read; a last one is not waited for."""
    since = catalog.ts
    rename(catalog, 7)
    reader = planner(store, since=since, max_commits_per_batch=3)
    ends = batches(reader, at(reader, since))
    assert [end["ts"] - since for end in ends] == [3, 6, 7]
    assert reader.latestOffset(at(reader, since), ReadAllAvailable())["ts"] == since + 7


def test_the_rows_of_the_start_are_one_batch(catalog: Catalog, store: Path) -> None:
    """Asked for again after a crash, it holds the same rows, whatever was committed since."""
    reader = planner(store)
    begin = reader.initialOffset()
    end = reader.latestOffset(begin, reader.getDefaultReadLimit())
    assert end["ts"] == catalog.ts
    before = read(reader, begin, end)
    assert len(before) == 20
    rename(catalog, 3)
    writer(store).consolidate("item")
    restarted = planner(store)
    assert restarted.initialOffset() == begin
    assert read(restarted, begin, end) == before
    assert [row["ts"] - end["ts"] for row in read(restarted, end, at(reader, end["ts"] + 3))] == [1, 1, 2, 2, 3, 3]


def test_parts_divide_a_batch_in_the_order_of_ts(catalog: Catalog, store: Path) -> None:
    """As many as the bytes call for; together they are the batch."""
    since = catalog.ts
    rename(catalog, 5)
    whole, divided = planner(store, since=since), planner(store, since=since, partition_bytes=1)
    begin, end = at(whole, since), at(whole, since + 5)
    assert [len(parts_of(reader, begin, end)) for reader in (whole, divided)] == [1, 5]
    assert read(divided, begin, end) == read(whole, begin, end)
    assert parts_of(whole, end, end) == []


def test_what_changes_nothing_is_no_batch_until_it_is_old(
    catalog: Catalog, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a busy store would run empty batches, and a position that never moves would be retired some day."""
    since = catalog.ts
    reader = planner(store, since=since)
    for colour in "abc":
        set_colour(catalog, colour)
        assert batches(reader, at(reader, since)) == []
    monkeypatch.setattr(stream, "_PASSED_OVER_MS", -60_000)
    assert [end["ts"] - since for end in batches(reader, at(reader, since))] == [3]


def test_commits_of_others_are_no_limit(catalog: Catalog, store: Path) -> None:
    """However many there are, what comes after them is found."""
    since = catalog.ts
    for number in range(7):
        set_colour(catalog, str(number))
    rename(catalog, 1)
    reader = planner(store, since=since, max_commits_per_batch=3)
    ends = batches(reader, at(reader, since))
    assert [end["ts"] - since for end in ends] == [3, 6, 8]
    told = [len(read(reader, *pair)) for pair in zip([at(reader, since), *ends], ends, strict=False)]
    assert told == [0, 0, 2]


def test_a_query_that_ends_by_itself_reads_what_there_was(catalog: Catalog, store: Path) -> None:
    """Up to the ts at which it was started, commits of others included, and no further."""
    since = catalog.ts
    rename(catalog, 2)
    set_colour(catalog, "red")
    reader = planner(store, since=since, max_commits_per_batch=2)
    reader.prepareForTriggerAvailableNow()
    rename(catalog, 2)
    assert [end["ts"] - since for end in batches(reader, at(reader, since))] == [2, 3]


def test_a_batch_ends_before_the_version_does(catalog: Catalog, store: Path) -> None:
    """All until then is told; after it there is an error, and from there on nothing is read."""
    since = catalog.ts
    set_colour(catalog, "red")
    changed = change_version(store, PROJECT.current - 1, Operation.UNDO)
    reader = planner(store, since=since)
    end = reader.latestOffset(at(reader, since), reader.getDefaultReadLimit())
    assert end["ts"] == changed - 1
    for asked in (reader, planner(store, since=since)):
        with pytest.raises(VersionChangedError, match=f"start again from ts {changed}, by `--since {changed}`"):
            asked.latestOffset(end, asked.getDefaultReadLimit())
        with pytest.raises(VersionChangedError):
            asked.partitions(end, at(reader, changed))
    with pytest.raises(VersionChangedError):  # loaded since, it has the types of now
        planner(store).partitions(at(reader, since), end)


def test_a_position_that_is_retired_is_refused(catalog: Catalog, store: Path) -> None:
    """Whether the next batch is asked for, or one that was under way; one that is retained goes on."""
    since = catalog.ts
    rename(catalog, 2)
    earliest = retire_all(store)
    asking: list[Callable[[FeedStreamReader], object]] = [
        lambda reader: reader.latestOffset(at(reader, since), ReadAllAvailable()),
        lambda reader: reader.partitions(at(reader, since), at(reader, earliest)),
        lambda reader: reader.partitions(reader.initialOffset(), at(reader, since)),
    ]
    for ask in asking:
        with pytest.raises(RetiredError, match=f"earliest ts that can be read is {earliest}$"):
            ask(planner(store, since=since))
    kept = planner(store, since=since)  # what it was started with long ago does not matter
    assert kept.latestOffset(at(kept, earliest), ReadAllAvailable())["ts"] >= earliest


def test_a_position_of_another_feed_is_refused(catalog: Catalog, store: Path, tmp_path: Path) -> None:
    """Of another store that is there now, or of another collection."""
    position = at(planner(store), catalog.ts)
    with open_catalog(tmp_path / "other") as other:
        assert other.ts
    with pytest.raises(OtherFeedError, match=r"belongs to a feed of another store"):
        planner(tmp_path / "other").latestOffset(position, ReadAllAvailable())
    with pytest.raises(OtherFeedError, match=r"belongs to a feed of the collection item"):
        planner(store, "role").partitions(position, position)
    with pytest.raises(OtherFeedError, match=r"belongs to a feed of something else"):
        planner(store).latestOffset({"partition-0": 7}, ReadAllAvailable())


def test_a_feed_begins_with_the_types_of_then(catalog: Catalog, store: Path) -> None:
    """Also from before the store was initialised."""
    changed = change_version(store, PROJECT.current - 1, Operation.UNDO)
    reader = planner(store, since=0)
    assert batches(reader, at(reader, 0), error=VersionChangedError)[-1]["ts"] == changed - 1
    assert find_feed(ReadOptions(str(store), "item", feed=True, since=0)).version == PROJECT.current
    assert find_feed(ReadOptions(str(store), "item", feed=True, since=changed)).version == PROJECT.current - 1
    assert find_feed(ReadOptions(str(store), "item", feed=True)).version == PROJECT.current - 1
    assert catalog.ts < changed


def test_an_object_store_is_followed_through_its_options(object_store: str) -> None:
    """Planner and executors reach it by the options of the query."""
    store, storage = f"s3://{make_bucket(object_store)}/store", storage_options(object_store)
    with open_catalog(store, options=storage) as catalog:
        reader = FeedStreamReader(lambda: find_feed(ReadOptions(store, "setting", storage=storage, feed=True)))
        begin, limit = reader.initialOffset(), reader.getDefaultReadLimit()
        rows = reader.latestOffset(begin, limit)
        assert rows["ts"] == catalog.ts
        assert len(read(reader, begin, rows)) == 2
        assert reader.latestOffset(rows, limit) == rows
        changed = reader.latestOffset({**rows, "ts": set_colour(catalog, "red") - 1}, limit)
        assert [row["value"] for row in read(reader, rows, changed)] == [{"value": "red"}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"since": "-1"}, "option since .*: it is '-1'\n.*\nnext: needed: a whole number from 0 or now"),
        ({"since": "yesterday"}, "option since .*: it is 'yesterday'"),
        ({"feed": "yes"}, "option feed .*: it is 'yes'"),
        ({"feed": "false", "since": "3"}, "option feed .*: it is false, and since is given"),
        ({"feed": "true", "max_commits_per_batch": "0"}, "option max_commits_per_batch .*: it is '0'"),
    ],
)
def test_options_that_say_nothing_are_refused(options: dict[str, str], message: str) -> None:
    """No feed begins anywhere else than was meant."""
    with pytest.raises(ReadOptionError, match=message):
        ReadOptions.of_options({"path": "s", "collection": "role", **options})


@pytest.mark.parametrize("since", [None, 3, "now"])
def test_options_come_back_as_they_were_given(since: Any) -> None:  # noqa: ANN401 - as in the request
    request = ReadOptions("s", "role", feed=True, since=since, max_commits_per_batch=7)
    assert ReadOptions.of_options({"path": "s", **request.options()}) == request


def planner(store: Path, collection: str = "item", **asked: Any) -> FeedStreamReader:  # noqa: ANN401 - as in the request
    return FeedStreamReader(lambda: find_feed(ReadOptions(str(store), collection, feed=True, **asked)))


def at(reader: FeedStreamReader, ts: int) -> Offset:
    return {**reader.initialOffset(), "ts": ts}


def batches(reader: FeedStreamReader, begin: Offset, error: type[Exception] | None = None) -> list[Offset]:
    """Where batch after batch ends, until there is no more, or an error."""
    ends: list[Offset] = []
    while True:
        try:
            end = reader.latestOffset(begin, reader.getDefaultReadLimit())
        except Exception as found:
            if error is None or not isinstance(found, error):
                raise
            return ends
        if end == begin:
            assert error is None
            return ends
        ends.append(end)
        begin = end


def parts_of(reader: FeedStreamReader, begin: Offset, end: Offset) -> list[FeedPartition]:
    return [partition.value for partition in reader.partitions(begin, end)]


def read(reader: FeedStreamReader, begin: Offset, end: Offset) -> list[dict[str, Any]]:
    """The rows of a batch, part by part as executors read them."""
    batches = (batch for part in reader.partitions(begin, end) for batch in reader.read(part))
    return [row for batch in batches for row in batch.to_pylist()]


def rename(catalog: Catalog, times: int) -> None:
    """So many commits, of an update each."""
    for number in range(times):
        with catalog.transaction() as tx:
            tx.update(ItemKey(id=1), item(f"name {number} at {catalog.ts}"))
