"""A feed of a table has every change of a row once, whoever wrote it and however."""

from __future__ import annotations

from pathlib import Path

import pytest

from catalog import open_catalog
from catalog.errors import SchemaChangedError


def test_transactions_and_bulk_writes_are_in_it_and_reorganisations_are_not(tmp_path: Path) -> None:
    """Values that a new column gives to old rows are no changes, and new columns are not in it."""
    with open_catalog(tmp_path / "store") as catalog:
        tables = catalog.tables
        tables.execute("CREATE TABLE t (id BIGINT, a STRING, PRIMARY KEY (id))")
        since = tables.ts
        with tables.transaction() as tx:
            tx.insert("t", {"id": 1, "a": "x"})
            tx.insert("t", {"id": 2, "a": "y"})
        tables["t"].upsert([{"id": 2, "a": "z"}, {"id": 3, "a": "w"}, {"id": 1, "a": "x"}])
        tables.execute("ALTER TABLE t ADD COLUMN b INT USING (length(a))")
        tables["t"].delete([{"id": 3}])
        found = [(row, diff) for row, _, diff in tables["t"].subscribe(since)]
        assert found == [
            ({"id": 1, "a": "x"}, 1),
            ({"id": 2, "a": "y"}, 1),
            ({"id": 2, "a": "y"}, -1),
            ({"id": 2, "a": "z"}, 1),
            ({"id": 3, "a": "w"}, 1),
            ({"id": 3, "a": "w"}, -1),
        ]
        last = [ts for _, ts, _ in tables["t"].subscribe(since)][-1]
        assert list(tables["t"].subscribe(last)) == []
        tables.execute("ALTER TABLE t DROP COLUMN a")
        with pytest.raises(SchemaChangedError, match="a was dropped"):
            list(tables["t"].subscribe(last))
