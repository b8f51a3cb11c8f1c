"""Findings and notes of the gate, and their output formats.

A finding is a mistake that blocks the build; a note is a check that the gate could not make.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum

from .codes import CODES


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"
    GITHUB = "github"


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    code: str
    path: str
    line: int
    what: str
    """The mistake, with the names and numbers of this case."""
    fix: str
    """The command or the edit that resolves it."""

    @property
    def title(self) -> str:
        return CODES[self.code].title

    @property
    def why(self) -> str:
        return CODES[self.code].why


@dataclass(frozen=True, slots=True)
class Report:
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.findings


def render(report: Report, style: Format) -> str:
    match style:
        case Format.TEXT:
            return _text(report)
        case Format.JSON:
            return _json(report)
        case Format.GITHUB:
            return _github(report)


def _text(report: Report) -> str:
    blocks = [
        f"{finding.code} {finding.title}\n"
        f"  at:   {_place(finding)}\n"
        f"  what: {_indented(finding.what)}\n"
        f"  why:  {_indented(finding.why)}\n"
        f"  fix:  {_indented(finding.fix)}\n"
        for finding in report.findings
    ]
    blocks += [f"note: {_indented(note)}" for note in report.notes]
    count = len(report.findings)
    blocks.append("gate: clean" if report.ok else f"gate: {count} finding{'s' * (count != 1)}")
    return "\n".join(blocks)


def _json(report: Report) -> str:
    findings = [asdict(finding) | {"title": finding.title, "why": finding.why} for finding in report.findings]
    return json.dumps({"ok": report.ok, "findings": findings, "notes": list(report.notes)}, indent=2)


def _github(report: Report) -> str:
    lines = []
    for finding in report.findings:
        where = f"file={_property(finding.path)}" + (f",line={finding.line}" if finding.line else "")
        message = _data(f"{finding.what}\nwhy: {finding.why}\nfix: {finding.fix}")
        lines.append(f"::error {where},title={_property(f'{finding.code} {finding.title}')}::{message}")
    lines += [f"::notice::{_data(note)}" for note in report.notes]
    return "\n".join(lines)


def _place(finding: Finding) -> str:
    return f"{finding.path}:{finding.line}" if finding.line else finding.path


def _indented(text: str) -> str:
    return text.replace("\n", "\n        ")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
