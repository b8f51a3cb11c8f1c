"""The pages of the gate: its codes, and the rules of wire compatibility."""

from __future__ import annotations

from build_tools.codes import CODES
from build_tools.protos.wire_compat import WireRule

GROUPS = {
    "T": "The types",
    "S": "Snapshots",
    "H": "Recorded hashes",
    "V": "Versions",
    "C": "Constraints, private texts, new stores",
    "D": "The dispatch",
    "M": "Migrations",
    "I": "Imports elsewhere",
    "B": "Builtins",
}


def gate_codes() -> str:
    lines = [
        "# Gate codes",
        "",
        "Generated from `build_tools/codes.py`. Codes are stable: a retired code is never used for another rule.",
        "",
    ]
    for letter, title in GROUPS.items():
        lines += [f"## {title}", "", "| code | finding | why it matters |", "|---|---|---|"]
        lines += [
            f"| {code} | {entry.title} | {entry.why} |" for code, entry in CODES.items() if code.startswith(letter)
        ]
        lines.append("")
    return "\n".join(lines)


def wire_rules() -> str:
    lines = [
        "# Wire rules",
        "",
        "Generated from `build_tools/protos/wire_compat.py`: why a changed message is not wire compatible.",
        "Where bytes break, some row of the old type changes when it is read and written with the new type; elsewhere",
        "the bytes survive, but not their meaning.",
        "",
        "| rule | bytes break | why |",
        "|---|---|---|",
        *(f"| {rule} | {'yes' if rule.breaks_bytes else 'no'} | {rule.why} |" for rule in WireRule),
        "",
    ]
    return "\n".join(lines)
