"""The log: atomic, ordered commits of immutable files, on Delta Lake, and their maintenance.

- `protocol`: a log as its callers know it: state, commit, the outcome of a commit
- `delta`: the log on Delta Lake
- `held_table`: the table of a log in delta-rs, opened and held open
- `delta_table`: Delta tables through delta-rs; the only module that imports `deltalake`
- `place`: the address of a store: its storage, identity, logs and version
- `replica`: the newest state of a log that a process has seen, followed and appended to
- `commit_rules`: the rules of a commit that every log follows
- `state_reader`: the state of a Delta log at a version
- `delta_entries`: entries of a Delta log, parsed and checked
- `digests`: digests of commits and states
- `damaged_entry`: a damaged entry, and its remedy
- `archive`: old entries and checkpoints, moved out of the way
- `data_files`: data files: names, content, limits
- `parquet_footers`: the row groups of a data file
- `small_parquet`: small parquet files, written and read without Arrow
- `thrift`: the headers of parquet files
- `maintenance`: checkpoints, retention, vacuum, sweep
"""
