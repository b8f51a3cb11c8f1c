"""The frozen types that a module names, read from its syntax tree.

A tree is built of every module, because only Python can be read, and walked only where the source can spell such a
name at all: the walk takes longer than the parser.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from ..project_tree import SNAPSHOT_MODULE
from .migration import imports
from .syntax_tree import parse_module

LEGACY = "legacy_json_objects"
_ENCODED = re.compile(rb"[^\r\n]*(?:\r\n?|\n)?[ \t\f]*#[^\r\n]*coding[:=]")
"""The first two lines, if a comment there may declare an encoding: then bytes are not the text that they look like."""
_ESCAPE = re.compile(rb"\\[0-7xuUN\r\n]")
"""A letter or digit by its number or name, or a literal that continues on the next line."""
_LAST_PIECE = re.compile(rb"""["'][a-z0-9_]*2["'{]""")
"""A literal that can end the name of a snapshot's module, which adjacent literals spell together."""


@lru_cache(maxsize=1024)
def read_frozen_names(source: bytes) -> tuple[tuple[str, int], ...]:
    """Return the modules of frozen types that a module imports or names in a string, with their lines."""
    module = parse_module(source)
    return tuple(sorted(_frozen_names(module), key=lambda found: found[1])) if _may_name(source) else ()


def _may_name(source: bytes) -> bool:
    """Tell if a source can name frozen types: it spells one, or has a form in which one can be spelt otherwise."""
    return (
        b"objects_v" in source
        or LEGACY.encode() in source
        or _ESCAPE.search(source) is not None
        or not source.isascii()
        or _LAST_PIECE.search(source) is not None
        or _ENCODED.match(source) is not None
    )


def _frozen_names(module: ast.Module) -> set[tuple[str, int]]:
    found = {
        (part, imported.line)
        for imported in imports(module)
        for part in imported.path.split(".")
        if SNAPSHOT_MODULE.fullmatch(part) or part == LEGACY
    }
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            last = node.value.rpartition(".")[2]
            if SNAPSHOT_MODULE.fullmatch(last):
                found.add((last, node.lineno))
    return found
