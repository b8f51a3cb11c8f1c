"""What the types state about rows is what holds them: comments promise nothing that nobody checks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from catalog import open_catalog
from catalog.constraints import CONSTRAINTS
from catalog.errors import CatalogError, DanglingReferenceError, DuplicateError, UndeclaredEnumError
from catalog.objects import DatabaseKey, DatabaseValue, ItemKey, ItemValue, RoleId, RoleKey, RoleValue

TEXT = (Path(__file__).parents[2] / "proto" / "objects.proto").read_text(encoding="utf-8")
OWN = TEXT.partition("\n// Roles\n")[2]
PROMISES = re.compile(
    r"\b(?:never stored|never an id|not public|not empty|at least|at most|exactly one|each once|must|always|from 1[.;])",  # noqa: E501 - one word after the other
    re.IGNORECASE,
)
MESSAGE = re.compile(r"(?ms)^message (\w+) \{\n(.*?)^\}")
WITHIN = {"AclItem": ("database", "schema", "item")}
"""Messages within others, and the collections that have them."""


def test_comments_promise_nothing_that_nobody_checks() -> None:
    """A convention is a constraint, or is not stated."""
    comments = [line.partition("//")[2] for line in OWN.splitlines() if "//" in line]
    assert comments
    assert [line for line in comments if PROMISES.search(line)] == []
    assert "Conventions" not in TEXT


def _collection(message: str) -> str:
    stem = message.removesuffix("Key").removesuffix("Value")
    return re.sub(r"(?<!^)(?=[A-Z])", "_", stem).lower()


def test_comments_state_exactly_the_references_that_are_constraints() -> None:
    """Of each message to each collection that its comments name."""
    stated = set()
    for name, body in MESSAGE.findall(OWN):
        for targets in re.findall(r"Refers to ([\w, ]+?)\.", body):
            for target in re.split(r", | and ", targets):
                stated |= {(own, target) for own in WITHIN.get(name, (_collection(name),))}
    assert stated == {(own.collection, own.target) for own in CONSTRAINTS.references}


def test_comments_state_exactly_the_names_that_are_unique() -> None:
    """The comment of a collection stands before its messages."""
    stated = set(re.findall(r"(?m)^// (\w+): [^\n]*Names are unique", OWN))
    assert stated == {own.collection for own in CONSTRAINTS.uniques}


def test_stated_constraints_are_held_by_transactions(tmp_path: Path) -> None:
    """One of each kind."""
    broken: tuple[tuple[object, object, type[CatalogError]], ...] = (
        (RoleKey(id=RoleId(user=1000)), RoleValue(name="public"), DuplicateError),
        (DatabaseKey(id=77), DatabaseValue(name="x", owner_id=RoleId(user=987_654)), DanglingReferenceError),
        (ItemKey(id=1), ItemValue(schema_id=1, name="x", kind=99), UndeclaredEnumError),  # type: ignore[arg-type]
    )
    with open_catalog(tmp_path / "store") as catalog:
        for key, value, kind in broken:
            with pytest.raises(kind), catalog.transaction() as tx:
                tx.insert(key, value)  # type: ignore[arg-type]  # one type for all
