"""The rules of the gate, one module per subject; each adds its findings to the workspace.

- `types`: the current and frozen types
- `field_numbers`: numbers of fields and enum values: given up, reserved, never used again
- `frozen`: snapshots and migrations against recorded hashes, and hashes against history
- `frozen_imports`: imports of frozen types
- `migrations`: migrations: present, well formed, pure, complete
- `dispatch`: `version.py` and the dispatch in `upgrade.py`
- `constraints`: the constraints in `constraints.py`
- `privacy`: the private texts in `privacy.py`
- `initialize`: the rows of a new store in `initialize.py`
- `builtins`: the instructions in `builtins.py`
"""
