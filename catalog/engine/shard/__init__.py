"""Shards: rows in columns, each shard a log of its own with a schema that evolves.

- `shard`: the handle of a shard: begin here
- `schema`: columns and schemas as their users declare them
- `schema_registry`: the numbered schemas of a shard
- `schema_rules`: the rules by which one schema may follow another
- `array_migration`: Arrow arrays taken from one schema to a later one
- `batches`: rows as the log keeps them
- `ingest`: rows checked and sorted before they are written
- `row_order`: the order of rows, and the sum of equal ones
- `row_table`: Arrow tables of a schema built from Python rows
- `reader`: reads at a ts, and the changes after it
- `replica`: the newest state that this process has read, in memory
- `compaction`: several runs merged into one of the latest schema
- `copy`: a copy of the newest state in a log of its own
"""
