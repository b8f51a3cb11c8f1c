"""Version 15 to 16: what a role may create becomes one set of bits.

For whom: every store; only roles are concerned. Why: with one boolean for each permission every new
permission is a new field, and asking whether a role has all of several takes as many comparisons.

In `role` the booleans `create_db`, `create_role` and `create_cluster` become `permissions`, with the bits 1
for databases, 2 for roles and 4 for clusters. The key, the name and the memberships stay as they are; rows
map one to one. A role that may create nothing has the set 0. The public role (id 1) and the system roles (2
to 999) are treated like all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog.actions import Action, columnar

if TYPE_CHECKING:
    import pyarrow as pa


def upgrade() -> list[Action]:
    """Declare the step: one collection, column by column."""
    return [
        columnar("role", gather_permissions),
    ]


def gather_permissions(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Replace the three booleans by permissions = create_db * 1 + create_role * 2 + create_cluster * 4."""
    raise NotImplementedError
