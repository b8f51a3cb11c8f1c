"""The home page: written by hand up to its list of all pages, which is the navigation of the site.

Readers on the code host find every page through it.
"""

from __future__ import annotations

import os
from pathlib import Path

from docs.links import HEADING, ROOT, without_code
from docs.navigation import entries, navigation
from docs.website import FROM_THE_TOP, INSTEAD

PAGE = ROOT / "docs" / "index.md"
BY_HAND = "<!-- Written by hand up to here; what follows is generated from zensical.toml. -->\n"


def home() -> str:
    lines = ["", "## All pages", ""]
    for section in navigation():
        if isinstance(section, dict):
            ((name, pages),) = section.items()
            lines.append(f"- {name}: {', '.join(link(page) for page in entries(pages))}")
    before = PAGE.read_text(encoding="utf-8").partition(BY_HAND)[0].rstrip("\n")
    return "\n".join([before, "", BY_HAND.rstrip("\n"), *lines, ""])


def link(page: str) -> str:
    """Return a link to a page of the site by its title, or by its name if the repository has no such page."""
    places = {there: own for own, there in (FROM_THE_TOP | INSTEAD).items()}
    own = Path(places.get(page, f"docs/{page}"))
    target = os.path.relpath(ROOT / own, PAGE.parent)
    return f"[{title(ROOT / own) if own.suffix == '.md' else Path(page).stem.capitalize()}]({target})"


def title(page: Path) -> str:
    text = page.read_text(encoding="utf-8") if page.is_file() else ""  # `misplaced` reports a missing one
    heading = HEADING.search(without_code(text))
    return text[heading.start(1) : heading.end(1)] if heading else page.stem
