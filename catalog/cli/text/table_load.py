"""`catalog table load` as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from catalog.cli.text.formats import plural

if TYPE_CHECKING:
    from catalog.cli.commands.table_load import TableLoaded


def render(data: TableLoaded) -> Iterator[str]:
    verb = "upserted" if data.upserted else "appended"
    yield f"{verb} {plural(data.rows, 'row')} of {plural(data.files, 'file')} to {data.table} at ts {data.ts}"
