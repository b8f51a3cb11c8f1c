"""Stores under load: no opening is a false alarm, and the transactions of members can be replayed one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import hypothesis
import pytest

from catalog import open_catalog
from catalog.engine.log.maintenance import Policy
from catalog.engine.log.place import StorePlace
from catalog.errors import RetiredError, RetryableError
from catalog.objects import SettingKey
from catalog.tools.fsck.store import check_store
from catalog.tools.vacuum import vacuum_store
from catalog.upgrade import PROJECT
from tests.engine.stash.races.member import ROWS
from tests.engine.stash.races.processes import Pool

SOAKED = hypothesis.settings.get_current_profile_name() == "soak"
OPENINGS = 20_000 if SOAKED else 60
WRITERS, VACUUM_EVERY = 4, 200 if SOAKED else 20
MEMBERS = 8 if SOAKED else 3
TRANSACTIONS = 10_000 if SOAKED else 90
TAKEOVERS = 40 if SOAKED else 2
RETRYABLE = {"TransactionConflictError", "CommitFailedError", "ConflictError", "FencedError"}


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    """Processes that end before the folder that they write to."""
    assert tmp_path.is_dir()
    pool = Pool("tests.engine.stash.races.member")
    yield pool
    pool.close()


def test_no_opening_under_writers_is_a_false_alarm(pool: Pool, tmp_path: Path) -> None:
    """Every opening of a store that others write, archive and vacuum meanwhile succeeds, and reads its rows."""
    store, stop = tmp_path / "store", tmp_path / "stop"
    with open_catalog(store):
        pass
    writers = pool.some(WRITERS)
    for who, process in enumerate(writers):
        process.tell(do="write", store=str(store), who=str(who), until=str(stop))
    counts = Counter[str]()
    for number in range(OPENINGS):
        with open_catalog(store, "read-only") as cat:
            try:
                assert len(list(cat.rows(SettingKey))) >= 2
                counts["read"] += 1
            except RetiredError:  # a vacuum took what is past, as it was told to
                counts["retired"] += 1
        if number % VACUUM_EVERY == 0:
            with suppress(RetryableError, RetiredError):  # a writer, or another cleaning, was quicker
                vacuum_store(StorePlace.at(PROJECT, store), Policy(retention_ms=0))
                counts["vacuum"] += 1
    stop.touch()
    commits = sum(process.hear()["done"] for process in writers)
    assert check_store(StorePlace.at(PROJECT, store)).ok
    print(f"soak: {OPENINGS} openings under {WRITERS} writers with {commits} commits: {dict(counts)}, no false alarm")  # noqa: T201


def test_transactions_of_members_can_be_replayed_one_by_one(pool: Pool, tmp_path: Path) -> None:
    """Whatever members read is what the transactions before theirs wrote; ids are unique; errors are retryable."""
    store = tmp_path / "store"
    with open_catalog(store) as cat:
        begin = cat.ts
    members = pool.some(MEMBERS)
    for who, process in enumerate(members):
        process.tell(do="work", store=str(store), who=f"member {who}", count=TRANSACTIONS // MEMBERS)
    for generation in range(1, TAKEOVERS + 1):
        with open_catalog(store, deploy_generation=generation) as cat:
            with suppress(RetryableError):
                vacuum_store(StorePlace.at(PROJECT, store), Policy())
            reached = cat.ts + TRANSACTIONS // (2 * TAKEOVERS)
            while not any(process.is_heard() for process in members) and cat.refresh() < reached:
                pass
    told = [process.hear() for process in members]
    with open_catalog(store, "read-only") as cat:
        feed = cat.subscribe(SettingKey, since=begin)
        history = [
            (key.name, value.value, ts, diff)  # type: ignore[attr-defined]
            for key, value, ts, diff in feed
            if key.name in ROWS  # type: ignore[attr-defined]
        ]
    replayed = replay(history, {value: (reads, name) for own in told for reads, name, value in own["done"]})
    ids = [number for own in told for number in own["ids"]]
    assert len(ids) == len(set(ids))
    errors = sum((Counter[str](own["errors"]) for own in told), Counter[str]())
    assert errors.keys() <= RETRYABLE
    assert errors["FencedError"] > 0, "nobody took over"
    assert check_store(StorePlace.at(PROJECT, store)).ok
    print(  # noqa: T201 - for the summary of the soak
        f"soak: {replayed} transactions of {MEMBERS} members with {TAKEOVERS} takeovers replayed, {len(ids)} ids, "
        f"errors {dict(errors)}: serializable"
    )


def replay(history: list[tuple[str, str, int, int]], done: dict[str, tuple[dict[str, str], str]]) -> int:
    """Apply the transactions in the order of ts; return their number. Each must have read what was there then."""
    rows: dict[str, str] = {}
    landed = 0
    for name, value, _, diff in history:
        if diff < 0:
            assert rows[name] == value
            continue
        reads, written = done.pop(value)  # raises if one landed that was not acknowledged, or landed twice
        assert written == name
        assert reads == {other: rows.get(other, "") for other in reads}
        rows[name] = value
        landed += 1
    assert done == {}, "acknowledged, and not there"
    return landed
