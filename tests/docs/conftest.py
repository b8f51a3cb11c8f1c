"""Clones in which sessions can be run, with what is installed here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.environments import lend_to_clone


@pytest.fixture
def checkout(clone: Path) -> Path:
    """Return a clone whose environment is there."""
    return lend_to_clone(clone)
