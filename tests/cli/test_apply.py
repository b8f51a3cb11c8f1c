"""start, init, apply, undo, abort: what takes a store to a version, as it is told to programs."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from catalog import open_catalog
from catalog.cli.answer import ExitCode
from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.protocol import LogState
from catalog.errors import FencedError
from tests.cli.commands import bytes_of, call, complaint, fail, text
from tests.cli.conftest import CURRENT, Stores, on_spark
from tests.cli.histories import pretend_version
from tests.engine.migrate.stores import findings_of, rows_of, state_of, version_of
from tests.upgrade.golden import INITIALISED_TS


def test_a_start_makes_a_store_where_there_is_none(tmp_path: Path) -> None:
    """It is initialised at the current version, and led once."""
    told = call("start", "--store", tmp_path / "new")
    assert (told["version_before"], told["version"], told["steps"]) == (None, CURRENT, [])
    assert (told["mode"], told["deploy_generation"], told["epoch"]) == ("leader", 0, 1)
    assert version_of(tmp_path / "new") == CURRENT


def test_a_start_of_a_store_that_is_up_to_date_fences_and_does_no_more(store_of: Stores) -> None:
    """The epoch goes up by one; every row stays."""
    store = store_of()
    before = rows_of(store)
    assert "is up to date at version" in text("start", "--store", store)
    told = call("start", "--store", store, "--deploy-generation", "3")
    assert (told["version_before"], told["version"], told["steps"]) == (CURRENT, CURRENT, [])
    assert (told["deploy_generation"], told["epoch"]) == (3, 3)
    assert rows_of(store) == before


def test_a_start_that_finds_nothing_to_do_reads_no_state_twice(
    store_of: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither to tell the version before, nor to find what changed since builtins were brought up to date."""
    store, read_state, read = store_of(), DeltaLog.state, list[tuple[str, int]]()
    call("start", "--store", store)

    def state(log: DeltaLog, version: int) -> LogState:
        read.append((log.uri, version))
        return read_state(log, version)

    monkeypatch.setattr(DeltaLog, "state", state)
    call("start", "--store", store)
    assert f"{store}/stash" in dict(read)
    assert sorted(read) == sorted(set(read))


def test_a_lower_generation_is_refused_and_writes_nothing(store_of: Stores) -> None:
    """A deployment that was replaced does not come back."""
    store = store_of()
    call("start", "--store", store, "--deploy-generation", "3")
    before = bytes_of(store)
    failed = fail("start", "--store", store, "--deploy-generation", "2", expect=ExitCode.HELD)
    assert failed.code == "StaleGenerationError"
    assert bytes_of(store) == before


def test_a_live_leader_is_waited_for_and_then_replaced(store_of: Stores) -> None:
    """For as long as was said: with a time limit of its own, whoever waits gives up and leaves the leader alone."""
    store = store_of()
    with open_catalog(store) as leader:
        before = state_of(store).fence
        assert call("debug", "epoch", "--store", store)["sign"] == "beating"
        failed = fail("start", "--store", store, "--timeout", "500ms", expect=ExitCode.HELD)
        assert failed.code == "TimedOutError"
        assert state_of(store).fence == before
        leader.refresh()
        assert call("start", "--store", store, "--lock-timeout", "0")["epoch"] == before.epoch + 1
        with pytest.raises(FencedError):
            leader.refresh()


@on_spark
def test_a_start_upgrades_an_older_store(store_of: Stores, spark: SparkSession) -> None:
    """Every step is told with its rows; afterwards there is nothing to do and nothing wrong."""
    del spark
    store = store_of(19)
    told = call("start", "--store", store)
    assert (told["version_before"], told["version"]) == (19, CURRENT)
    assert [step["name"] for step in told["steps"]] == ["v19_to_v20", "v20_to_v21", "v21_to_v22"]
    assert all(step["rows_before"] > 0 and step["seconds"] > 0 for step in told["steps"])
    assert findings_of(store) == []
    assert call("info", "--store", store, "--check")["pending"] == 0


@on_spark
def test_a_read_only_start_tries_the_upgrade_and_leaves_the_store(store_of: Stores, spark: SparkSession) -> None:
    """Migrations are pending, and that is said by the exit code; the store is the same byte for byte."""
    del spark
    store = store_of(19)
    before = bytes_of(store)
    failed = fail("start", "--read-only", "--store", store, expect=ExitCode.PENDING)
    assert (failed.data["version_before"], failed.data["version"]) == (19, CURRENT)
    assert [step["version"] for step in failed.data["steps"]] == [20, 21, 22]
    assert bytes_of(store) == before


def test_a_read_only_start_of_a_store_that_is_up_to_date_is_done(store_of: Stores, tmp_path: Path) -> None:
    """Nobody is fenced and nothing written; where there is no store, none is made."""
    store = store_of()
    before = bytes_of(store)
    assert call("start", "--read-only", "--store", store)["mode"] == "read-only"
    assert bytes_of(store) == before
    assert fail("start", "--read-only", "--store", tmp_path / "none").code == "NotInitializedError"
    assert not (tmp_path / "none").exists()


def test_init_makes_a_store_once(tmp_path: Path) -> None:
    """Tried it writes nothing, and tells the rows that it writes then; the second time there is nothing to do."""
    store = tmp_path / "new"
    tried = call("init", "--dry-run", "--store", store)
    assert (tried["done"], tried["exists"], tried["version"]) == (False, False, CURRENT)
    assert not store.exists()
    assert "would be initialised at version" in text("init", "--dry-run", "--store", store)
    made = call("init", "--store", store)
    assert (made["done"], made["exists"]) == (True, True)
    lines = call("debug", "stats", "--as-of", str(INITIALISED_TS), "--store", store)["collections"]
    assert made["rows"] == tried["rows"] == {line["collection"]: line["rows"] for line in lines}
    before = bytes_of(store)
    again = call("init", "--store", store)
    assert (again["done"], again["exists"]) == (False, True)
    assert text("init", "--store", store).startswith("nothing to do: ")
    assert bytes_of(store) == before


def test_init_refuses_a_place_that_is_not_empty(tmp_path: Path) -> None:
    """What is there may be somebody's."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "file").write_text("text")
    before = bytes_of(tmp_path)
    assert fail("init", "--store", tmp_path / "theirs").code == "NotAStoreError"
    assert bytes_of(tmp_path) == before


def test_a_plan_writes_nothing(store_of: Stores) -> None:
    """Steps, forms, collections, files, rows and bytes are told, and the store is the same byte for byte."""
    store = store_of(19)
    before = bytes_of(store)
    told = call("apply", "--dry-run", "--store", store)
    assert (told["version"], told["until"]) == (19, CURRENT)
    assert [step["name"] for step in told["steps"]] == ["v19_to_v20", "v20_to_v21", "v21_to_v22"]
    forms = [work["form"] for step in told["steps"] for work in step["works"]]
    assert set(forms) >= {"per row", "frame", "wire compatible", "retire", "insert"}
    works = [work for step in told["steps"] for work in step["works"]]
    assert sum(work["rows"] for work in works) == told["rows_to_rewrite"] > 0
    assert sum(work["size"] for work in works) == told["bytes_to_rewrite"] > 0
    assert len(call("apply", "--dry-run", "--next", "--store", store)["steps"]) == 1
    assert len(call("apply", "--dry-run", "--until", "21", "--store", store)["steps"]) == 2
    shown = text("apply", "--dry-run", "--store", store)
    assert "would go from version 19 to 22; nothing was written" in shown
    assert bytes_of(store) == before


@on_spark
def test_migrations_are_applied_one_by_one_or_all(store_of: Stores, spark: SparkSession) -> None:
    """The next alone, those up to a version, and the rest; then there is nothing to do."""
    del spark
    store = store_of(19)
    first = call("apply", "--next", "--store", store)
    assert (first["version_before"], first["version"], first["current"]) == (19, 20, CURRENT)
    assert [step["name"] for step in first["steps"]] == ["v19_to_v20"]
    assert call("apply", "--until", "21", "--store", store)["version"] == 21
    assert call("apply", "--all", "--store", store)["version"] == CURRENT
    before = bytes_of(store)
    assert call("apply", "--store", store)["steps"] == []
    assert call("apply", "--dry-run", "--store", store)["steps"] == []
    assert bytes_of(store) == before
    assert findings_of(store) == []


def test_a_step_without_rows_to_rewrite_needs_no_spark(store_of: Stores) -> None:
    """A wire compatible one is a commit, and told like any other."""
    told = text("apply", "--store", store_of(21))
    assert "v21_to_v22" in told
    assert "went from version 21 to 22" in told


def test_what_is_to_be_applied_is_said_once(store_of: Stores) -> None:
    """--all, --next and --until exclude each other, and a version has to be one of this build's."""
    store = store_of(19)
    before = bytes_of(store)
    for words in (["--all", "--next"], ["--next", "--until", "20"], ["--all", "--until", "20"]):
        what, *_ = complaint("apply", *words, "--store", store, expect=ExitCode.USAGE)
        assert what == "--all, --next and --until exclude each other"
    for version in ("13", "23", "-1"):
        what, *_ = complaint("apply", "--until", version, "--store", store, expect=ExitCode.USAGE)
        assert what == f"there is no version {version} to apply migrations up to"
    assert call("apply", "--until", "18", "--store", store)["steps"] == []
    assert bytes_of(store) == before


def test_an_undo_gives_back_the_rows_of_before(store_of: Stores) -> None:
    """One step, or all down to a version; the version goes back with the rows."""
    original = rows_of(store_of(15))
    store = store_of(15, 18)
    assert call("undo", "--yes", "--store", store) == {
        "store": str(store),
        "version_before": 18,
        "version": 17,
        "steps": ["v17_to_v18"],
        "done": True,
    }
    assert call("undo", "--to", "15", "--yes", "--store", store)["steps"] == ["v16_to_v17", "v15_to_v16"]
    assert rows_of(store) == original
    assert findings_of(store) == []
    lines = {line["version"]: line["state"] for line in call("info", "--store", store)["versions"]}
    assert [lines[version] for version in (15, 16, 17, 18)] == ["INITIAL", "UNDONE", "UNDONE", "UNDONE"]


def test_what_was_undone_is_applied_only_when_asked_for(store_of: Stores) -> None:
    """Neither a start nor an apply does it by itself; `--reapply` does."""
    store = store_of(21, 22)
    call("undo", "--yes", "--store", store)
    before = bytes_of(store)
    for verb in ("start", "apply"):
        assert fail(verb, "--store", store, expect=ExitCode.PENDING).code == "UndoneError"
    assert bytes_of(store) == before
    assert call("apply", "--reapply", "--store", store)["version"] == 22
    call("undo", "--yes", "--store", store)
    assert call("start", "--reapply", "--store", store)["version"] == 22


def test_an_undo_that_cannot_be_fences_nobody(store_of: Stores) -> None:
    """A store that was initialised at its version has no step behind it; versions are named that are there."""
    store = store_of()
    before = bytes_of(store)
    failed = fail("undo", "--yes", "--store", store)
    assert failed.code == "NotUndoableError"
    assert "the store was initialised with it" in failed.message
    for version in ("13", "23", "-5"):
        assert fail("undo", "--to", version, "--yes", "--store", store, expect=ExitCode.USAGE).code == "UsageError"
    assert call("undo", "--to", str(CURRENT), "--yes", "--store", store)["steps"] == []
    assert bytes_of(store) == before
    older = store_of(15, 18)
    fence = state_of(older).fence
    assert fail("undo", "--to", "14", "--yes", "--store", older).code == "NotUndoableError"
    assert (state_of(older).fence, version_of(older)) == (fence, 18)


def test_nothing_is_given_up_where_nothing_runs(store_of: Stores) -> None:
    """And nobody is fenced."""
    store = store_of()
    before = bytes_of(store)
    assert call("abort", "--yes", "--store", store)["steps"] == []
    assert text("abort", "--yes", "--store", store).startswith("nothing to do: ")
    assert bytes_of(store) == before


def test_each_command_refuses_a_store_that_this_build_cannot_serve(store_of: Stores) -> None:
    """The version is said, and nothing is written; `info` still shows what is there."""
    store = store_of(15, 18)
    pretend_version(store, 99)
    before = bytes_of(store)
    for words in (
        ["start"],
        ["apply"],
        ["apply", "--dry-run"],
        ["undo", "--yes"],
        ["show", "role"],
        ["info", "--check"],
    ):
        failed = fail(*words, "--store", store)
        assert failed.code == "StoreTooNewError", words
        assert "99" in failed.message
    told = call("info", "--store", store)
    assert (told["version"], told["build_version"]) == (99, CURRENT)
    assert bytes_of(store) == before
