"""`catalog ddl adopt` as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from catalog.cli.text.schema_change import block

if TYPE_CHECKING:
    from catalog.cli.commands.ddl_adopt import Adopted


def render(data: Adopted) -> Iterator[str]:
    if not data.changes:
        yield "no schema change needs to be taken up"
    for shown in data.changes:
        yield from block(shown)
    for other in data.others:
        yield f"{other.id}  {other.statement}   is carried out by {other.owner}"
