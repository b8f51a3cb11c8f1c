"""Cosmetic edits of released migrations: allowed where the syntax tree proves that the output cannot change.

The earlier hash stays in the entry, and the gate repeats the proof from history at every check.
"""

from __future__ import annotations

from dataclasses import replace

from .codegen import generate
from .edits import Edits, versions_of
from .hashes import dump, source_hash
from .history import History
from .migration import same_syntax
from .snapshot import Made, read_hashes
from .syntax import SyntaxProblemError
from .tree import AMEND, SNAPSHOT, GateError, Tree


def restyle(tree: Tree, name: str) -> Made:
    """Record new comments, docstrings or layout of a released migration."""
    hashes, path = read_hashes(tree), tree.migration(name)
    entry = hashes.migrations.get(name)
    if entry is None or not path.is_file():
        raise GateError(
            f"there is no migration {name}", "only what is recorded can be restyled", "name it like v15_to_v16"
        )
    if entry.released is None:
        raise GateError(f"{name} is not released", "it can be changed freely", AMEND)
    source = path.read_bytes()
    if source_hash(source) == entry.hash:
        raise GateError(
            f"{name} has not changed", "it is what was recorded", "edit its comments, docstrings or layout first"
        )
    history = History(tree)
    original = history.source_with_hash(path, entry.hash)
    if original is None:
        why = history.problem or "no commit holds the source with the recorded hash"
        raise GateError(f"the released {name} cannot be found", why, "run this in a clone with the whole history")
    try:
        same = same_syntax(original, source)
    except SyntaxProblemError as problem:
        raise GateError(
            f"{name} is not Python: {problem.message}", "it must parse to be compared", "mend it"
        ) from problem
    if not same:
        raise GateError(
            f"{name} does something else than when it was released",
            "its syntax tree differs beyond comments, docstrings and layout",
            f"git checkout v{entry.released} -- {tree.relative(path)}\nand change it in a new version: {SNAPSHOT}",
        )
    restyled = replace(entry, hash=source_hash(source), restyled=(*entry.restyled, entry.hash))
    Edits({tree.hashes: dump(hashes.with_migration(name, restyled))}).apply()
    generate(tree)  # which tells the engine of the earlier hashes
    return Made(
        versions_of(tree).current, f"{name} does what it did; its new looks are recorded", (tree.relative(tree.hashes),)
    )
