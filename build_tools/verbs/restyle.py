"""The command that records a cosmetic edit of a released migration: its syntax tree proves that its effect is the same.

The earlier hash stays in the entry, and every check repeats the proof from the history.
"""

from __future__ import annotations

from dataclasses import replace

from ..project_tree import AMEND, SNAPSHOT, GateError, ProjectTree
from ..protos.codegen import generate
from ..sources.git_history import GitHistory
from ..sources.hashes import dump, source_hash
from ..sources.migration import same_syntax
from ..sources.syntax_tree import SyntaxProblemError
from .file_edits import Edits, versions_of
from .new_version import Written, read_hashes


def restyle(tree: ProjectTree, name: str) -> Written:
    """Record new comments, docstrings or layout of a released migration."""
    hashes, path = read_hashes(tree), tree.migration(name)
    entry = hashes.migrations.get(name)
    if entry is None or not path.is_file():
        raise GateError(
            f"there is no migration {name}",
            "only a recorded migration can be restyled",
            "give a name such as v15_to_v16",
        )
    if entry.released is None:
        raise GateError(f"{name} is not released", "an unreleased migration can be changed freely", AMEND)
    source = path.read_bytes()
    if source_hash(source) == entry.hash:
        raise GateError(
            f"{name} has not changed", "it matches its recorded hash", "edit its comments, docstrings or layout first"
        )
    history = GitHistory(tree)
    original = history.source_with_hash(path, entry.hash)
    if original is None:
        why = history.problem or "no commit has the source with the recorded hash"
        raise GateError(f"the released {name} cannot be found", why, "run this in a clone with the whole history")
    try:
        same = same_syntax(original, source)
    except SyntaxProblemError as problem:
        raise GateError(
            f"{name} is not Python: {problem.message}", "it must parse to be compared", "correct it"
        ) from problem
    if not same:
        raise GateError(
            f"{name} no longer does what it did when it was released",
            "its syntax tree differs beyond comments, docstrings and layout",
            f"git checkout v{entry.released} -- {tree.relative(path)}\nand change it in a new version: {SNAPSHOT}",
        )
    restyled = replace(entry, hash=source_hash(source), restyled=(*entry.restyled, entry.hash))
    Edits({tree.hashes: dump(hashes.with_migration(name, restyled))}).apply()
    generate(tree)  # the engine reads the earlier hashes from the generated code
    return Written(
        versions_of(tree).current,
        f"{name} does the same as before; its new layout is recorded",
        (tree.relative(tree.hashes),),
    )
