"""Every example of docs/feeds.md does what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from catalog.engine.spark.session import local_session
from tests.conftest import ROOT
from tests.docs.pages import Command, Example, blocks, run_command, run_example

PAGE = ROOT / "docs" / "feeds.md"


@pytest.mark.spark
def test_the_page_works_as_written(tmp_path: Path) -> None:
    """From top to bottom, on the one session that all tests of Spark share."""
    local_session(settings={"spark.master": "local[2]"})
    names: dict[str, object] = {}
    places = {"/var/lib/": f"{tmp_path}/", "/srv/": f"{tmp_path}/"}
    for block in blocks(PAGE):
        if isinstance(block, Command):
            run_command(block, tmp_path, places)
        else:
            assert isinstance(block, Example)
            run_example(block, names, places)
