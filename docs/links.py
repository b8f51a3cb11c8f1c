"""The links of a page, and which of them lead nowhere."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
HEADING = re.compile(r"(?m)^#+ (.+)$")
CODE = re.compile(r"(?ms)^ *```.*?^ *```$|`[^`\n]+`")


def broken_links(page: Path) -> list[str]:
    found = []
    for link in LINK.finditer(without_code(page.read_text(encoding="utf-8"))):
        target, _, anchor = link["target"].partition("#")
        if "://" in target:
            continue
        file = (page.parent / target).resolve() if target else page
        if not file.exists():
            found.append(f"{page.relative_to(ROOT)} links to {target}, which is not there")
        elif anchor and anchor not in anchors(file):
            found.append(f"{page.relative_to(ROOT)} links to {link['target']}, and there is no such heading")
    return found


def anchors(page: Path) -> set[str]:
    text = page.read_text(encoding="utf-8")
    headings = HEADING.finditer(without_code(text))
    return {slug(text[heading.start(1) : heading.end(1)]) for heading in headings}


def without_code(text: str) -> str:
    """The same text with as many blanks where it has code, so that every position stays."""
    return CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)


def slug(heading: str) -> str:
    """The anchor of a heading, as the code host makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
