"""What a process of the race tests can be told to do to a store."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from catalog import open_catalog
from catalog.engine.log.place import StorePlace
from catalog.engine.stash.transaction import Transaction
from catalog.engine.store.catalog import Catalog, Mode
from catalog.engine.store.leadership import LeadershipOptions
from catalog.engine.store.open import open_store
from catalog.errors import CatalogError, FencedError, RetryableError
from catalog.objects import DatabaseKey, DatabaseValue, RoleId, RoleKey, RoleValue, SettingKey, SettingValue
from catalog.upgrade import PROJECT
from tests.engine.stash.races.processes import Told, answer, listen

ANN = RoleId(user=1000)
ROWS = [f"row {number}" for number in range(24)]
PAUSE_S = 0.05
"""Before a transaction is tried again; without it most of the time goes into attempts that lose."""
_open: dict[str, Catalog] = {}


def member(told: Told) -> Catalog:
    """The store as this process joined it; it is joined once."""
    store = told["store"]
    if store not in _open:
        _open[store] = open_catalog(store, "member")
    return _open[store]


def number(tx: Transaction, name: str) -> int:
    found = tx.get(SettingKey(name=name))
    return 0 if found is None else int(found.value)  # type: ignore[attr-defined]


def increment(told: Told) -> None:
    """Add one to a row, so many times, however often each has to be tried."""
    catalog, retries = member(told), 0
    for _ in range(told["count"]):
        while True:
            try:
                with catalog.transaction() as tx:
                    value = number(tx, "counter") + 1
                    tx.upsert(SettingKey(name="counter"), SettingValue(value=str(value)))
                break
            except RetryableError:
                retries += 1
                time.sleep(random.uniform(0, PAUSE_S))  # noqa: S311 - any will do
    answer(retries=retries)


def insert(told: Told) -> None:
    """Add rows of this process's own, one at a time; nothing is tried twice."""
    catalog = member(told)
    for index in range(told["count"]):
        with catalog.transaction() as tx:
            tx.insert(SettingKey(name=f"{told['who']}/{index:04d}"), SettingValue(value=told["who"]))
    answer(inserted=told["count"])


def read_mine_and_yours(tx: Transaction, told: Told) -> None:
    """Go off duty unless the other has: each reads what the other writes."""
    if number(tx, told["mine"]) + number(tx, told["yours"]) == 2:
        tx.update(SettingKey(name=told["mine"]), SettingValue(value="0"))


def scan(tx: Transaction, told: Told) -> None:
    """Come on duty unless anybody is: each scans for what the other inserts."""
    if not any(key.name.startswith(told["prefix"]) for key, _ in tx.rows(SettingKey)):
        tx.insert(SettingKey(name=told["mine"]), SettingValue(value="1"))


def refer(tx: Transaction, told: Told) -> None:
    tx.insert(DatabaseKey(id=told["database"]), DatabaseValue(name=told["name"], owner_id=RoleId(user=told["role"])))


def drop(tx: Transaction, told: Told) -> None:
    tx.delete(RoleKey(id=RoleId(user=told["role"])))


TRANSACTIONS: dict[str, Callable[[Transaction, Told], None]] = {
    "read": read_mine_and_yours,
    "scan": scan,
    "refer": refer,
    "drop": drop,
}


def meet(told: Told) -> None:
    """Do a transaction up to its commit, say so, and commit when told."""
    catalog = member(told)
    try:
        with catalog.transaction() as tx:
            TRANSACTIONS[told["transaction"]](tx, told)
            answer(prepared=True)
            listen()
        answer(committed=True, error=None)
    except CatalogError as error:
        answer(committed=False, error=type(error).__name__, retry=isinstance(error, RetryableError))


def lead(told: Told) -> None:
    """Lead a store and commit as fast as can be until fenced; each transaction sets two rows to its number."""
    with open_catalog(told["store"], deploy_generation=told["generation"]) as catalog:
        with catalog.transaction() as tx:
            done = number(tx, "counter")
        answer(leads=catalog.epoch, found=done)
        try:
            while True:
                with catalog.transaction() as tx:
                    tx.upsert(SettingKey(name="counter"), SettingValue(value=str(done + 1)))
                    tx.upsert(RoleKey(id=ANN), RoleValue(name=f"role {done + 1}"))
                done += 1
        except FencedError as error:
            answer(done=done, held=error.held, current=error.current, wrote_again=_writes(catalog))


def _writes(catalog: Catalog) -> bool:
    try:
        with catalog.transaction() as tx:
            tx.upsert(SettingKey(name="fenced"), SettingValue(value="1"))
    except FencedError:
        return False
    return True


def replica(told: Told) -> None:
    """Start as one of several replicas; commit while leading, until told to go on, or fenced."""
    before = time.monotonic()
    leadership = LeadershipOptions(1, told["lock_timeout_s"], told["heartbeat_s"])
    catalog = open_store(StorePlace.at(PROJECT, told["store"]), Mode.LEADER, leadership)
    answer(leads=catalog.epoch, waited_s=time.monotonic() - before)
    fenced, ends = False, time.monotonic() + told["leads_s"]
    try:
        while time.monotonic() < ends:
            with catalog.transaction() as tx:
                tx.upsert(SettingKey(name=f"epoch {catalog.epoch}"), SettingValue(value=str(time.monotonic())))
            time.sleep(0.02)
    except FencedError:
        fenced = True
    if not told["hangs"]:
        catalog.close()
    answer(fenced=fenced)


def write(told: Told) -> None:
    """Commit as fast as can be until a file appears."""
    catalog, done = member(told), 0
    while not Path(told["until"]).exists():
        with catalog.transaction() as tx:
            tx.upsert(SettingKey(name=told["who"]), SettingValue(value=str(done)))
        done += 1
    answer(done=done)


def work(told: Told) -> None:
    """Read some rows and write one, so many times, joining again whenever another process takes over.

    Each value is unique and tells who wrote it. Answers the reads and the value of each transaction that committed, the
    ids that were allocated, and how often which error was raised.
    """
    draw, catalog = random.Random(told["who"]), member(told)  # noqa: S311 - a seed
    done, ids, errors = list[tuple[dict[str, str], str, str]](), list[int](), Counter[str]()
    while len(done) < told["count"]:
        names = draw.sample(ROWS, 2)
        value = f"{told['who']}/{len(done)}/{sum(errors.values())}"
        try:
            with catalog.transaction() as tx:
                reads = {name: row.value if (row := tx.get(SettingKey(name=name))) else "" for name in names}  # type: ignore[attr-defined]
                tx.upsert(SettingKey(name=names[0]), SettingValue(value=value))
            done.append((reads, names[0], value))
            if len(done) % 10 == 0:
                ids.append(catalog.allocate("item"))
        except RetryableError as error:
            errors[type(error).__name__] += 1
            time.sleep(draw.uniform(0, PAUSE_S))
        except FencedError as error:
            errors[type(error).__name__] += 1
            catalog.close()
            del _open[told["store"]]
            catalog = member(told)
    answer(done=done, ids=ids, errors=dict(errors))


COMMANDS: dict[str, Callable[[Told], None]] = {
    "increment": increment,
    "work": work,
    "write": write,
    "insert": insert,
    "meet": meet,
    "lead": lead,
    "replica": replica,
}


def main() -> None:
    while (told := listen()) is not None:
        COMMANDS[told["do"]](told)
