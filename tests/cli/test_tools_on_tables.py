"""Commands about a whole store say what they do with its tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from catalog.engine.log.replica import newest_state
from tests.cli.commands import call, text
from tests.tools.stores_with_tables import make, place_of


@pytest.fixture
def store(tmp_path: Path) -> Path:
    make(tmp_path / "store")
    return tmp_path / "store"


def test_a_copy_says_what_became_of_the_tables(store: Path, tmp_path: Path) -> None:
    """They come along unless they are not wanted, or the copy is anonymised."""
    assert "2 tables at ts" in text("debug", "copy", store, tmp_path / "whole")
    told = text("debug", "copy", store, tmp_path / "without", "--without-tables")
    assert "2 tables were left out; the items that name tables are there" in told
    told = text("debug", "copy", store, tmp_path / "anonymised", "--anonymise")
    assert "2 tables were left out: values in tables are not anonymised" in told
    assert [(tmp_path / name / "tables").exists() for name in ("whole", "without", "anonymised")] == [
        True,
        False,
        False,
    ]


def test_the_history_of_tables_is_shown_if_it_is_asked_for(store: Path) -> None:
    """With their own ts; a store without tables says so."""
    told = call("history", "--tables", "--all", "--limit", "0", "--store", store)
    assert [line["moments"][0]["ts"] for line in told["timeline"]["lines"]] == [*range(told["ts"], -1, -1)]
    assert "public.people" in text("history", "--tables", "--store", store)
    assert "public.people" not in text("history", "--store", store)


def test_stats_list_the_tables(store: Path) -> None:
    """Rows that are there, and the bytes of rows and entries."""
    told = call("debug", "stats", "--store", store)["tables"]
    assert [(own["name"], own["rows"], own["indexes"]) for own in told] == [
        ("public.orders", 1, 0),
        ("public.people", 2, 1),
    ]
    assert "public.people" in text("debug", "stats", "--store", store)


def test_a_repair_tells_of_a_damaged_entry_of_the_tables(store: Path) -> None:
    """What it would do, and what it did."""
    version = newest_state(place_of(store).tables_log()).version
    (store / "tables" / "_delta_log" / f"{version:020d}.json").write_text('{"torn')
    assert f"log entry of tables {version}" in text("repair", "--yes", "--store", store)
    assert "nothing to repair" in text("repair", "--yes", "--store", store)
