"""`catalog table check`: compare every index of a table with its rows, and every constraint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult
from catalog.cli.store_tables import tables_to_read
from catalog.engine.schema_change.checking import TableReport, check_table
from catalog.errors import FindingsError, UnknownTableError

if TYPE_CHECKING:
    from catalog.cli.app import Invocation


@dataclass(frozen=True, slots=True)
class TableChecked:
    store: str
    report: TableReport


def check(run: Invocation, *, name: str) -> CommandResult:
    """Check a table; findings make the command fail."""
    uri = run.target.place.uri
    with tables_to_read(run.target) as tables:
        if tables is None:
            raise UnknownTableError(name, ())
        schema = tables.schema(name)
        with run.screen.row_progress(f"checking {schema.name}") as advance:
            report = check_table(tables.store.replica, schema, advance)
    error = None
    if not report.ok:
        count = sum(finding.count for finding in report.findings)
        error = FindingsError(f"{report.table} of {uri}", count, "each finding says how it can be repaired")
    return CommandResult(TableChecked(uri, report), error)
