"""A store whose builtins are behind: `ready` is said only when members can join, and `info` and `doctor` name it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from catalog import open_catalog
from catalog.cli.answer import ExitCode
from catalog.errors import UnmigratedBuiltinsError
from catalog.tools.generator import generate
from catalog.upgrade import PROJECT
from tests.cli.commands import bytes_of, call, fail, in_process
from tests.cli.conftest import CURRENT, Stores


@pytest.fixture
def behind(tmp_path: Path) -> Path:
    """A store at the newest version whose builtins no leader has migrated, as a bare upgrade leaves it."""
    generate(PROJECT, tmp_path / "store", CURRENT, 50, 1)
    return tmp_path / "store"


def is_ready(path: Path) -> bool:
    return path.exists() and json.loads(path.read_text(encoding="utf-8"))["state"] == "ready"


def test_a_member_joins_after_apply(store_of: Stores, tmp_path: Path) -> None:
    """Ready means that members can join: apply migrates the builtins too."""
    store, ready = store_of(21), tmp_path / "ready"
    call("apply", "--store", store, "--ready-file", ready)
    assert is_ready(ready)
    open_catalog(store, "member").close()
    call("info", "--check", "--store", store)
    assert "problem" not in {line["grade"] for line in call("doctor", "--store", store)["lines"]}


def test_a_store_whose_builtins_are_behind_is_named(behind: Path) -> None:
    """By info --check and by doctor, with exit code 3; nothing is changed."""
    before = bytes_of(behind)
    with pytest.raises(UnmigratedBuiltinsError):
        open_catalog(behind, "member")
    for words in (("info", "--check"), ("doctor",)):
        failed = fail(*words, "--store", behind, expect=ExitCode.PENDING)
        assert failed.code == "UnmigratedBuiltinsError"
    assert bytes_of(behind) == before


def test_an_apply_that_does_not_reach_the_builtins_is_not_ready(behind: Path, tmp_path: Path) -> None:
    """A version below that of the store leaves the builtins alone; without one they are migrated."""
    ready = tmp_path / "ready"
    assert in_process("apply", "--until", str(CURRENT - 1), "--store", behind, "--ready-file", ready).exit == 0
    assert not is_ready(ready)
    applied = call("apply", "--store", behind, "--ready-file", ready)
    assert (applied["version_before"], applied["version"], applied["steps"]) == (CURRENT, CURRENT, [])
    assert applied["builtins"] == str(PROJECT.build)
    assert is_ready(ready)
    open_catalog(behind, "member").close()
    epoch = call("debug", "epoch", "--store", behind)["epoch"]
    call("apply", "--store", behind)
    assert call("debug", "epoch", "--store", behind)["epoch"] == epoch, "there was nothing to do"
