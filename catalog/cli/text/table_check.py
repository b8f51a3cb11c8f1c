"""`catalog table check` as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from catalog.cli.text.formats import plural
from catalog.cli.text.schema_change import key_text

if TYPE_CHECKING:
    from catalog.cli.commands.table_check import TableChecked


def render(data: TableChecked) -> Iterator[str]:
    report = data.report
    for finding in report.findings:
        number = f"{'at least ' if finding.is_least else ''}{finding.count:,}"
        yield f"{finding.element}: {finding.what}: {number}"
        if finding.keys:
            yield f"  keys: {'; '.join(map(key_text, finding.keys))}"
        yield f"  fix:  {finding.fix}"
    if report.unfinished:
        yield f"not checked, because a schema change works on it: {', '.join(report.unfinished)}"
    checked = (
        f"{plural(report.rows, 'row')}, {plural(len(report.indexes), 'index', 'indexes')}, "
        f"{plural(len(report.constraints), 'constraint')}"
    )
    yield f"{report.table} {'is in order' if report.ok else 'is not in order'}: {checked} at ts {report.ts}"
