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

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog.actions import Action, columnar

if TYPE_CHECKING:
    import pyarrow as pa


def upgrade() -> list[Action]:
    """Declare the step: three collections, column by column."""
    return [
        columnar("database", grant_database_to_owner),
        columnar("schema", grant_schema_to_owner),
        columnar("item", grant_item_to_owner),
    ]


def grant_database_to_owner(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Add value.privileges with one entry: from the owner, to the owner, with acl_mode 48."""
    raise NotImplementedError


def grant_schema_to_owner(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Add value.privileges with one entry: from the owner, to the owner, with acl_mode 48."""
    raise NotImplementedError


def grant_item_to_owner(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Add value.privileges with one entry, from and to the owner, with the acl_mode of the kind; or none."""
    raise NotImplementedError
