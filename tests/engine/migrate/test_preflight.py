"""What an upgrade needs is looked at before anything is touched."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from catalog import open_catalog
from catalog.errors import PreflightError
from tests.engine.migrate.stores import state_of

Stores = Callable[[int], Path]


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    for name in ("JAVA_HOME", "SPARK_REMOTE"):
        monkeypatch.delenv(name, raising=False)


def refused(store: Path) -> PreflightError:
    """The store is not opened, and nobody is fenced."""
    before, files = state_of(store), sorted(store.rglob("*"))
    with pytest.raises(PreflightError) as caught:
        open_catalog(store)
    assert (state_of(store), sorted(store.rglob("*"))) == (before, files)
    return caught.value


def test_an_upgrade_for_which_the_disk_is_too_small_does_not_begin(
    copy_of: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says how much is needed, and how much there is."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: SimpleNamespace(total=1, used=1, free=0))
    assert "0 MiB are free" in refused(copy_of(17)).what


@pytest.mark.usefixtures("no_java")
def test_an_upgrade_that_needs_spark_does_not_begin_without_java(copy_of: Stores) -> None:
    """It says what to install."""
    error = refused(copy_of(17))
    assert "there is no Java" in error.what
    assert "JAVA_HOME" in error.next


def test_a_java_home_where_no_java_is_does_not_count(copy_of: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark would look nowhere else, so the Java on the path does not help either."""
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    error = refused(copy_of(20))
    assert "there is no /nowhere/bin/java" in error.what
    assert "unset JAVA_HOME" in error.next


@pytest.mark.usefixtures("no_java")
def test_an_upgrade_that_rewrites_nothing_needs_no_java(copy_of: Stores) -> None:
    """A wire compatible step is one commit."""
    with open_catalog(copy_of(21)) as catalog:
        assert catalog.version == 22
