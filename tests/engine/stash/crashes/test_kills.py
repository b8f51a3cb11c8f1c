"""A process killed at any time while it commits, consolidates and maintains as fast as it can.

`CRASHES` says how many are killed, `SEED` when.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from catalog.engine.log.delta import DeltaLog
from tests.engine.stash.crashes.ledger import count_of, open_stash
from tests.engine.stash.crashes.verdict import examine, recover
from tests.engine.stash.races.processes import Pool

CRASHES = int(os.environ.get("CRASHES", "12"))
SEED = int(os.environ.get("SEED", str(random.SystemRandom().randrange(2**32))))
STORES = 2
"""The kills are shared between so many stores."""
MOST_CRASHES = 1_000
LIFE_S = 0.6


@pytest.mark.parametrize("store", range(STORES))
def test_a_store_survives_one_kill_after_another(victims: Pool, tmp_path: Path, store: int) -> None:
    """After each it holds what was acknowledged and at most the one in doubt, and only orphans that can be swept."""
    print(f"soak: store {store}, SEED={SEED}")  # noqa: T201 - shown if this fails
    dice = random.Random(SEED + store)  # noqa: S311 - to be repeated
    log = DeltaLog(str(tmp_path / "store" / "stash"))
    log.create("made")
    stash = open_stash(log)
    kills = 0
    while kills < CRASHES // STORES or stash.state.frontier == 0:  # on a busy machine a victim may write little
        assert kills < MOST_CRASHES, "nothing was cleaned up"
        victim = victims.one()
        victim.tell(do="hurry", uri=log.uri)
        time.sleep(dice.uniform(0, LIFE_S))
        victim.kill()
        answers = list(victim.answers())
        victim.close()
        stash = examine(log, answers, count_of(stash.view()))
        kills += 1
    print(f"soak: {kills} kills, {stash.ts} commits, frontier {stash.state.frontier}")  # noqa: T201
    recover(stash)
