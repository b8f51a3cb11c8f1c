"""Whatever a page shows to be run is run: by a test of the page's own, with all how-to pages, or here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.links import without_code
from tests.conftest import ROOT
from tests.docs.pages import Command, Diff, Example, blocks, run_command, run_example
from tests.docs.test_reference import is_a_test

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"(?m)^(?P<indent> *)```(?P<language>\S*)$")
RUN = {"python", "console", "diff"}
SHOWN = {
    "text": "what is printed, or a drawing",
    "json": "an answer, which tests of the command line compare",
    "toml": "settings, which tests/docs/test_reference.py reads",
    "yaml": "a file of another program; those of CI are compared and run by tests/docs/test_ci.py",
    "groovy": "a file beside the page, which tests/docs/test_ci.py compares and runs",
    "proto": "types, which nothing but the gate runs",
    "pyi": "signatures, generated from the code",
}
"""Languages of blocks that nobody can run as they are, and what they are."""

ON_A_TERMINAL = {
    "catalog sql -s /srv/catalog": "tests/cli/test_sql.py::test_the_shell_asks_until_its_person_leaves",
}
"""Commands that somebody talks with, and the test that does."""


def own_test(page: Path) -> Path | None:
    """The file of tests that runs a page: one by its name, or that of all how-to pages."""
    found = ROOT / "tests" / "docs" / f"test_{page.stem.lower().replace('-', '_')}.py"
    if found.is_file():
        return found
    return ROOT / "tests" / "docs" / "test_howto.py" if page.parent.name == "howto" else None


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page) and own_test(page) is None], ids=name_of)
def test_a_page_without_a_test_of_its_own_works_as_written(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an empty folder, from top to bottom. A page that needs more has a test by its name."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    places = {"/var/lib/": f"{tmp_path}/", "/srv/": f"{tmp_path}/"}
    for block in blocks(page):
        match block:
            case Example():
                run_example(block, names, places)
            case Command():
                run_command(block, tmp_path, places)
            case Diff():
                pytest.fail(f"{name_of(page)} shows a diff, and has no test that applies it")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_is_run_or_cannot_be(page: Path) -> None:
    """None is written in a way that its test would not see."""
    text = page.read_text(encoding="utf-8")
    opening = list(FENCE.finditer(text))[::2]
    languages = [fence["language"] for fence in opening]
    assert [found for found in languages if found not in RUN | SHOWN.keys()] == [], "write a command as `console`"
    seen = blocks(page)
    assert sum(isinstance(block, Example) for block in seen) == languages.count("python")
    assert sum(isinstance(block, Diff) for block in seen) == languages.count("diff")
    assert len({block.where for block in seen if isinstance(block, Command)}) == languages.count("console")
    begun = re.findall(r"(?m)^```text\n\$ (.*)$", text)
    assert [line for line in begun if line not in ON_A_TERMINAL] == [], "what begins with a command is of `console`"
    assert all(is_a_test(ON_A_TERMINAL[line]) for line in begun)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page) and own_test(page)], ids=name_of)
def test_a_test_of_a_page_goes_over_it(page: Path) -> None:
    """By the page's name, or by that of its folder; and it runs every kind of block that the page has."""
    test = own_test(page)
    assert test is not None
    source = test.read_text(encoding="utf-8")
    assert f'"{page.name}"' in source or '"howto"' in source
    kinds = {type(block) for block in blocks(page)}
    assert Example not in kinds or "run_example(" in source
    assert Command not in kinds or "run_command(" in source


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_lists_are_written_so_that_the_site_sees_them(page: Path) -> None:
    """An empty line before one, and four spaces before what is below an item."""
    lines = without_code(page.read_text(encoding="utf-8")).splitlines()
    item = re.compile(r" *(-|\d+\.) ")
    shallow = [line for line in lines if re.match(r" {1,3}(-|\d+\.) ", line)]
    is_inside, glued = False, []
    for before, line in zip(["", *lines], lines, strict=False):
        if item.match(line) and before.strip() and not is_inside and not before.startswith(" "):
            glued.append(line)
        is_inside = bool(item.match(line)) or (is_inside and (line.startswith(" ") or not line.strip()))
    assert (shallow, glued) == ([], [])
