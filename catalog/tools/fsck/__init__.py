"""Checks of everything that is stored: log, files, rows, shards, tables. Nothing is changed.

- `store`: a whole store, checked with the types of its own version: begin here
- `stash`: the stash: its files and rows
- `log`: the entries of its log
- `rows`: stored bytes against their types
- `files`: data files by themselves, for every log
- `tables`: the tables: their log, rows, indexes, constraints and names
- `shards`: the shards, and the stash's references to them
- `findings`: the codes and texts of findings
"""
