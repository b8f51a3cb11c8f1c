"""The links of a page, and which of them lead nowhere."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
HEADING = re.compile(r"(?m)^#+ (.+)$")


def broken_links(page: Path) -> list[str]:
    found = []
    for link in LINK.finditer(page.read_text(encoding="utf-8")):
        target, _, anchor = link["target"].partition("#")
        if target.startswith(("http://", "https://")):
            continue
        file = (page.parent / target).resolve() if target else page
        if not file.exists():
            found.append(f"{page.relative_to(ROOT)} links to {target}, which is not there")
        elif anchor and anchor not in {slug(heading) for heading in HEADING.findall(file.read_text(encoding="utf-8"))}:
            found.append(f"{page.relative_to(ROOT)} links to {link['target']}, and there is no such heading")
    return found


def slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
