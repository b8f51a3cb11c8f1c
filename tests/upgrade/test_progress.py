"""What is told of an upgrade while it runs."""

from __future__ import annotations

from itertools import pairwise

import pytest

from catalog.upgrade import PROJECT
from tests.upgrade.golden import step_name
from tests.upgrade.upgraded import Upgraded

pytestmark = pytest.mark.spark


def test_each_step_begins_and_ends_in_order(oldest: Upgraded) -> None:
    """One after the other, every one of them."""
    names = [step_name(version) for version in range(oldest.first, PROJECT.current)]
    assert [plan.name for plan in oldest.told.began_steps] == names
    assert [plan.name for plan, _ in oldest.told.ended_steps] == names


def test_rows_and_bytes_only_grow_and_end_at_the_total(oldest: Upgraded) -> None:
    """Whatever jobs a step takes; one that rewrites nothing has nothing to advance."""
    for plan in oldest.told.began_steps:
        advances = oldest.told.advances[plan.name]
        assert advances[-1] == (plan.rows_to_rewrite, plan.bytes_to_rewrite), plan.name
        for earlier, later in pairwise(advances):
            assert earlier[0] <= later[0], plan.name
            assert earlier[1] <= later[1], plan.name


def test_a_step_that_rewrites_rows_says_so_before_it_ends(oldest: Upgraded) -> None:
    """There is something to show from the first poll on."""
    rewriting = [plan for plan in oldest.told.began_steps if plan.bytes_to_rewrite]
    assert len(rewriting) >= 7
    for plan in rewriting:
        assert plan.rows_to_rewrite > 0
        assert len(oldest.told.advances[plan.name]) > 1


def test_what_a_step_did_is_counted(oldest: Upgraded) -> None:
    """Live rows before and after, of every collection that it names."""
    for plan, counts in oldest.told.ended_steps:
        before, after = oldest.at(plan.previous), oldest.at(plan.version)
        assert counts.keys() >= {work.collection for work in plan.works}
        for name, own in counts.items():
            told = (own.rows_before, own.rows_after)
            assert told == (len(before.get(name, ())), len(after.get(name, ()))), (plan.name, name)
