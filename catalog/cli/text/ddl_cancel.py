"""`catalog ddl cancel` as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from catalog.cli.text.schema_change import block

if TYPE_CHECKING:
    from catalog.cli.schema_changes import ChangeShown


def render(shown: ChangeShown) -> Iterator[str]:
    yield from block(shown)
