"""Operations on whole stores, for operators and developers; the command line calls them, and so can a program.

- `copy`: a consistent copy of a store at another place
- `anonymise`: a copy with private texts replaced
- `edit`: one row changed or deleted by hand
- `remove`: every file of a store deleted
- `repair`: damage of crashes and edited migrations repaired
- `compact`: files of each collection merged on request
- `vacuum`: files of retired states deleted on request
- `history`: the commits and step runs of a store, newest first
- `inventory`: the files of a store, and files at its place that are not its own
- `fsck`: checks of everything that is stored
- `upgrade_check`: the whole upgrade, tried on a scratch copy
- `doctor`: checks of machine, storage and store
- `generator`: synthetic stores of any version and size
- `new_project`: `catalog new`: a project from the template
- `hatch_plugin`: the build hook of such a project
"""
