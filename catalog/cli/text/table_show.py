"""`catalog table show` as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from catalog.cli.text.formats import size
from catalog.cli.text.schema_change import block
from catalog.cli.text.table import NONE, table
from catalog.cli.text.tables import row_count
from catalog.engine.schema_change.schema import State

if TYPE_CHECKING:
    from rich.console import RenderableType

    from catalog.cli.commands.table_show import ColumnShown, IndexShown, TableShown

_STATES = {
    State.DELETE: "announced",
    State.WRITE: "written, not read yet",
    State.CHECK: "enforced, not validated yet",
    State.PUBLIC: "public",
}


def render(data: TableShown) -> Iterator[RenderableType]:
    versions = f"version {data.version}"
    if data.closed_version != data.version:
        versions = f"versions {data.closed_version} and {data.version}"
    yield f"{data.name}   {versions}, {row_count(data.rows)} rows, {size(data.bytes)}, at ts {data.ts}"
    yield table(
        ["column", "type", "null", "default", "state"],
        rows=[
            (own.name, own.type, "yes" if own.nullable else "no", _default(own), _STATES[own.state])
            for own in data.columns
        ],
    )
    yield table(
        ["index", "kind", "columns", "state"],
        ["bytes"],
        [(own.name, own.kind, _columns(own), _index_state(own), size(own.bytes)) for own in data.indexes],
    )
    if data.constraints:
        yield table(
            ["constraint", "rule", "state"],
            rows=[(own.name, own.rule, _STATES[own.state]) for own in data.constraints],
        )
    if data.change is not None:
        yield "a schema change works on it:"
        yield from block(data.change)


def _default(own: ColumnShown) -> str:
    return f"always {own.computed}" if own.computed is not None else own.default or NONE


def _columns(own: IndexShown) -> str:
    return f"{_names(own.columns)}{f', stores {_names(own.stored)}' if own.stored else ''}"


def _index_state(own: IndexShown) -> str:
    built = "complete, not read yet" if own.complete else _STATES[own.state]
    serves = ", for a constraint" if own.hidden and own.kind == "index" else ""
    return f"{_STATES[own.state] if own.state is State.PUBLIC else built}{serves}"


def _names(names: Sequence[str]) -> str:
    return ", ".join(names)
