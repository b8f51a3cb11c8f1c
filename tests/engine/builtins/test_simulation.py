"""Builds, generations and processes that meet at every step of every log: seeded; `SEED=7` plays one seed alone.

Processes of one build agree, no shard in use is finalised, none is lost, and whatever stopped midway leaves every build
that is not older than the leaders so far able to start. `soak` plays 2,000 seeds.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

from tests.engine.builtins.broken import BROKEN, Break
from tests.engine.builtins.world import make_world

SOAKED = settings.get_current_profile_name() == "soak"
SEEDS = [int(os.environ["SEED"])] if "SEED" in os.environ else range(2_000 if SOAKED else 100)
GROUPS = 20
"""Seeds are played by the dozen, for a test each would cost more than the seed."""
TRIES = 100


@pytest.mark.parametrize("group", range(GROUPS))
def test_whatever_meets_agrees_loses_nothing_and_keeps_nobody_from_starting(group: int) -> None:
    """Every invariant of the world holds after every round, and the newest build leads in the end."""
    for seed in list(SEEDS)[group::GROUPS]:
        try:
            make_world(seed).play()
        except BaseException as error:
            error.add_note(f"SEED={seed}")
            raise
    print(f"soak: {len(SEEDS)} worlds of 10 builds and 5 builtins, no violation")  # noqa: T201 - for the soak


@pytest.mark.parametrize("break_rule", BROKEN, ids=lambda rule: rule.__name__)
def test_a_broken_rule_is_noticed(break_rule: Break, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the simulation would prove nothing of it."""
    break_rule(monkeypatch)
    where = BROKEN[break_rule]
    for seed in range(where.first_seed, where.first_seed + TRIES):
        try:
            make_world(seed, where.kinds).play()
        except Exception:  # noqa: BLE001 - an invariant, or an error that nobody should meet
            return
    pytest.fail(f"{TRIES} worlds without {break_rule.__name__} noticed")
