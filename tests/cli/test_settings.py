"""Where settings come from: the first that says something stands, and `config show` says which that was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from catalog.cli.settings import read_settings
from catalog.engine.base.duration import parse_seconds
from catalog.errors import SettingError
from catalog.errors.redaction import REDACTED

FILE = """
[tool.catalog]
store = "from-file"
lock_timeout = "2m"
storage_options = { aws_region = "file", aws_secret_access_key = "${SECRET}" }

[tool.catalog.env.prod]
store = "s3://prod/catalog"
storage_options = { aws_region = "prod" }
"""
VARIABLES = {"SECRET": "geheim"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text(FILE, encoding="utf-8")
    return tmp_path


def _read(folder: Path, flags: dict[str, Any] | None = None, **variables: str) -> dict[str, tuple[Any, str]]:
    settings = read_settings(flags or {}, {**VARIABLES, **variables}, folder)
    return {name: (own.value, own.source) for name, own in settings.all.items()}


def test_a_flag_stands_before_a_variable_before_an_environment_before_the_file(folder: Path) -> None:
    """Each level is passed over only if it says nothing."""
    assert _read(folder)["store"] == (str(folder / "from-file"), "[tool.catalog] in pyproject.toml")
    in_prod = _read(folder, {"env": "prod"})
    assert in_prod["store"] == ("s3://prod/catalog", "[tool.catalog.env.prod] in pyproject.toml")
    assert in_prod["lock_timeout"] == (120.0, "[tool.catalog] in pyproject.toml")
    assert _read(folder, {"env": "prod"}, CATALOG_STORE="var")["store"] == ("var", "CATALOG_STORE")
    assert _read(folder, {"store": "flag"}, CATALOG_STORE="var")["store"] == ("flag", "--store")
    assert _read(folder)["timeout"] == (None, "default")


def test_storage_options_are_settings_each_of_its_own(folder: Path) -> None:
    """One option of an environment does not hide the others of the file."""
    found = _read(folder, {"env": "prod"}, CATALOG_STORAGE_OPTIONS='{"aws_endpoint": "x"}')
    assert found["storage_options.aws_region"] == ("prod", "[tool.catalog.env.prod] in pyproject.toml")
    assert found["storage_options.aws_secret_access_key"][0] == "geheim"
    assert found["storage_options.aws_endpoint"] == ("x", "CATALOG_STORAGE_OPTIONS")


def test_secrets_are_known_by_their_names(folder: Path) -> None:
    """They are shown to nobody, and every text is searched for them."""
    settings = read_settings({}, VARIABLES, folder)
    assert settings.secrets == ("geheim",)
    assert settings.all["storage_options.aws_secret_access_key"].shown == REDACTED
    assert settings.all["storage_options.aws_region"].shown == "file"


def test_the_nearest_file_is_found_from_below(folder: Path) -> None:
    """A folder inside of a project is part of it; a nearer catalog.toml stands before the pyproject.toml above."""
    below = folder / "a" / "b"
    below.mkdir(parents=True)
    (below / "pyproject.toml").write_text("[tool.other]\n", encoding="utf-8")
    assert _read(below)["store"][0] == str(folder / "from-file")
    (below / "catalog.toml").write_text('[tool.catalog]\nstore = "nearer"\n', encoding="utf-8")
    assert _read(below)["store"] == (str(below / "nearer"), "[tool.catalog] in catalog.toml")
    named = {"config_file": str(folder / "pyproject.toml")}
    assert _read(below, named)["store"][0] == str(folder / "from-file")


def test_a_doubled_dollar_is_one(tmp_path: Path) -> None:
    """What looks like a variable can be said."""
    (tmp_path / "catalog.toml").write_text('[tool.catalog]\nstore = "s3://b/$${x}"\n', encoding="utf-8")
    assert _read(tmp_path)["store"][0] == "s3://b/${x}"


@pytest.mark.parametrize(
    ("text", "flags", "variables", "told"),
    [
        ("[tool.catalog]\nstor = 'x'", {}, {}, "did you mean store?"),
        ("[tool.catalog]\nstore = 3", {}, {}, "store under [tool.catalog] in catalog.toml: 3 is not valid"),
        ("[tool.catalog]\nstore = '${NOT_SET}'", {}, {}, "it refers to ${NOT_SET}, which is not set"),
        ("[tool.catalog]\nstorage_options = 3", {}, {}, "it is not a table of options"),
        ("[tool.catalog]\nstorage_options = { a = [1] }", {}, {}, "it is not a text"),
        ("[tool.catalog", {}, {}, "it is not valid TOML"),
        ("[tool.catalog]\nlock_timeout = 'soon'", {}, {}, "a duration is a number of seconds"),
        ("[tool.catalog]\nstore = 'x'", {"env": "prod"}, {}, "catalog.toml has: none"),
        ("", {"deploy_generation": "-1"}, {}, "--deploy-generation: '-1' is not valid"),
        ("", {"config_file": "missing.toml"}, {}, "it cannot be read: No such file or directory"),
        ("[other]", {"config_file": "catalog.toml"}, {}, "it has no table [tool.catalog]"),
        ("", {}, {"CATALOG_TIMEOUT": "x"}, "CATALOG_TIMEOUT: 'x' is not valid"),
        ("", {}, {"CATALOG_STORAGE_OPTIONS": "x"}, "it is not a JSON object"),
        ("", {}, {"CATALOG_STORAGE_OPTIONS": "[]"}, "it is not a table of options"),
        ("", {}, {"CATALOG_FORMAT": "xml"}, "it must be text or json"),
    ],
)
def test_what_is_not_understood_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    flags: dict[str, Any],
    variables: dict[str, str],
    told: str,
) -> None:
    """A setting that was mistyped is never passed over: the error names the place."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "catalog.toml").write_text(text, encoding="utf-8")
    with pytest.raises(SettingError) as error:
        read_settings(flags, variables, tmp_path)
    assert told in str(error.value)


@pytest.mark.parametrize(("text", "expected"), [("90", 90.0), ("1.5s", 1.5), ("500ms", 0.5), ("5 m", 300.0), (3, 3.0)])
def test_durations_have_units(text: object, expected: float) -> None:
    """Seconds where none is given."""
    assert parse_seconds(text) == expected


def test_an_environment_without_a_file_is_refused(tmp_path: Path) -> None:
    """There is nowhere that it could be written."""
    with pytest.raises(SettingError, match=r"no file with \[tool.catalog\] was found"):
        read_settings({"env": "prod"}, {}, tmp_path)


def test_a_settings_file_without_its_table_is_refused(folder: Path) -> None:
    """A catalog.toml is there for nothing else: the store of a folder above is not taken instead."""
    (folder / "a").mkdir()
    (folder / "a" / "catalog.toml").write_text('store = "here"\n', encoding="utf-8")
    with pytest.raises(SettingError, match=r"it has no table \[tool.catalog\]"):
        read_settings({}, VARIABLES, folder / "a")
