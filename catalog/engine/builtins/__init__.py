"""Builtins: tables declared in code, kept in shards, whose schemas change between builds by explicit instructions.

- `declaration`: builtins, their schemas, and the instructions of a build
- `plan`: the change that each builtin of a store needs; pure
- `migrate`: the migration protocol of leaders and of read-only processes
- `replacement_shards`: the migration shard: replacement shards by build and deploy generation
- `schema_evolution`: registers the schemas that may follow those of a shard
- `mapping_rows`: the rows of the stash that are about builtins
- `tables`: the open builtins of a store
- `derived_rows`: rows that follow from those of the stash
- `store_metrics`: rows and bytes of each collection over time
"""
