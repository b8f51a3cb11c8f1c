"""The build gate: freezes the types of every version and refuses changes that would break a store.

- `cli`: the verbs and their options; the only module that prints
- `check`: runs every rule once and reports all findings
- `rules`: the rules, one module per subject
- `codes`: the code, title and reason of every finding
- `findings`: findings and notes, and how they are printed
- `spelling`: suggestions for names that do not exist
- `workspace`: all files that the rules need, read once
- `project_tree`: the paths of a project's files
- `protos`: protos: compiled, compared, generated
- `sources`: facts read from Python files, `proto/hashes.json` and git
- `verbs`: commands that write: new version, release, retire, restyle
- `build_hook`: code generation and gate in a package build
- `hatch_build`: the build hook of this repository

It works on a project's files only and never imports the project. Inside the wheel it is `catalog._gate`, so every
import here is relative.
"""
