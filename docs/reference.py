"""The check of the documentation: generated pages and pictures, links, navigation, tables of contents of packages.

With `--write`, generated pages are written. Without it nothing changes: an outdated page is an error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

from docs.links import ROOT, broken_links, missing_files
from docs.navigation import misplaced
from docs.writers.commands import command_line
from docs.writers.errors import error_classes
from docs.writers.gate import gate_codes, wire_rules
from docs.writers.glossary import glossary
from docs.writers.home import home
from docs.writers.interface import interface
from docs.writers.layers import layers
from docs.writers.modules import missing_modules, modules
from docs.writers.paths import commit_path, step_path

PAGES: Mapping[str, Callable[[], str]] = {
    "docs/index.md": home,
    "docs/glossary.md": glossary,
    "docs/reference/cli.md": command_line,
    "docs/reference/errors.md": error_classes,
    "docs/reference/gate-codes.md": gate_codes,
    "docs/reference/wire-rules.md": wire_rules,
    "docs/reference/python.md": interface,
    "docs/reference/modules.md": modules,
    "docs/images/layers.svg": layers,
    "docs/images/commit.svg": commit_path,
    "docs/images/step.svg": step_path,
}


def main() -> int:
    problems = []
    for path, make in PAGES.items():
        page, text = ROOT / path, make()
        if "--write" in sys.argv[1:]:
            page.write_text(text, encoding="utf-8")
        elif not page.is_file() or page.read_text(encoding="utf-8") != text:
            problems.append(f"{path} is outdated; write it with ./dev docs --write")
    for page in [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]:
        problems += [*broken_links(page), *missing_files(page)]
    problems += [*misplaced(), *missing_modules()]
    print("\n".join(problems) or "docs: generated pages are current, links and navigation are right")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
