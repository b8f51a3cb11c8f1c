"""The pages of what the gate finds: its codes, and the rules of wire compatibility."""

from __future__ import annotations

from build_tools.codes import CODES
from build_tools.wire import Rule

GROUPS = {
    "T": "The types",
    "S": "Snapshots",
    "H": "Recorded hashes",
    "V": "Versions",
    "D": "The dispatch",
    "M": "Migrations",
    "I": "Imports elsewhere",
    "B": "Builtins",
}


def gate_codes() -> str:
    lines = [
        "# Gate codes",
        "",
        "Generated from `build_tools/codes.py`. Codes are stable: a retired one is never given to something else.",
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
        "Generated from `build_tools/wire.py`: why a change of a message is not wire compatible. Where bytes break,",
        "some row written with the old type does not survive being read and written with the new one; elsewhere the",
        "bytes survive, but not what they mean.",
        "",
        "| rule | bytes break | why |",
        "|---|---|---|",
        *(f"| {rule} | {'yes' if rule.breaks_bytes else 'no'} | {rule.why} |" for rule in Rule),
        "",
    ]
    return "\n".join(lines)
