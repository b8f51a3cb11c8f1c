"""Facts that the gate reads without importing the project: from syntax trees, `proto/hashes.json` and git.

- `syntax_tree`: the syntax tree of a file, and names in it
- `version_and_dispatch`: `version.py` and `upgrade.py`
- `migration`: the actions that a migration declares
- `migration_test`: the test of a migration
- `outside_uses`: what a migration uses beside its rows
- `frozen_names`: the frozen types that other modules name
- `constraints`: the constraints in `constraints.py`
- `privacy`: the paths in `privacy.py`
- `type_uses`: the use of the current types in `initialize.py`
- `builtin_instructions`: the instructions in `builtins.py`
- `hashes`: `proto/hashes.json`
- `git_history`: released files in the history of git
"""
