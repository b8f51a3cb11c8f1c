"""Version 16 to 17: a role id says which kind of role it is, instead of leaving it to ranges of numbers.

For whom: every store, and everything that refers to a role. Why: whether a number meant a system role, a
user role or everyone was known only by comparing it with constants, and each place that forgot to compare
was a hole in the privileges. `RoleId` is a choice of `system`, `user` and `public`, and code has to look
which it is.

The number decides, and keeps its value:

- 1 is `public`, which has no number;
- 2 to 999 is `system` with that number;
- 1000 and above is `user` with that number, so that the allocator "role" goes on where it is.

0 is no role's id; a row that has it, in whatever place, stops the step with an error.

These are rewritten, each row into one row, everything else in them unchanged:

- `role`: the key, and `member_of` in its order (an empty list stays empty);
- `database`, `schema`, `item`, `cluster`: `owner_id`;
- `default_privilege`: `role_id` and `grantee_id`, both in the key; public means anyone in either place;
- `system_privilege`: `grantee_id` and `grantor_id`, both in the key.

The new fields have the old names and new numbers. Distinct numbers become distinct ids, so no two keys
become one. `id_alloc` stays: it holds plain numbers still. `audit_log` stays: it has ids as text, in the
form of their time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog.actions import Action, columnar

if TYPE_CHECKING:
    import pyarrow as pa


def upgrade() -> list[Action]:
    """Declare the step: every collection that refers to a role, column by column."""
    return [
        columnar("role", retype_role),
        columnar("database", retype_database_owner),
        columnar("schema", retype_schema_owner),
        columnar("item", retype_item_owner),
        columnar("cluster", retype_cluster_owner),
        columnar("default_privilege", retype_default_privilege),
        columnar("system_privilege", retype_system_privilege),
    ]


def retype_role(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Turn key.id and each element of value.member_of from numbers into RoleIds."""
    raise NotImplementedError


def retype_database_owner(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Turn value.owner_id from a number into a RoleId."""
    raise NotImplementedError


def retype_schema_owner(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Turn value.owner_id from a number into a RoleId."""
    raise NotImplementedError


def retype_item_owner(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Turn value.owner_id from a number into a RoleId."""
    raise NotImplementedError


def retype_cluster_owner(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Turn value.owner_id from a number into a RoleId."""
    raise NotImplementedError


def retype_default_privilege(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Turn key.role_id and key.grantee_id from numbers into RoleIds."""
    raise NotImplementedError


def retype_system_privilege(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Turn key.grantee_id and key.grantor_id from numbers into RoleIds."""
    raise NotImplementedError
