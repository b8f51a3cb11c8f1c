"""Version 15 to 16: what a role may create becomes one set of bits.

For whom: every store; only roles are concerned. Why: with one boolean for each permission every new
permission is a new field, and asking whether a role has all of several takes as many comparisons.

In `role` the booleans `create_db`, `create_role` and `create_cluster` become `permissions`, with the bits 1
for databases, 2 for roles and 4 for clusters. The key, the name and the memberships stay as they are; rows
map one to one. A role that may create nothing has the set 0. The public role (id 1) and the system roles (2
to 999) are treated like all others.
"""

import pyarrow as pa
import pyarrow.compute as pc

from catalog.actions import Action, columnar


def upgrade() -> list[Action]:
    """Declare the step: one collection, column by column."""
    return [
        columnar("role", gather_permissions),
    ]


def gather_permissions(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Replace the three booleans by permissions = create_db * 1 + create_role * 2 + create_cluster * 4."""
    value = _members(batch["value"])
    databases, roles, clusters = (value.pop(name) for name in ("create_db", "create_role", "create_cluster"))
    value["permissions"] = pc.bit_wise_or(
        pc.bit_wise_or(_bit(databases, 1), _bit(roles, 2)),
        _bit(clusters, 4),
    )
    return pa.RecordBatch.from_arrays([batch["key"], _struct(value)], names=["key", "value"])


def _bit(flags: pa.BooleanArray, bit: int) -> pa.UInt64Array:
    return pc.multiply(flags.cast(pa.uint64()), pa.scalar(bit, pa.uint64()))


def _members(messages: pa.StructArray) -> dict[str, pa.Array]:
    return dict(zip((field.name for field in messages.type), messages.flatten(), strict=True))


def _struct(members: dict[str, pa.Array]) -> pa.StructArray:
    return pa.StructArray.from_arrays(list(members.values()), names=list(members))
