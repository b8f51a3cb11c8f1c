"""What a store held that was initialised by each version, upgraded to what a new one holds."""

from __future__ import annotations

import json

import pytest

from tests.migrations.oracles import upgraded
from tests.migrations.plain import ENGINE, GOLDEN, NEWEST, OLDEST, golden, plain, stored, types
from tests.migrations.steps import run

VERSIONS = range(OLDEST, NEWEST + 1)
NEEDS_SPARK = 20


@pytest.mark.parametrize("version", VERSIONS)
def test_an_old_store_upgraded_equals_a_new_one(version: int) -> None:
    """Engine collections and audit log aside, nobody can tell which version a store began with."""
    final, fresh = upgraded(golden(version), version, NEWEST), golden(NEWEST)
    del final["audit_log"], fresh["audit_log"]
    assert final == fresh


@pytest.mark.parametrize("version", [version for version in VERSIONS[:-1] if version != NEEDS_SPARK])
def test_the_migration_agrees_with_the_oracle_about_it(version: int) -> None:
    """The step itself leads to what the next version began with."""
    assert run(version, golden(version)) == upgraded(golden(version), version, version + 1) == golden(version + 1)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_golden_file_is_a_store_of_its_version(version: int) -> None:
    """Every collection, its rows in the order of their keys, and the version it says."""
    content = json.loads((GOLDEN / f"initial_v{version}.json").read_text(encoding="utf-8"))
    assert content.keys() == types(version).keys() | ENGINE - {"fence_token"}
    assert content["config"] == [[{"name": "stash_version"}, {"number": str(version)}]]
    in_order = plain(version, stored(version, golden(version)))
    assert {name: list(rows) for name, rows in golden(version).items()} == {
        name: list(rows) for name, rows in in_order.items()
    }
