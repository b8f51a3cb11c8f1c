"""`catalog validate` as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from catalog.cli.commands.validate import Validated
from catalog.cli.text.formats import plural, short_checksum
from catalog.cli.text.table import NONE, table

if TYPE_CHECKING:
    from rich.console import RenderableType


def render(data: Validated) -> Iterator[RenderableType]:
    made = table(["migration", "verdict", "recorded", "in this build"])
    for own in data.migrations:
        made.add_row(
            own.name, own.verdict, short_checksum(own.recorded), ", ".join(map(short_checksum, own.present)) or NONE
        )
    if data.migrations:
        yield made
    else:
        yield f"{data.store} has no migrations: it was initialised at version {data.version}"
    for snapshot in data.snapshots:
        if snapshot.verdict != "ok":
            yield f"the types of version {snapshot.version}: {snapshot.found}"
    if all(snapshot.verdict == "ok" for snapshot in data.snapshots):
        yield f"the frozen types of {plural(len(data.snapshots), 'version')} are unchanged"
