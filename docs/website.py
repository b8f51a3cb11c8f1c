"""Builds the site of the documentation in `site/`: every page, from packages alone, with nothing fetched.

The pages are laid out in a scratch folder first, as the site has them: those of the repository's top folder beside
those of `docs/`, with their links rewritten. What the builder says is a warning is an error.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from docs.links import LINK, ROOT, without_code
from docs.writers.types import types

CONFIGURATION = ROOT / "zensical.toml"
COLOUR = re.compile(r"\x1b\[[\d;]*m")
FROM_THE_TOP = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Pages of the top folder, and where the site has them."""
INSTEAD = {"README.md": "index.md", "proto/objects.proto": "reference/types.md"}
"""Files that links lead to, and the pages that the site has in their place."""


def main() -> int:
    site = ROOT / "site"
    problems = build(site)
    print(problems or f"docs: the site is in {site.relative_to(ROOT)}/, begin with {site.name}/index.html")
    return 1 if problems else 0


def build(site: Path) -> str:
    """Make the site anew; answer what is wrong with it, if anything is."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        lay_out(folder / "docs")
        shutil.copy(CONFIGURATION, folder)
        done = subprocess.run(
            [sys.executable, "-m", "zensical", "build", "--strict"],
            cwd=folder,
            env={**os.environ, "NO_COLOR": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0 or "No issues found" not in done.stdout:
            told = COLOUR.sub("", done.stdout).partition("Traceback")[0]
            return f"docs: the site cannot be built\n{told.rstrip()}"
        shutil.rmtree(site, ignore_errors=True)
        shutil.copytree(folder / "site", site)
    return ""


def lay_out(folder: Path) -> None:
    """The pages as the site has them, and what they show."""
    shutil.copytree(ROOT / "docs", folder, ignore=shutil.ignore_patterns("*.py", "__pycache__", "writers"))
    for page in folder.rglob("*.md"):
        own = Path("docs", page.relative_to(folder))
        page.write_text(relinked(page.read_text(encoding="utf-8"), own), encoding="utf-8")
    for top, name in FROM_THE_TOP.items():
        (folder / name).write_text(relinked((ROOT / top).read_text(encoding="utf-8"), Path(top)), encoding="utf-8")
    (folder / "reference" / "types.md").write_text(types(), encoding="utf-8")


def relinked(text: str, own: Path) -> str:
    """A page with its links as they are on the site; `own` is where the repository has it."""
    folder = place_of(own).parent
    code = without_code(text)
    pieces, end = [], 0
    for link in LINK.finditer(code):
        target, hash_sign, anchor = link["target"].partition("#")
        if target and "://" not in target:
            there = place_of(Path(os.path.normpath(own.parent / target)))
            pieces += [text[end : link.start("target")], os.path.relpath(there, folder), hash_sign, anchor]
            end = link.end("target")
    return "".join([*pieces, text[end:]])


def place_of(own: Path) -> Path:
    """Where the site has a file of the repository."""
    there = (FROM_THE_TOP | INSTEAD).get(str(own))
    if there is not None:
        return Path(there)
    return own.relative_to("docs") if own.is_relative_to("docs") else Path("..", own)


if __name__ == "__main__":
    sys.exit(main())
