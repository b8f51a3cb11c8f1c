"""A process killed at any time while it upgrades, and the next, and the next: what one leaves the other takes up.

`UPGRADE_KILLS` says how many are killed, `SEED` when. Most are clients of one Connect server, which outlives them and
goes on with what they asked for; some have a JVM of their own, which is killed with them.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty

import pytest

from catalog import STASH_VERSION
from tests.engine.migrate.cluster.fencing import hear_begin
from tests.engine.migrate.cluster.servers import ConnectServer
from tests.engine.migrate.cluster.upgraders import Said, Upgrader, Upgraders
from tests.engine.migrate.kills.verdict import Reference

KILLS = int(os.environ.get("UPGRADE_KILLS", "4"))
KILLS_PER_ROUND = min(KILLS, 20)
LOCAL_KILLS = max(1, KILLS_PER_ROUND // 8)
"""Of each round, with a JVM of their own."""
KILLS_PER_STORE = 3
SEED = int(os.environ.get("SEED", str(random.SystemRandom().randrange(2**32))))
VERSIONS = range(14, 21)
ROWS = (300, 2000)

rounds = pytest.mark.parametrize("number", range(KILLS // KILLS_PER_ROUND))


@rounds
def test_an_upgrade_survives_one_kill_after_another(
    upgraders: Upgraders, connect_server: ConnectServer, tmp_path: Path, number: int
) -> None:
    """After each the store is whole; reopened it becomes what it would have been, and only orphans are left over."""
    deaths = Deaths(upgraders, connect_server, tmp_path, number)
    versions: list[int] = []
    while (left := KILLS_PER_ROUND - LOCAL_KILLS - deaths.count) > 0:
        versions = versions or list(VERSIONS)
        version = versions.pop(deaths.dice.randrange(len(versions)))
        deaths.of_store(version, min(left, KILLS_PER_STORE), connect_server.address)
    deaths.finish()


@rounds
def test_an_upgrade_survives_a_kill_with_its_jvm(
    upgraders: Upgraders, connect_server: ConnectServer, tmp_path: Path, number: int
) -> None:
    """It is the same when Spark dies with the process."""
    deaths = Deaths(upgraders, connect_server, tmp_path, number)
    while deaths.count < LOCAL_KILLS:
        deaths.of_store(deaths.dice.choice(VERSIONS), 1, None)
    deaths.finish()


@dataclass
class Deaths:
    """Stores, and processes that die of upgrading them."""

    upgraders: Upgraders
    server: ConnectServer
    folder: Path
    number: int
    count: int = 0
    stores: list[tuple[Path, Reference, int]] = field(default_factory=list)
    """Each with how many died of it."""
    places: Counter[str] = field(default_factory=Counter)
    """How many died where."""
    dice: random.Random = field(init=False)
    survivor: Upgrader = field(init=False)

    def __post_init__(self) -> None:
        print(f"soak: round {self.number}, SEED={SEED}")  # noqa: T201 - shown if this fails
        self.dice = random.Random(SEED + self.number)  # noqa: S311 - to be repeated
        self.survivor = self.upgraders.one()

    def of_store(self, version: int, kills: int, spark: str | None) -> None:
        """Kill one after the other while they upgrade a store; the last lives and ends it."""
        folder = self.folder / str(len(self.stores))
        folder.mkdir()
        rows, seed = self.dice.randint(*ROWS), self.dice.randrange(1000)
        reference = Reference.of(folder, version, self.survivor, self.server.address, rows=rows, seed=seed)
        store = shutil.copytree(reference.template, folder / "store")
        deaths = 0
        while deaths < kills and version < STASH_VERSION:
            victim = self.upgraders.one()
            victim.upgrade(store, spark, generation=1 + deaths)
            said = self._kill_cold(victim, reference) if spark is None else self._kill(victim, reference, version)
            if said and "done" in said[-1]:
                break  # it was quicker
            deaths += 1
            version = reference.examine(store, said, deaths=deaths)
            self.places[_place(said)] += 1
        self.survivor.upgrade(store, self.server.address, generation=1 + kills)
        self.survivor.finish()
        reference.examine(store, deaths=deaths)
        self.count += deaths
        self.stores.append((store, reference, deaths))

    def finish(self) -> None:
        """The server ends what the dead asked it for; then their leftovers are all swept."""
        self.server.await_idle()
        for store, reference, deaths in self.stores:
            reference.examine_upgraded(store, deaths=deaths)
        where = ", ".join(f"{count} {place}" for place, count in sorted(self.places.items()))
        print(f"soak: round {self.number}: {self.count} kills of {len(self.stores)} stores: {where}")  # noqa: T201

    def _kill(self, victim: Upgrader, reference: Reference, version: int) -> list[Said]:
        """Kill at any time of what is left to do; answer what was said, which is all of it if it was too late."""
        return _killed(victim, self.dice.uniform(0, reference.seconds_from(version)), [])

    def _kill_cold(self, victim: Upgrader, reference: Reference) -> list[Said]:
        """Kill one that has to start Spark first, at any time of one of the first steps."""
        step = self.dice.choice([*reference.seconds][:3])
        said = hear_begin(victim, step)
        return _killed(victim, self.dice.uniform(0, 2 * reference.seconds[step]), said)


def _killed(victim: Upgrader, seconds: float, said: list[Said]) -> list[Said]:
    deadline = time.monotonic() + seconds
    with suppress(Empty):
        while not said or "done" not in said[-1]:
            told = victim.hear(max(0, deadline - time.monotonic()))
            assert told is not None, "it ended before it was killed"
            assert "error" not in told, told
            said.append(told)
    victim.kill()
    return said + victim.hear_all()


def _place(said: list[Said]) -> str:
    """Where a process was when it was last heard of."""
    if not said:
        return "before the first step"
    what, version = next(iter(said[-1].items()))
    return f"in the step to {version}" if what == "began" else f"after the step to {version}"
