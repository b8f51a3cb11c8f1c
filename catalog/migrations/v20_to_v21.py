"""Version 20 to 21: the collection `timestamp` goes, and so do items whose schema is gone.

For whom: every store has timelines; orphaned items are in those where a build dropped a schema without its
items. Why: the time of a commit is the version of the log that it makes, so timelines of one's own are kept
for nobody; and an item that no schema holds cannot be reached by any name, yet keeps its owner from being
dropped. From version 21 on every item's schema exists.

- `timestamp` is retired with all its rows. Nothing refers to them.
- `item`: a row whose `schema_id` is not the id of a row of `schema` is deleted. The others stay as they
  are.
- `comment`: a row on a deleted item or on a column of one is deleted with it, for it would be on nothing.
  The others stay as they are.
- `audit_log`: each deleted item adds one row: event type drop; object type by the item's kind (the numbers
  are the same); the item's id in decimal; its name; actor "v20_to_v21"; no time, because migrations have no
  clock; reason "schema N does not exist", N being the `schema_id`. Ids come from the allocator "audit_log",
  dense, in the order of the items' ids as numbers. Deleted comments are not audited apart. Existing rows stay as they
  are.
- `storage_metadata` stays, that of deleted items too: giving up a shard destroys data, which undoing the
  step could not bring back. Its rows may outlive their items.

A store without orphans loses no item and gains no audit row. A system schema, which belongs to every
database, is a schema like the others. Whether a schema's database exists is not asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog.actions import Action, frame, retire

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame


def upgrade() -> list[Action]:
    """Declare the step: one collection retired, one cleaned by a join with what it refers to."""
    return [
        retire("timestamp"),
        frame(
            delete_orphaned_items,
            reads=("item", "schema", "comment"),
            writes=("item", "comment"),
            into=("audit_log",),
            ids="audit_log",
        ),
    ]


def delete_orphaned_items(frames: Mapping[str, DataFrame], next_id: int) -> Mapping[str, DataFrame]:
    """Drop items whose schema is not there and the comments on them; add an audit row for each item."""
    from pyspark.sql import functions as sf  # noqa: PLC0415 - loaded when the step runs

    items, comments = frames["item"], frames["comment"]
    schemas = frames["schema"].select(sf.col("key.id").alias("schema"))
    in_schema = sf.col("value.schema_id") == sf.col("schema")
    orphans = items.join(schemas, in_schema, "left_anti")
    gone = orphans.select(sf.col("key.id").alias("gone"))
    # As a text, because not every number of 64 bits is a literal everywhere.
    last_id = sf.lit(str(next_id - 1)).cast("decimal(20,0)")
    key = (last_id + sf.expr("row_number() over (order by key.id)")).cast("decimal(20,0)").alias("id")
    value = (
        sf.lit(3).alias("event_type"),
        sf.col("value.kind").alias("object_type"),
        sf.col("key.id").cast("string").alias("object_id"),
        sf.col("value.name").alias("object_name"),
        sf.lit("v20_to_v21").alias("actor"),
        sf.lit(None).cast("decimal(20,0)").alias("occurred_at_ms"),
        sf.format_string("schema %s does not exist", sf.col("value.schema_id").cast("string")).alias("reason"),
    )
    return {
        "item": items.join(schemas, in_schema, "left_semi"),
        "comment": comments.join(gone, sf.col("key.item_id") == sf.col("gone"), "left_anti"),
        "audit_log": orphans.select(sf.struct(key).alias("key"), sf.struct(*value).alias("value")),
    }
