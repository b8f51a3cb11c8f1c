"""One word for one idea: no class name is defined twice, and no docstring begins as a riddle."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("build_tools", "catalog", "pyspark_catalog")
RIDDLES = ("What", "Whether", "Who", "Whoever", "Whose", "How", "Which", "Why", "Where", "When")
SHARED: dict[str, str] = {}
"""Class names that several modules define, and the one meaning that they have in all of them."""


def sources() -> Iterator[tuple[str, ast.Module]]:
    """Yield every module that is written by hand and not frozen by a release."""
    for path in sorted(found for package in PACKAGES for found in (ROOT / package).rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        if not place.startswith(("catalog/generated/", "catalog/migrations/")):
            yield place, ast.parse(path.read_text(encoding="utf-8"))


def test_no_class_name_has_two_meanings() -> None:
    """A reader who meets a name knows which class it is."""
    places = defaultdict(list)
    for place, module in sources():
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(place)
    assert {name: found for name, found in places.items() if len(found) > 1 and name not in SHARED} == {}
    assert [name for name in SHARED if len(places[name]) < 2] == [], "it is defined once: strike it off the list"


def test_no_docstring_is_a_riddle() -> None:
    """That of a function begins with a verb, any other with a noun."""
    riddles = [
        f"{place}:{node.lineno}: {text}"
        for place, module in sources()
        for node in ast.walk(module)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(text := node.value.value, str) and re.match(rf"({'|'.join(RIDDLES)})\b", text)
    ]
    assert riddles == []
