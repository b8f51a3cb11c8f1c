"""The stash: typed rows by key over one log, with transactions, constraints, time travel and a change feed.

- `stash`: opens a log for reading and writing rows: begin here
- `transaction`: reads of one view and the changes made from them, committed at once
- `view`: the rows at one state of the log
- `replica`: the newest state that this process has read, in memory
- `registry`: collections: the messages of their keys and values
- `arguments`: refusals of arguments that are no key, type, value or ts
- `unknown_fields`: fields of a message that its type does not declare
- `declared_enums`: enum values of a message that its types do not declare
- `engine_rows`: rows that only the engine changes
- `constraints`: declarations of unique fields and references
- `constraint_fit`: refusal of constraints that do not fit the types
- `constraint_columns`: the meaning of a constraint, on columns of rows
- `constraint_checks`: checks of a transaction against the newest state
- `constraint_index`: hashes of keys, unique values and references of a collection
- `keyed_hash`: hashes that no input can make collide on purpose
- `change_feed`: the changes of a collection after a ts
- `compaction`: many small files made few
- `json_rows`: rows as JSON
"""
