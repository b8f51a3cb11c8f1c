"""The reference pages are generated from what the code is."""

from __future__ import annotations

import runpy

from catalog import errors
from catalog.errors import CatalogError
from tests.conftest import ROOT


def test_the_tree_of_errors_is_drawn_as_the_classes_are() -> None:
    """Each error stands below the one it is caught by, and nobody is told nothing to do."""
    drawn = runpy.run_path(str(ROOT / "docs" / "reference.py"))["drawn_errors"]()
    classes = [getattr(errors, name) for name in errors.__all__]
    assert {name: parent for name, (parent, _) in drawn.items()} == {
        found.__name__: "" if found is CatalogError else found.__base__.__name__ for found in classes
    }
    assert [name for name, (_, caller) in drawn.items() if not caller] == ["CatalogError"]
