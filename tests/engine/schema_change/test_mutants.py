"""Broken rules of online schema change: each must be noticed by the world, or the world would prove nothing of it."""

from __future__ import annotations

import pytest

from tests.engine.schema_change.broken import BROKEN, Break
from tests.engine.schema_change.world import make_world

TRIES = 150
"""Worlds that are played before a broken rule counts as not noticed; as a rule the first one notices it."""


@pytest.mark.parametrize("break_rule", BROKEN, ids=lambda rule: rule.__name__)
def test_a_broken_rule_is_noticed(break_rule: Break, monkeypatch: pytest.MonkeyPatch) -> None:
    """By an invariant of the world, with the seed that shows it."""
    break_rule(monkeypatch)
    where = BROKEN[break_rule]
    for seed in range(where.first_seed, where.first_seed + TRIES):
        try:
            make_world(seed, where.rules, *where.meeting_rates).play(where.steps)
        except Exception as error:  # noqa: BLE001 - an invariant, or an error that nobody should meet
            print(f"{break_rule.__name__}: SEED={seed}: {type(error).__name__}: {error}"[:300])  # noqa: T201 - for the soak
            return
    pytest.fail(f"{TRIES} worlds without {break_rule.__name__} noticed")
