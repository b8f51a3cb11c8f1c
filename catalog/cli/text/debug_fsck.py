"""`catalog debug fsck` as text: an example of each cause, and how many findings have it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType

from catalog.cli.text.causes import cause_of, grouped, more_like_it


def render(data: Mapping[str, Any]) -> Iterator[RenderableType]:
    report = data["report"]
    for code in dict.fromkeys(finding.code for finding in report.findings):
        own = [finding for finding in report.findings if finding.code == code]
        examples = grouped(
            own,
            lambda one: (one.severity, cause_of(one.where), cause_of(one.what), one.repair),
            report.counts.get(code),
        )
        for finding, alike in examples:
            yield f"{finding.code} {finding.severity} {finding.where}{more_like_it(alike)}"
            yield f"  what: {finding.what}"
            yield f"  fix:  {finding.repair}"
    verdict = "is in order" if report.ok else "is not in order"
    counts = f"{report.entries:,} entries, {report.files:,} files, {report.rows:,} rows"
    yield f"{data['store']} {verdict}: {counts}"
