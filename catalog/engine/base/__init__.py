"""Values and functions that know no store: the base of every other package of the engine.

- `project`: the description of a project that the engine works on, and how it is loaded
- `fence`: the order of the processes that lead a store
- `descriptors`: questions about protobuf descriptors
- `arrow`: Arrow columns built from Python values
- `lazy_arrow`: Arrow's modules, loaded when they are first used
- `byte_budget`: items split into parts of a bounded size
- `atomic_file`: files that are replaced as a whole or not at all
- `disk`: free space of a disk
- `duration`: durations as texts
- `rust_panic`: panics of libraries in Rust
- `scratch_folder`: folders that are deleted after use, or at the next start
- `process`: the process that opened something, against use in a forked child
- `gate_loader`: the gate, under the name it has in this installation
"""
