"""The builder of the documentation site in `site/`; it downloads nothing.

The pages are laid out in a scratch folder first: those of the repository's top folder beside those of `docs/`, with
their links rewritten. A warning of the site generator is an error.
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
"""Pages of the top folder, and their paths on the site."""
INSTEAD = {"README.md": "index.md", "proto/objects.proto": "reference/types.md"}
"""Files that links lead to, and the pages of the site that replace them."""


def main() -> int:
    site = ROOT / "site"
    problems = build(site)
    print(problems or f"docs: the site is in {site.relative_to(ROOT)}/, begin with {site.name}/index.html")
    return 1 if problems else 0


def build(site: Path) -> str:
    """Build the site; return the problems as text, empty if there are none."""
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
            output = COLOUR.sub("", done.stdout).partition("Traceback")[0]
            return f"docs: the site cannot be built\n{output.rstrip()}"
        shutil.rmtree(site, ignore_errors=True)
        shutil.copytree(folder / "site", site)
    return ""


def lay_out(folder: Path) -> None:
    """Copy the pages and their images as the site needs them."""
    shutil.copytree(ROOT / "docs", folder, ignore=shutil.ignore_patterns("*.py", "__pycache__", "writers"))
    for page in folder.rglob("*.md"):
        own = Path("docs", page.relative_to(folder))
        page.write_text(relinked(page.read_text(encoding="utf-8"), own), encoding="utf-8")
    for top, name in FROM_THE_TOP.items():
        (folder / name).write_text(relinked((ROOT / top).read_text(encoding="utf-8"), Path(top)), encoding="utf-8")
    (folder / "reference" / "types.md").write_text(types(), encoding="utf-8")


def relinked(text: str, own: Path) -> str:
    """Return a page with the links of the site; `own` is its path in the repository."""
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
    """Return the path on the site of a file of the repository."""
    there = (FROM_THE_TOP | INSTEAD).get(str(own))
    if there is not None:
        return Path(there)
    return own.relative_to("docs") if own.is_relative_to("docs") else Path("..", own)


if __name__ == "__main__":
    sys.exit(main())
