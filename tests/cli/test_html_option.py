"""`--html`: what a command finds, also as a page, and nothing else about it changes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import html5lib
import pytest

from catalog.cli.answer import ExitCode
from catalog.cli.commands import debug_stats
from catalog.cli.context import StoreTarget
from tests.cli.commands import bytes_of, call, complaint, fail, text
from tests.cli.conftest import CURRENT, Stores
from tests.cli.html.made_pages import bad_rows
from tests.cli.terminal import variables
from tests.tools.upgrade_check.checks import insert

_LOADED = """
import json, sys
from catalog.cli.app import run
from catalog.cli.main_group import root
ended = run(root, sys.argv[1:])
print(json.dumps([ended, sorted(sys.modules)]), file=sys.stderr)
"""


def test_statistics_are_written_as_a_page_too(store_of: Stores, tmp_path: Path) -> None:
    """The answer is the same and says where the page is; the page of before is replaced."""
    store, page = store_of(), tmp_path / "page.html"
    page.write_text("before")
    told = call("debug", "stats", "--store", store, "--html", page, "--shape")
    assert told == {**call("debug", "stats", "--store", store, "--shape"), "page": str(page)}
    written = page.read_text(encoding="utf-8")
    assert written.startswith("<!doctype html>")
    assert str(store) in written
    assert all(f'<th scope="row">{own["collection"]}</th>' in written for own in told["collections"])
    assert "What rows are like" in written
    assert text("debug", "stats", "--store", store, "--html", page).endswith(f"the page was written to {page}\n")
    assert "What rows are like" not in page.read_text(encoding="utf-8")


def test_what_was_measured_over_time_is_drawn(store_of: Stores, tmp_path: Path) -> None:
    """A dot for each measurement of each collection and of all together; where there is none that is said."""
    store, made_up, page = store_of(), tmp_path / "made up", tmp_path / "page.html"
    call("debug", "compact", "--store", store)
    told = call("debug", "stats", "--store", store, "--html", page)
    times = {own["measured_at"] for own in told["measures"]}
    assert len(times) >= 2
    document = html5lib.parse(page.read_text(encoding="utf-8"), namespaceHTMLElements=False)
    dots = [len(list(own.iterfind(".//{*}circle"))) for own in document.iterfind(".//figure[@class='trend']")]
    assert dots[:2] == [len(times)] * 2
    assert sum(dots[2::2]) == sum(dots[3::2]) == len(told["measures"])
    call("debug", "generate", "--version", str(CURRENT), "--rows", "20", "--store", made_up)
    assert call("debug", "stats", "--store", made_up, "--html", page)["measures"] == []
    assert "There are no measurements to show." in page.read_text(encoding="utf-8")


def test_a_check_is_written_as_a_page_too(store_of: Stores, tmp_path: Path) -> None:
    """Of all stores that it was about, whatever came of each; the exit code is that of the check."""
    good, bad, none, page = store_of(21), store_of(21), tmp_path / "none", tmp_path / "page.html"
    insert(bad, bad_rows())
    before = bytes_of(good), bytes_of(bad)
    assert call("debug", "upgrade-check", good, "--html", page)["page"] == str(page)
    assert "Can be upgraded" in page.read_text(encoding="utf-8")
    failed = fail("debug", "upgrade-check", good, bad, none, "--html", page)
    assert (failed.code, failed.data["page"]) == ("UpgradeCheckError", str(page))
    written = page.read_text(encoding="utf-8")
    assert "1 of 3 stores can be upgraded" in written
    assert all(str(store) in written for store in (good, bad, none))
    assert (bytes_of(good), bytes_of(bad)) == before
    assert f"the page was written to {page}\n" in text(
        "debug", "upgrade-check", bad, "--html", page, expect=ExitCode.FAILED
    )


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_done(store_of: Stores, tmp_path: Path) -> None:
    """Even before it is known whether there is a store at all."""
    for place in (tmp_path, tmp_path / "none" / "page.html"):
        for words in (("debug", "stats", "--store", tmp_path / "no store"), ("debug", "upgrade-check", store_of())):
            what, why, fix = complaint(*words, "--html", place, expect=ExitCode.USAGE)
            assert what.startswith(f"no page can be written to '{place}': ")
            assert "--html" in why
            assert "folder" in fix


def test_a_command_that_fails_leaves_the_page_of_before(store_of: Stores, tmp_path: Path) -> None:
    """And no draft of another."""
    store_of()
    page = tmp_path / "page.html"
    page.write_text("before")
    before = bytes_of(tmp_path)
    for words in (("debug", "stats", "--store", tmp_path / "none"), ("debug", "upgrade-check", tmp_path / "none")):
        assert fail(*words, "--html", page).code == "NotAStoreError"
    assert bytes_of(tmp_path) == before


def test_what_was_found_is_told_though_the_page_could_not_be_written(
    store_of: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder goes while the store is read."""
    store, folder = store_of(), tmp_path / "folder"
    folder.mkdir()

    measure = debug_stats.measure

    def remove_folder_and_measure(target: StoreTarget, *, shape: bool, as_of: int | None) -> debug_stats.Stats:
        shutil.rmtree(folder, ignore_errors=True)
        return measure(target, shape=shape, as_of=as_of)

    monkeypatch.setattr(debug_stats, "measure", remove_folder_and_measure)
    failed = fail("debug", "stats", "--store", store, "--html", folder / "page.html")
    assert (failed.code, failed.data["page"]) == ("PageError", None)
    assert failed.data["collections"] == call("debug", "stats", "--store", store)["collections"]


def test_no_page_shows_a_secret(store_of: Stores, tmp_path: Path) -> None:
    """As little as the terminal does."""
    secret = "of-nobody"  # noqa: S105
    store, page = shutil.copytree(store_of(), tmp_path / secret), tmp_path / "page.html"
    call("debug", "stats", "--store", store, "--html", page, "--storage-option", f"aws_secret_access_key={secret}")
    written = page.read_text(encoding="utf-8")
    assert secret not in written
    assert f"{tmp_path}/********" in written


def test_a_page_of_statistics_needs_no_spark(store_of: Stores, tmp_path: Path) -> None:
    """And templates are loaded only where a page is asked for."""
    words = ["--format", "json", "debug", "stats", "--store", str(store_of())]
    loaded = []
    for more in ([], ["--html", str(tmp_path / "page.html")]):
        command = [sys.executable, "-c", _LOADED, *words, *more]
        done = subprocess.run(command, env=variables(), capture_output=True, text=True, check=True)
        ended, modules = json.loads(done.stderr.splitlines()[-1])
        assert ended == ExitCode.DONE
        loaded.append({name.partition(".")[0] for name in modules})
    plain, paged = loaded
    assert "jinja2" not in plain
    assert "jinja2" in paged
    assert paged.isdisjoint({"pyspark", "py4j", "pandas"})
