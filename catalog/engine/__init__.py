"""The engine: everything that works on a store of any project, and knows no project.

Each layer imports only those below it; `./dev lint` checks this. From the top:

- `store`: a whole store: where it is, opening it in a mode, leading, the `Catalog` handle, observers
- `migrate`: takes the stash from version N to N + 1: plan, run on Spark, verify, commit, record, undo
- `builtins`: tables declared in code, kept in shards and migrated by explicit instructions
- `spark`: Spark as a tool: sessions, jobs, SQL statements, and the data source `catalog`
- `stash`: typed rows by key over one log: views, transactions, constraints, compaction, change feed
- `shard`: rows in columns over one log, with a schema that evolves
- `log`: atomic, ordered commits of immutable files on Delta Lake, and their maintenance
- `storage`: bytes at a place: folders and object stores, the layout of a store, `store.json`, heartbeats
- `codec`: protobuf ↔ Arrow ↔ Spark types, lossless or refused
- `base`: values and functions that know no store: the project, the fence, files, scratch folders

`migrate` and `builtins`, `stash` and `shard`, `storage` and `codec` share a layer and do not import each other.
"""
