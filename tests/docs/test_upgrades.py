"""Every example of docs/upgrades.md does what it says, and the page leaves out no rule, state or error."""

from __future__ import annotations

from pathlib import Path

import pytest

from catalog.engine.migrate.recorder import RunState
from catalog.engine.migrate.violations import RowRule
from catalog.engine.spark.session import local_session
from catalog.errors import CatalogError, migrations
from tests.conftest import ROOT
from tests.docs.pages import examples, run_example

PAGE = ROOT / "docs" / "upgrades.md"
TEXT = PAGE.read_text(encoding="utf-8")


@pytest.mark.spark
def test_the_examples_run_in_order(tmp_path: Path) -> None:
    """On the one session that all tests of Spark share; each builds on those before it."""
    local_session(settings={"spark.master": "local[2]"})
    names: dict[str, object] = {}
    for found in examples(PAGE).values():
        for example in found:
            run_example(example, names, {"/var/lib/catalog": str(tmp_path / "store")})


@pytest.mark.parametrize("rule", list(RowRule))
def test_every_rule_is_told_as_its_violations_tell_it(rule: RowRule) -> None:
    """So that whoever is told of one finds it."""
    assert f"\n| {rule} |" in TEXT


@pytest.mark.parametrize("state", list(RunState))
def test_every_state_is_explained(state: RunState) -> None:
    """Each in a row of the table."""
    assert f"\n| `{state.name}` |" in TEXT


def test_every_error_of_a_migration_has_a_way_out() -> None:
    """Those that only upgrades raise."""
    raised = [name for name, found in vars(migrations).items() if isinstance(found, type) and found is not CatalogError]
    rows = [line for line in TEXT.splitlines() if line.startswith("| `")]
    assert [name for name in raised if not any(f"`{name}`" in row.split("|")[1] for row in rows)] == []
