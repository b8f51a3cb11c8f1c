"""Every example of docs/shards.md does what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from catalog.engine.shard.schema_rules import EvolutionRule
from catalog.engine.spark.session import local_session
from tests.conftest import ROOT
from tests.docs.pages import examples, run_example

PAGE = ROOT / "docs" / "shards.md"
EXAMPLES = examples(PAGE)


@pytest.mark.parametrize("spark", [False, pytest.param(True, marks=pytest.mark.spark)])
def test_the_examples_run_in_order(tmp_path: Path, spark: bool) -> None:  # noqa: FBT001 - with that section or without
    """Each builds on those before it; the one on Spark in the session that all tests of Spark share."""
    if spark:
        local_session(settings={"spark.master": "local[2]"})
    names: dict[str, object] = {}
    for section, found in EXAMPLES.items():
        for example in found if spark or section != "Spark" else ():
            run_example(example, names, {"/var/lib/catalog": str(tmp_path / "store")})


def test_the_page_has_every_rule() -> None:
    """Those that a schema can break, and no others."""
    table = [line.split("|")[1].strip() for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:2] == "| "]
    assert set(table) - {"rule"} == set(EvolutionRule)
