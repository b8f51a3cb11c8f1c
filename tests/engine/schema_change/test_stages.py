"""Every operation, at every step of it: failure, pause, cancel, death of its owner, and rows written meanwhile."""

from __future__ import annotations

import pytest

from catalog.engine.schema_change.steps import ChangeStatus
from tests.engine.schema_change.stages import (
    BAD,
    DISTURBANCES,
    OPERATIONS,
    begun,
    disturbed,
    made,
    status,
    stepped,
    steps_of,
)

FAILING = {"add_unique", "create_unique_index", "set_not_null", "change_type", "add_check", "change_primary_key"}


@pytest.mark.parametrize("disturbance", DISTURBANCES)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_ends_well_or_leaves_nothing_wherever_it_is_disturbed(operation: str, disturbance: str) -> None:
    """Rows, indexes, constraints, schemas and names equal the oracle after every commit, and in the end."""
    assert list(disturbed(operation, disturbance)) == list(range(steps_of(operation)[1]))


@pytest.mark.parametrize("operation", sorted(FAILING))
def test_an_operation_that_rows_do_not_allow_fails_and_leaves_nothing(operation: str) -> None:
    """The failure names rows that are there; the tables are as before."""
    ends = set()
    for seed in range(12):
        world, wish = made(operation, seed, BAD)
        before = world.state
        change = begun(world, wish)
        stepped(world, change, 100)
        ends.add(status(world, change))
        if status(world, change) is ChangeStatus.FAILED:
            assert world.state == before
        world.end()
    assert ChangeStatus.FAILED in ends
