"""The `catalog` command.

- `main_group`: declarations of the top-level commands: names, options, help
- `debug_group`: declarations of `catalog debug`
- `commands`: one module per command: its result, and the function that computes it
- `text`: one module per command: its result as text for people; JSON is the fields of the result itself
- `html`: results as a page for a browser
- `app`: the framework of all commands: common options, errors, exit codes
- `answer`: the result of a command: exit code and JSON envelope
- `context`: the store of a command and how it is reached
- `settings`: values of options from flags, variables, files and defaults
- `params`: types of parameters
- `screen`: the only module that prints
- `observers`: progress bars, logs and files of a command that opens a store
- `upgrade_recorder`: the version before an upgrade, and the result of each step
- `store_reader`: rows of a store as JSON
- `row_filter`: conditions on rows, such as `name~^u`
- `signals`: Ctrl-C and SIGTERM
- `completion`: shell completion
"""
