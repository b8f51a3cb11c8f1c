"""Tables of an environment: the public names.

with open_catalog(store, "member") as catalog:
    catalog.tables.execute("CREATE TABLE orders (id BIGINT, amount DECIMAL(10,2), PRIMARY KEY (id))")
"""

from __future__ import annotations

from catalog.engine.schema_change.change import ChangeFailure, SchemaChange, Waiting
from catalog.engine.schema_change.plan import Plan, Stage
from catalog.engine.schema_change.schema import TableSchema
from catalog.engine.schema_change.steps import ChangeStatus
from catalog.engine.schema_change.table import Table
from catalog.engine.schema_change.tables import Tables
from catalog.engine.schema_change.transaction import TableTransaction
from catalog.errors.tables import SchemaChangeFailedError

__all__ = [
    "ChangeFailure",
    "ChangeStatus",
    "Plan",
    "SchemaChange",
    "SchemaChangeFailedError",
    "Stage",
    "Table",
    "TableSchema",
    "TableTransaction",
    "Tables",
    "Waiting",
]
