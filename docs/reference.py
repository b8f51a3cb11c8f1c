"""Writes the generated reference pages, and checks that they and all links in the documentation are right.

Without `--write` nothing is changed: a page that differs from what would be written is an error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

from docs.links import ROOT, broken_links
from docs.writers.commands import command_line
from docs.writers.errors import error_classes
from docs.writers.gate import gate_codes, wire_rules

PAGES: Mapping[str, Callable[[], str]] = {
    "docs/reference/cli.md": command_line,
    "docs/reference/errors.md": error_classes,
    "docs/reference/gate-codes.md": gate_codes,
    "docs/reference/wire-rules.md": wire_rules,
}


def main() -> int:
    problems = []
    for path, make in PAGES.items():
        page, text = ROOT / path, make()
        if "--write" in sys.argv[1:]:
            page.write_text(text, encoding="utf-8")
        elif not page.is_file() or page.read_text(encoding="utf-8") != text:
            problems.append(f"{path} is not what the code says; write it anew: ./dev docs --write")
    for page in [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]:
        problems += broken_links(page)
    print("\n".join(problems) or "docs: generated pages are current, links are right")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
