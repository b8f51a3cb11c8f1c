"""Commands of the gate that write files, or list them.

- `new_version`: `snapshot`, which is `catalog create`: freezes the types and writes the migration
- `stubs`: the migration and its test, as text to complete
- `release`: `release`: sets the release of every new hash
- `retire`: `retire`: drops old versions
- `restyle`: `restyle`: accepts cosmetic edits of released migrations
- `show`: `show`: lists versions
- `file_edits`: several files changed together or not at all
"""
