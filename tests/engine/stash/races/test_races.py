"""Several processes at one store: nothing is lost, nothing is done twice, and one leads."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import hypothesis
import pytest

from catalog import open_catalog
from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.protocol import Operation
from catalog.engine.store.catalog import Catalog
from catalog.objects import DatabaseKey, RoleId, RoleKey, RoleValue, SettingKey, SettingValue
from tests.engine.stash.races.processes import Pool, Process

SOAKED = hypothesis.settings.get_current_profile_name() == "soak"
MEMBERS = 4
INCREMENTS = 250 if SOAKED else 60
INSERTS = 50 if SOAKED else 20
MEETINGS = 20 if SOAKED else 8
TAKEOVERS = 12 if SOAKED else 6
REPLICAS = 10


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    """Processes that end before the folder that they write to."""
    assert tmp_path.is_dir()
    pool = Pool("tests.engine.stash.races.member")
    yield pool
    pool.close()


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    """A store that this process leads and others join."""
    with open_catalog(tmp_path / "store") as catalog:
        yield catalog


@pytest.fixture
def store(tmp_path: Path, catalog: Catalog) -> str:
    assert catalog.epoch == 1
    return str(tmp_path / "store")


def settings(catalog: Catalog) -> dict[str, str]:
    catalog.refresh()
    return {key.name: value.value for key, value in catalog.rows(SettingKey)}  # type: ignore[attr-defined]


def put(catalog: Catalog, **values: str) -> None:
    with catalog.transaction() as tx:
        for name, value in values.items():
            tx.upsert(SettingKey(name=name), SettingValue(value=value))


def test_no_increment_is_lost(pool: Pool, store: str, catalog: Catalog) -> None:
    """Processes that read and write one row, and try again when told to, leave the sum of what they did."""
    members = pool.some(MEMBERS)
    for process in members:
        process.tell(do="increment", store=store, count=INCREMENTS)
    retries = sum(process.hear()["retries"] for process in members)
    assert settings(catalog)["counter"] == str(MEMBERS * INCREMENTS)
    assert retries > 0, "they never met"


def test_rows_of_their_own_all_land_at_the_first_try(pool: Pool, store: str, catalog: Catalog) -> None:
    """Processes that touch nothing of each other's are not told to try again."""
    members = pool.some(MEMBERS)
    for who, process in enumerate(members):
        process.tell(do="insert", store=store, count=INSERTS, who=str(who))
    assert [process.hear() for process in members] == [{"inserted": INSERTS}] * MEMBERS
    found = {name: value for name, value in settings(catalog).items() if "/" in name}
    assert found == {f"{who}/{index:04d}": str(who) for who in range(MEMBERS) for index in range(INSERTS)}


def meet(store: str, *sides: tuple[Process, Mapping[str, object]]) -> list[dict[str, object]]:
    """Let each do its transaction up to the commit, then all commit at once; answer what became of them."""
    for process, told in sides:
        process.tell(do="meet", store=store, **told)
    for process, _ in sides:
        assert process.hear() == {"prepared": True}
    for process, _ in sides:
        process.tell(commit=True)
    return [process.hear() for process, _ in sides]


def committed(outcomes: list[dict[str, object]]) -> list[bool]:
    return sorted(bool(outcome["committed"]) for outcome in outcomes)


def test_write_skew_never_commits_both(pool: Pool, store: str, catalog: Catalog) -> None:
    """Of two transactions that each read what the other writes, one is told to try again."""
    one, two = pool.some(2)
    for meeting in range(MEETINGS):
        left, right = f"{meeting}/left", f"{meeting}/right"
        put(catalog, **{left: "1", right: "1"})
        outcomes = meet(
            store,
            (one, {"transaction": "read", "mine": left, "yours": right}),
            (two, {"transaction": "read", "mine": right, "yours": left}),
        )
        assert committed(outcomes) == [False, True], outcomes
        assert [outcome["retry"] for outcome in outcomes if not outcome["committed"]] == [True]
        now = settings(catalog)
        assert sorted((now[left], now[right])) == ["0", "1"]


def test_phantoms_never_commit_both(pool: Pool, store: str, catalog: Catalog) -> None:
    """Of two transactions that each scan for what the other inserts, one is told to try again."""
    one, two = pool.some(2)
    for meeting in range(MEETINGS):
        prefix = f"{meeting}/"
        sides = [{"transaction": "scan", "prefix": prefix, "mine": f"{prefix}{side}"} for side in ("left", "right")]
        outcomes = meet(store, (one, sides[0]), (two, sides[1]))
        assert committed(outcomes) == [False, True], outcomes
        assert sum(name.startswith(prefix) for name in settings(catalog)) == 1


def test_constraints_hold_between_transactions_that_read_nothing_of_each_other(
    pool: Pool, store: str, catalog: Catalog
) -> None:
    """A row is not removed while another that refers to it is added, and of two equal names one is refused."""
    one, two = pool.some(2)
    for meeting in range(1, MEETINGS):
        role = RoleKey(id=RoleId(user=meeting))
        with catalog.transaction() as tx:
            tx.insert(role, RoleValue(name=f"role {meeting}"))
        refers: dict[str, object] = {"transaction": "refer", "role": meeting, "name": f"database {meeting}"}
        drops: dict[str, object] = {"transaction": "drop", "role": meeting}
        outcomes = meet(store, (one, {**refers, "database": 100 * meeting}), (two, drops))
        assert committed(outcomes) == [False, True], outcomes
        with catalog.transaction() as tx:
            tx.upsert(role, RoleValue(name=f"role {meeting}"))
            if tx.get(DatabaseKey(id=100 * meeting)) is not None:
                tx.delete(DatabaseKey(id=100 * meeting))
        sides = [{**refers, "database": 100 * meeting + side} for side in (1, 2)]
        outcomes = meet(store, (one, sides[0]), (two, sides[1]))
        assert committed(outcomes) == [False, True], outcomes
        assert [outcome["error"] for outcome in outcomes if not outcome["committed"]] == ["DuplicateError"]


def test_an_older_leader_is_fenced_and_its_last_commit_is_whole_or_not_there(pool: Pool, tmp_path: Path) -> None:
    """Whoever is told that it is fenced has committed exactly what was acknowledged, and nothing after it."""
    store = str(tmp_path / "store")
    sides = pool.some(2)
    found = [0]
    for generation in range(1, TAKEOVERS + 2):
        newer, older = sides[generation % 2], sides[(generation + 1) % 2]
        newer.tell(do="lead", store=store, generation=generation)
        leads = newer.hear()
        assert leads["leads"] == generation
        found.append(leads["found"])
        if generation > 1:
            fenced = older.hear()
            assert fenced == {
                "done": found[-1],
                "held": (generation - 1, generation - 1),
                "current": (generation, generation),
                "wrote_again": False,
            }
        time.sleep(0.1)
    assert all(before < after for before, after in pairwise(found[1:])), "a leader never came to commit"
    with open_catalog(store, deploy_generation=TAKEOVERS + 2) as catalog:
        counter = settings(catalog)["counter"]
        assert sides[(TAKEOVERS + 1) % 2].hear()["done"] == int(counter)
        assert f"role {counter}" in {value.name for _, value in catalog.rows(RoleKey)}  # type: ignore[attr-defined]
        assert "fenced" not in settings(catalog)


def fences(store: str) -> list[int]:
    """When each leader began, in milliseconds."""
    log = DeltaLog(f"{store}/stash")
    commits = log.commits(0, log.verify())
    return [commit.timestamp_ms for commit in commits if commit.operation is Operation.FENCE]


def test_replicas_that_start_at_once_lead_one_after_the_other(pool: Pool, tmp_path: Path) -> None:
    """On an empty place, too: one makes the store and leads, the others wait, and nobody is preempted."""
    store = str(tmp_path / "store")
    replicas = pool.some(REPLICAS)
    for process in replicas:
        process.tell(do="replica", store=store, lock_timeout_s=120, heartbeat_s=0.5, leads_s=0.2, hangs=False)
    led = [process.hear() for process in replicas]
    assert [process.hear() for process in replicas] == [{"fenced": False}] * REPLICAS
    assert sorted(answer["leads"] for answer in led) == list(range(1, REPLICAS + 1))
    assert len(fences(store)) == REPLICAS
    with open_catalog(store, deploy_generation=1) as catalog:
        assert {f"epoch {epoch}" for epoch in range(1, REPLICAS + 1)} <= settings(catalog).keys()


def test_leaders_that_outlive_the_timeout_are_preempted_once_each(pool: Pool, tmp_path: Path) -> None:
    """Each takes over once and is taken over from once, when it has led for the timeout; the last one leads on."""
    store = str(tmp_path / "store")
    replicas = pool.some(4)
    for process in replicas:
        process.tell(do="replica", store=store, lock_timeout_s=1, heartbeat_s=0.3, leads_s=4, hangs=True)
    led = [process.hear() for process in replicas]
    ended = [process.hear() for process in replicas]
    assert sorted(answer["leads"] for answer in led) == [1, 2, 3, 4]
    assert {answer["leads"]: end["fenced"] for answer, end in zip(led, ended, strict=True)} == {
        1: True,
        2: True,
        3: True,
        4: False,
    }
    began_ms = fences(store)
    assert len(began_ms) == 4
    assert all(after - before >= 850 for before, after in pairwise(began_ms)), began_ms


def test_a_leader_that_was_killed_is_replaced_when_it_shows_no_sign_of_life(pool: Pool, tmp_path: Path) -> None:
    """Long before the timeout, and by one of those who wait."""
    store = str(tmp_path / "store")
    leader = pool.one()
    leader.tell(do="replica", store=store, lock_timeout_s=100, heartbeat_s=0.3, leads_s=100, hangs=True)
    assert leader.hear()["leads"] == 1
    replicas = pool.some(2)
    for process in replicas:
        process.tell(do="replica", store=store, lock_timeout_s=100, heartbeat_s=0.3, leads_s=0.2, hangs=False)
    time.sleep(0.5)
    leader.close()
    assert sorted(process.hear()["leads"] for process in replicas) == [2, 3]
    assert [process.hear() for process in replicas] == [{"fenced": False}] * 2
