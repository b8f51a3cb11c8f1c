"""Version 17 to 18: databases, schemas and items say who may do what with them.

For whom: every store. Why: until version 17 only the owner of an object could use it; from 18 on privileges
are granted, and the owner is one of those who have them. A store that has been upgraded must not lock
owners out of what is theirs, so each object starts with the list that it would have had if its owner had
just made it.

`database`, `schema` and `item` gain `privileges`, with exactly one entry: grantee and grantor are both the
owner, and `acl_mode` has every bit that objects of this type have:

- database and schema: 48 (usage 16, create 32);
- table: 15 (select 1, insert 2, update 4, delete 8);
- view, materialized view, source: 1 (select);
- function: 16 (usage).

Keys and all other fields stay; rows map one to one. Nobody but the owner gains anything:
`default_privilege` speaks of objects made later and is not applied. An owner that is a system role is
treated like any other, and so would be public. An item whose kind is unspecified or not one of these gets
an empty list, for nothing says what its owner may do with it.
"""

import pyarrow as pa
import pyarrow.compute as pc

from catalog.actions import Action, columnar
from catalog.generated import objects_v17_pb2 as v17

_USAGE_AND_CREATE = pa.scalar(48, pa.uint64())
_MODE_OF_KIND = {
    v17.ITEM_KIND_TABLE: 15,
    v17.ITEM_KIND_VIEW: 1,
    v17.ITEM_KIND_MATERIALIZED_VIEW: 1,
    v17.ITEM_KIND_SOURCE: 1,
    v17.ITEM_KIND_FUNCTION: 16,
}
_KINDS, _MODES = pa.array(_MODE_OF_KIND.keys(), pa.int32()), pa.array(_MODE_OF_KIND.values(), pa.uint64())


def upgrade() -> list[Action]:
    """Declare the step: three collections, column by column."""
    return [
        columnar("database", grant_database_to_owner),
        columnar("schema", grant_schema_to_owner),
        columnar("item", grant_item_to_owner),
    ]


def grant_database_to_owner(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Add value.privileges with one entry: from the owner, to the owner, with acl_mode 48."""
    return _granted(batch, _USAGE_AND_CREATE)


def grant_schema_to_owner(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Add value.privileges with one entry: from the owner, to the owner, with acl_mode 48."""
    return _granted(batch, _USAGE_AND_CREATE)


def grant_item_to_owner(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Add value.privileges with one entry, from and to the owner, with the acl_mode of the kind; or none."""
    kinds = batch["value"].field("kind")
    return _granted(batch, pc.take(_MODES, pc.index_in(kinds, _KINDS)))


def _granted(batch: pa.RecordBatch, mode: pa.Scalar | pa.Array) -> pa.RecordBatch:
    """Add privileges from and to the owner: one mode for all rows, or one for each, null where there are none."""
    members = dict(zip((field.name for field in batch["value"].type), batch["value"].flatten(), strict=True))
    owners = members["owner_id"]
    modes = mode if isinstance(mode, pa.Array) else pa.repeat(mode, len(batch))
    counts = modes.is_valid().cast(pa.int32())
    if modes.null_count:
        owners, modes = owners.filter(modes.is_valid()), modes.drop_null()
    entries = pa.StructArray.from_arrays([owners, owners, modes], names=["grantee", "grantor", "acl_mode"])
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(counts)])
    members["privileges"] = pa.ListArray.from_arrays(offsets, entries)
    value = pa.StructArray.from_arrays(list(members.values()), names=list(members))
    return pa.RecordBatch.from_arrays([batch["key"], value], names=["key", "value"])
