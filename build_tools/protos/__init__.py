"""Protos: compiled, compared, and generated as Python modules.

- `types`: parsed descriptors, their hashes and differences
- `engine_types`: the types of the engine's collections, as the engine uses them
- `wire_compat`: proofs that stored bytes stay valid under a changed type
- `wire_kinds`: the encodings of field kinds
- `codegen`: Python modules and stubs of every version
"""
