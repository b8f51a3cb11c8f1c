"""A whole store: opened in a mode, led by one process, served as a `Catalog`.

- `open`: opening a store, from its identity to the ready handle
- `leadership`: waiting for another leader, and taking over
- `leader_upgrade`: the upgrade of a store by its leader: validate, preflight, take over, upgrade, builtins, ready
- `upgrade_session`: the Spark session of an upgrade, started before anybody is fenced
- `snapshot`: a store as it is now, read without writing or fencing
- `arguments`: refusals of arguments of `open_catalog`
- `catalog`: the handle that callers read and write through
- `scratch_copy`: the state of a store copied into an empty log
- `observers`: receivers of events: log lines, metrics, a ready file
"""
