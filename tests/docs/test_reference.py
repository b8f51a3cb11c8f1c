"""The reference pages are generated from what the code is, and what is written by hand names what is there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from catalog import errors
from catalog.cli.answer import ExitCode
from catalog.cli.settings import read_settings
from catalog.errors import CatalogError
from docs.writers.commands import BY_HAND, command_line, commands
from docs.writers.errors import drawn_errors
from tests.conftest import ROOT
from tests.docs.pages import cited_tests

COMMAND_LINE = ROOT / "docs" / "reference" / "cli.md"
COMPARISON = ROOT / "docs" / "comparison.md"
TEXT = COMMAND_LINE.read_text(encoding="utf-8")


def test_the_tree_of_errors_is_drawn_as_the_classes_are() -> None:
    """Each error stands below the one it is caught by, and nobody is told nothing to do."""
    drawn = drawn_errors()
    classes = [getattr(errors, name) for name in errors.__all__]
    assert {name: parent for name, (parent, _) in drawn.items()} == {
        found.__name__: "" if found is CatalogError else found.__bases__[0].__name__ for found in classes
    }
    assert [name for name, (_, caller) in drawn.items() if not caller] == ["CatalogError"]


def test_the_page_of_the_command_line_is_what_the_code_says() -> None:
    """What is written by hand after it stays as it is."""
    assert command_line() == TEXT
    assert TEXT.partition(BY_HAND)[2].startswith("\n## Secrets\n")


def test_usage_fits_on_a_screen_of_80_columns() -> None:
    """Nobody has to scroll to the right."""
    blocks = re.findall(r"(?ms)^```text\n(.*?)^```$", TEXT)
    assert len(blocks) == len(dict(commands())) + 1
    assert [line for block in blocks for line in block.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("code", list(ExitCode))
def test_every_exit_code_is_explained(code: ExitCode) -> None:
    """Each in a row of the table."""
    assert f"\n| {int(code)} |" in TEXT


def test_every_variable_that_is_read_is_explained() -> None:
    """Those that the command line looks for by name."""
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "catalog" / "cli").glob("*.py"))
    assert set(re.findall(r"\bCATALOG_[A-Z_]*[A-Z]\b", sources)) <= set(re.findall(r"`(CATALOG_[A-Z_]+)`", TEXT))


def test_the_settings_that_are_shown_can_be_read(tmp_path: Path) -> None:
    """The example works, and says what it is shown for."""
    (shown,) = re.findall(r"(?ms)^```toml\n(.*?)^```$", TEXT)
    assert tomllib.loads(shown)
    (tmp_path / "catalog.toml").write_text(shown, encoding="utf-8")
    found = read_settings({"env": "production"}, {"PRODUCTION_KEY": "geheim"}, tmp_path)
    assert (found["store"], found["lock_timeout"]) == ("s3://bucket/catalog", 120.0)
    assert found.storage_options["aws_secret_access_key"] == "geheim"  # noqa: S105 - no secret


def test_every_test_that_a_page_names_is_there() -> None:
    """Whoever wants to see what shows something finds it."""
    named = cited_tests(COMPARISON)
    assert len(named) > 40
    assert [f"{path}::{name}" for path, name in named if not is_a_test(f"{path}::{name}")] == []
    rows = [line for line in COMPARISON.read_text(encoding="utf-8").splitlines() if "tests/" in line]
    assert [row for row in rows if row.count("tests/") != len(re.findall(r"`tests/[\w/]+\.py::test_\w+`", row))] == []


def is_a_test(name: str) -> bool:
    path, _, function = name.partition("::")
    file = ROOT / path
    return file.is_file() and f"\ndef {function}(" in file.read_text(encoding="utf-8")
