"""The ready file is there exactly while a store can be used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from catalog import open_catalog
from catalog.engine.store.observers.ready_file import ReadyFile
from catalog.errors import CatalogError
from catalog.events import Event, StepBegan, together
from catalog.tools.generator import generate
from catalog.upgrade import PROJECT


def test_it_comes_with_the_end_of_the_upgrade_and_goes_with_the_store(tmp_path: Path) -> None:
    """One that an earlier process left is no sign of anything."""
    ready, store, seen = tmp_path / "ready", tmp_path / "store", list[bool]()
    ready.write_text("left behind", encoding="utf-8")
    generate(PROJECT, store, PROJECT.current - 1, 50, seed=1)

    def look(notice: Event) -> None:
        if isinstance(notice, StepBegan):
            seen.append(ready.exists())

    with open_catalog(store, observer=together(ReadyFile(ready, clock=lambda: 0.0), look)) as cat:
        said = json.loads(ready.read_text(encoding="utf-8"))
        assert said.pop("seconds") > 0
        assert said == {
            "state": "ready",
            "store": str(store),
            "mode": "leader",
            "version": cat.version,
            "deploy_generation": cat.deploy_generation,
            "epoch": cat.epoch,
            "ts": cat.ts,
            "since": "1970-01-01T00:00:00.000Z",
        }
    assert seen == [False]
    assert not ready.exists()
    assert {path.name for path in tmp_path.iterdir()} == {"store"}


def test_it_stays_away_if_the_store_cannot_be_opened(tmp_path: Path) -> None:
    """Also if it was there."""
    ready = tmp_path / "ready"
    ready.write_text("left behind", encoding="utf-8")
    with pytest.raises(CatalogError):
        open_catalog(tmp_path / "nothing", "member", observer=ReadyFile(ready))
    assert not ready.exists()


def test_a_file_that_cannot_be_written_harms_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The store is served; whoever probes sees that nothing is ready."""
    with open_catalog(tmp_path / "store", observer=ReadyFile(tmp_path / "no" / "ready")) as cat:
        assert cat.version == PROJECT.current
    assert "FileNotFoundError" in caplog.text
