"""The links and file names of a page, and those of them that lead nowhere."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
HEADING = re.compile(r"(?m)^#+ (.+)$")
NAMED = re.compile(r"`(?P<path>(?:catalog|build_tools|proto|docs|tests|benchmarks)/[\w./@-]*)`")
"""A file or folder of the repository in a page."""
PLACEHOLDER = re.compile(r"v\d+_to_v\d+|vN|NAME|catalog/(generated|_gate)")
CODE = re.compile(r"(?ms)^ *```.*?^ *```$|`[^`\n]+`")


def broken_links(page: Path) -> list[str]:
    """Return a problem for each link that has no target."""
    found = []
    for link in LINK.finditer(without_code(page.read_text(encoding="utf-8"))):
        target, _, anchor = link["target"].partition("#")
        if "://" in target:
            continue
        file = (page.parent / target).resolve() if target else page
        if not file.exists():
            found.append(f"{page.relative_to(ROOT)} links to {target}, which does not exist")
        elif anchor and anchor not in anchors(file):
            found.append(f"{page.relative_to(ROOT)} links to {link['target']}, which has no such heading")
    return found


def missing_files(page: Path) -> list[str]:
    """Return a problem for each file of the repository that a page names and that does not exist."""
    paths = [found["path"] for found in NAMED.finditer(page.read_text(encoding="utf-8"))]
    return [
        f"{page.relative_to(ROOT)} names {path}, which does not exist"
        for path in paths
        if not PLACEHOLDER.search(path) and not (ROOT / path).exists()
    ]


def anchors(page: Path) -> set[str]:
    text = page.read_text(encoding="utf-8")
    headings = HEADING.finditer(without_code(text))
    return {slug(text[heading.start(1) : heading.end(1)]) for heading in headings}


def without_code(text: str) -> str:
    """Return the text with code replaced by blanks, so that every position stays."""
    return CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)


def slug(heading: str) -> str:
    """Return the anchor of a heading, as the code host makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
