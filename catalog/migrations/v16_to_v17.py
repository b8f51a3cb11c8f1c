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

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from catalog.actions import Action, columnar

_PUBLIC, _USER_MIN = pa.scalar(1, pa.uint64()), pa.scalar(1000, pa.uint64())
_NO_NUMBER = pa.scalar(None, pa.uint64())


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
    value = _members(batch["value"])
    lists = value["member_of"]
    roles = _role_ids(lists.flatten(), "member_of", lambda element: pc.list_parent_indices(lists)[element].as_py())
    ends = pc.cumulative_sum(pc.list_value_length(lists))
    value["member_of"] = pa.ListArray.from_arrays(pa.concat_arrays([pa.array([0], pa.int32()), ends]), roles)
    return _retyped(pa.RecordBatch.from_arrays([batch["key"], _struct(value)], names=["key", "value"]), "key", "id")


def retype_database_owner(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Turn value.owner_id from a number into a RoleId."""
    return _retyped(batch, "value", "owner_id")


def retype_schema_owner(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Turn value.owner_id from a number into a RoleId."""
    return _retyped(batch, "value", "owner_id")


def retype_item_owner(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Turn value.owner_id from a number into a RoleId."""
    return _retyped(batch, "value", "owner_id")


def retype_cluster_owner(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Turn value.owner_id from a number into a RoleId."""
    return _retyped(batch, "value", "owner_id")


def retype_default_privilege(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Turn key.role_id and key.grantee_id from numbers into RoleIds."""
    return _retyped(batch, "key", "role_id", "grantee_id")


def retype_system_privilege(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Turn key.grantee_id and key.grantor_id from numbers into RoleIds."""
    return _retyped(batch, "key", "grantee_id", "grantor_id")


def _retyped(batch: pa.RecordBatch, column: str, *names: str) -> pa.RecordBatch:
    """Turn these members of the keys or of the values from numbers into RoleIds."""
    members = _members(batch[column])
    for name in names:
        members[name] = _role_ids(members[name], name, lambda row: row)
    retyped = {"key": batch["key"], "value": batch["value"], column: _struct(members)}
    return pa.RecordBatch.from_arrays(list(retyped.values()), names=list(retyped))


def _role_ids(numbers: pa.UInt64Array, name: str, row_of: Callable[[int], int]) -> pa.StructArray:
    """Give the RoleIds of these numbers; `row_of` says in which row the number at a position is."""
    if pc.min(numbers).as_py() == 0:
        row = row_of(pc.index(numbers, 0).as_py())
        message = f"row {row}: {name} is 0, which is no role's id"
        raise ValueError(message)
    user, public = pc.greater_equal(numbers, _USER_MIN), pc.equal(numbers, _PUBLIC)
    return pa.StructArray.from_arrays(
        [
            pc.if_else(pc.or_(user, public), _NO_NUMBER, numbers),
            pc.if_else(user, numbers, _NO_NUMBER),
            pa.StructArray.from_arrays([], fields=[], mask=pc.invert(public)),
        ],
        names=["system", "user", "public"],
    )


def _members(messages: pa.StructArray) -> dict[str, pa.Array]:
    return dict(zip((field.name for field in messages.type), messages.flatten(), strict=True))


def _struct(members: dict[str, pa.Array]) -> pa.StructArray:
    return pa.StructArray.from_arrays(list(members.values()), names=list(members))
