"""A change that was submitted to hold stops before it can no longer be undone."""

from __future__ import annotations

from pathlib import Path

import pytest

from catalog import open_catalog
from catalog.engine.schema_change.steps import ChangeStatus
from catalog.engine.store.catalog import Catalog


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = open_catalog(tmp_path / "store")
    catalog.tables.execute("CREATE TABLE t (id BIGINT, a STRING, PRIMARY KEY (id))")
    with catalog.tables.transaction() as tx:
        tx.insert("t", {"id": 1, "a": "7"})
    return catalog


def test_it_goes_on_when_it_is_resumed(catalog: Catalog) -> None:
    """Until then both forms are maintained, and readers see the old one."""
    change = catalog.tables.execute("ALTER TABLE t ALTER COLUMN a TYPE INT", hold=True)
    assert change.status is ChangeStatus.HOLDING
    with catalog.tables.transaction() as tx:
        tx.insert("t", {"id": 2, "a": "8"})
    assert [row["a"] for row in catalog.tables["t"].rows()] == ["7", "8"]
    assert change.resume().result().status is ChangeStatus.SUCCEEDED
    assert [row["a"] for row in catalog.tables["t"].rows()] == [7, 8]
    catalog.close()


def test_it_is_undone_when_it_is_cancelled(catalog: Catalog) -> None:
    """Nothing is left of it."""
    change = catalog.tables.execute("ALTER TABLE t ALTER COLUMN a TYPE INT", hold=True)
    assert change.cancel().status is ChangeStatus.CANCELLED
    assert [row["a"] for row in catalog.tables["t"].rows()] == ["7"]
    assert [column.name for column in catalog.tables["t"].schema.columns] == ["id", "a"]
    catalog.close()
