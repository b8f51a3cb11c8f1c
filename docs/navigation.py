"""The navigation of the site in `zensical.toml`: it must list every page once, and nothing else."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator

from docs.links import ROOT
from docs.website import CONFIGURATION, FROM_THE_TOP, INSTEAD


def misplaced() -> list[str]:
    """Return the problems of the navigation, each with its fix."""
    pages = [str(page.relative_to(ROOT / "docs")) for page in sorted((ROOT / "docs").rglob("*.md"))]
    known = {*pages, *FROM_THE_TOP.values(), *INSTEAD.values()}
    listed = Counter(entries(navigation()))
    name = CONFIGURATION.name
    return [
        *(f"docs/{page} is in no navigation; add it to nav in {name}" for page in pages if page not in listed),
        *(f"{page} is in the navigation {count} times" for page, count in listed.items() if count > 1),
        *(f"{page} is in the navigation and does not exist; remove it from {name}" for page in listed.keys() - known),
    ]


def navigation() -> list[object]:
    settings = tomllib.loads(CONFIGURATION.read_text(encoding="utf-8"))
    return list(settings["project"]["nav"])


def entries(found: object) -> Iterator[str]:
    """Yield the pages of a part of the navigation, at any depth."""
    match found:
        case str():
            yield found
        case list():
            for entry in found:
                yield from entries(entry)
        case dict():
            for entry in found.values():
                yield from entries(entry)
        case _:
            raise TypeError(f"{found!r} is not part of a navigation")
