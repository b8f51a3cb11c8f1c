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
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty

from catalog import STASH_VERSION
from tests.cluster.servers import ConnectServer
from tests.cluster.upgraders import Said, Upgrader, Upgraders
from tests.kills.verdict import Reference

KILLS = int(os.environ.get("UPGRADE_KILLS", "16"))
LOCAL_KILLS = max(2, KILLS // 20)
"""With a JVM of their own."""
SEED = int(os.environ.get("SEED", str(random.SystemRandom().randrange(2**32))))
VERSIONS = range(14, 21)
KILLS_PER_STORE = max(2, KILLS // 50)
ROWS = (300, 2000)


def test_an_upgrade_survives_one_kill_after_another(
    upgraders: Upgraders, connect_server: ConnectServer, tmp_path: Path
) -> None:
    """After each the store is whole; reopened it becomes what it would have been, and only orphans are left over."""
    deaths = Deaths(upgraders, connect_server, tmp_path, random.Random(SEED))  # noqa: S311 - to be repeated
    print(f"soak: SEED={SEED}")  # noqa: T201 - shown if this fails
    versions = list(VERSIONS)
    while deaths.count < KILLS - LOCAL_KILLS:
        if not versions:
            versions = list(VERSIONS)
        version = versions.pop(deaths.dice.randrange(len(versions)))
        deaths.of_store(version, KILLS_PER_STORE, connect_server.address)
    deaths.finish()
    deaths.tell()


def test_an_upgrade_survives_a_kill_with_its_jvm(
    upgraders: Upgraders, connect_server: ConnectServer, tmp_path: Path
) -> None:
    """It is the same when Spark dies with the process."""
    deaths = Deaths(upgraders, connect_server, tmp_path, random.Random(SEED + 1))  # noqa: S311 - to be repeated
    print(f"soak: SEED={SEED}, local")  # noqa: T201 - shown if this fails
    while deaths.count < LOCAL_KILLS:
        deaths.of_store(deaths.dice.choice(VERSIONS), 1, None)
    deaths.finish()
    deaths.tell()


@dataclass
class Deaths:
    """Stores, and processes that die of upgrading them."""

    upgraders: Upgraders
    server: ConnectServer
    folder: Path
    dice: random.Random
    count: int = 0
    stores: list[tuple[Path, Reference, int]] = field(default_factory=list)
    steps: Counter[str] = field(default_factory=Counter)
    """How many died in each."""
    survivor: Upgrader = field(init=False)

    def __post_init__(self) -> None:
        self.survivor = self.upgraders.one()

    def of_store(self, version: int, kills: int, spark: str | None) -> None:
        """Kill one after the other while they upgrade a store; the last lives and ends it."""
        folder = self.folder / str(len(self.stores))
        folder.mkdir()
        rows, seed = self.dice.randint(*ROWS), self.dice.randrange(1000)
        reference = Reference.of(folder, version, self.survivor, self.server.address, rows=rows, seed=seed)
        store = folder / "store"
        shutil.copytree(reference.template, store)
        deaths = 0
        for generation in range(1, kills + 1):
            victim = self.upgraders.one()
            victim.upgrade(store, spark, generation=generation)
            said = self.kill(victim, reference.seconds_from(version), is_cold=spark is None)
            deaths += 1
            self.count += "done" not in said[-1:][0] if said else 1
            version = reference.examine(store, said, deaths=deaths)
            self.steps[_where(said)] += 1
            if version == STASH_VERSION:
                break
        self.survivor.upgrade(store, self.server.address, generation=kills + 1)
        self.survivor.finish()
        reference.examine(store, deaths=deaths)
        self.stores.append((store, reference, deaths))

    def kill(self, victim: Upgrader, seconds: float, *, is_cold: bool) -> list[Said]:
        """Kill at any time within so many seconds; answer what it said. A cold one is waited for until it begins."""
        said: list[Said] = []
        if is_cold:
            said += victim.hear_all("ended", "done", "error")
        deadline = time.monotonic() + self.dice.uniform(0, seconds)
        try:
            while not said or "done" not in said[-1]:
                told = victim.hear(max(0, deadline - time.monotonic()))
                assert told is not None, "it ended before it was killed"
                assert "error" not in told, told
                said.append(told)
        except Empty:
            pass
        victim.kill()
        return said + victim.hear_all()

    def finish(self) -> None:
        """The server ends what the dead asked it for; then their leftovers are all swept."""
        self.server.await_idle()
        for store, reference, deaths in self.stores:
            reference.examine_upgraded(store, deaths=deaths)

    def tell(self) -> None:
        where = ", ".join(f"{count} {step}" for step, count in sorted(self.steps.items()))
        print(f"soak: {self.count} kills, {len(self.stores)} stores: {where}")  # noqa: T201


def _where(said: list[Said]) -> str:
    """Where a process was when it was last heard of."""
    if not said:
        return "before the first step"
    (last, version) = next(iter(said[-1].items()))
    return "after the last step" if last == "done" else f"{'in' if last == 'began' else 'after'} the step to {version}"
