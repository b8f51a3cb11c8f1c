"""catalog debug: what looks inside a store, and what changes it by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import html5lib
import pytest
from pyspark.sql import SparkSession

from catalog.cli.answer import ExitCode
from catalog.engine.stash.constraints import Constraints
from catalog.engine.stash.registry import encode
from catalog.engine.stash.stash import Stash
from catalog.errors import FencedError
from catalog.objects import DatabaseKey, DatabaseValue, RoleId
from tests.cli.commands import bytes_of, call, fail, in_process, text
from tests.cli.conftest import CURRENT, Stores, on_spark
from tests.cli.histories import append_roles, kill_in_step
from tests.engine.migrate.stores import REGISTRY, append, findings_of, open_log, rows_of, state_of


@pytest.mark.parametrize("version", [14, 19])
def test_a_dump_is_every_stored_row_as_a_line_of_json(store_of: Stores, version: int) -> None:
    """As it came or went; consolidated, only those that are there, each once."""
    store = store_of(version)
    lines = [json.loads(line) for line in text("debug", "dump", "--store", store).splitlines()]
    assert all(line.keys() == {"collection", "key", "value", "ts", "diff"} for line in lines)
    assert len(lines) == sum(file.rows for file in state_of(store).files.values())
    assert {line["diff"] for line in lines} == {1, -1}
    told = call("debug", "dump", "--store", store)
    assert (told["rows"], told["version"]) == (lines, version)
    rows = call("debug", "dump", "--consolidate", "--store", store)["rows"]
    assert {row["diff"] for row in rows} == {1}
    by_name = {name: sum(row["collection"] == name for row in rows) for name in {row["collection"] for row in rows}}
    stored = {name: len(own) for name, own in rows_of(store).items()}
    assert {name: count for name, count in by_name.items() if name in stored} == stored
    assert by_name.keys() - stored.keys() == {"config", "fence_token"}
    sums: dict[str, int] = {}
    for line in lines:
        row = json.dumps([line["collection"], line["key"], line["value"]])
        sums[row] = sums.get(row, 0) + line["diff"]
    assert {row for row, count in sums.items() if count} == {
        json.dumps([row["collection"], row["key"], row["value"]]) for row in rows
    }


def test_a_dump_can_leave_collections_out_and_look_back(store_of: Stores) -> None:
    """Those that are named, all but those, and as they were at a ts."""
    store = store_of(15, 18)
    only = call("debug", "dump", "--collection", "role", "--collection", "item", "--store", store)["rows"]
    assert {row["collection"] for row in only} == {"role", "item"}
    rest = call("debug", "dump", "--ignore", "role", "--ignore", "item", "--store", store)["rows"]
    assert {"role", "item"}.isdisjoint(row["collection"] for row in rest)
    whole = call("debug", "dump", "--store", store)
    assert len(whole["rows"]) == len(only) + len(rest)
    frontier = state_of(store).frontier
    then = call("debug", "dump", "--consolidate", "--as-of", str(frontier), "--store", store)
    assert (then["version"], then["ts"]) == (15, frontier)
    words = ("debug", "dump", "--ignore", "rol", "--store", store)
    assert fail(*words, expect=ExitCode.USAGE).code == "UnknownCollectionError"


def test_the_epoch_tells_who_leads(store_of: Stores) -> None:
    """And whether that process still shows signs of life."""
    store = store_of()
    told = call("debug", "epoch", "--store", store)
    assert (told["deploy_generation"], told["epoch"], told["sign"]) == (0, 1, "released")
    call("start", "--deploy-generation", "4", "--store", store)
    told = call("debug", "epoch", "--store", store)
    assert (told["deploy_generation"], told["epoch"]) == (4, 2)
    assert text("debug", "epoch", "--store", store).startswith("generation 4, epoch 2\nled by ")


def test_stats_count_rows_files_and_bytes(store_of: Stores) -> None:
    """By collection; they add up to what the log holds."""
    store = store_of(19)
    told = call("debug", "stats", "--store", store)
    files = state_of(store).files.values()
    assert sum(own["size"] for own in told["collections"]) == sum(file.size for file in files)
    assert sum(own["base_files"] + own["tail_files"] for own in told["collections"]) == len(files)
    stored = {name: len(own) for name, own in rows_of(store).items()}
    assert {own["collection"]: own["rows"] for own in told["collections"] if own["collection"] in stored} == stored
    assert told["shape"] is None
    assert "collection" in text("debug", "stats", "--store", store)
    frontier = state_of(store).frontier
    assert call("debug", "stats", "--as-of", str(frontier), "--store", store)["ts"] == frontier


def test_a_store_is_made_up_like_a_real_one(store_of: Stores, tmp_path: Path) -> None:
    """What stats measured leads to a store of about the same shape; the same seed makes the same rows."""
    measured = tmp_path / "shape.json"
    shown = in_process("debug", "stats", "--shape", "--format", "json", "--store", store_of(19))
    measured.write_text(shown.out)
    words = ("debug", "generate", "--like", measured, "--rows", "150", "--version", "19")
    one, two = tmp_path / "one", tmp_path / "two"
    made = call(*words, "--seed", "3", "--store", one)["generated"]
    assert (made["version"], made["uri"]) == (19, str(one))
    call(*words, "--seed", "3", "--store", two)
    assert rows_of(one) == rows_of(two)
    assert findings_of(one) == []
    before = bytes_of(one)
    assert fail("debug", "generate", "--store", one).code == "NotEmptyError"
    assert (
        fail("debug", "generate", "--version", "13", "--store", tmp_path / "x", expect=ExitCode.USAGE).code
        == "UsageError"
    )
    assert bytes_of(one) == before
    assert " at version 14: " in text("debug", "generate", "--rows", "10", "--store", tmp_path / "three")


def test_a_row_is_edited_by_json(store_of: Stores) -> None:
    """At the store's own version; whoever leads is fenced, and constraints hold."""
    store = store_of(19)
    leader = Stash.open(open_log(store), REGISTRY, Constraints())
    leader.take_over(0, "leader")
    row = call("show", "role", "--where", "name=catalog_system", "--store", store)["rows"][0]
    key, value = json.dumps(row["key"]), json.dumps({**row["value"], "name": "renamed"})
    before = bytes_of(store)
    assert "--yes" in fail("debug", "edit", "role", key, value, "--store", store, expect=ExitCode.USAGE).next
    assert bytes_of(store) == before
    told = call("debug", "edit", "role", key, value, "--yes", "--store", store)
    assert (told["before"]["name"], told["after"]["name"]) == ("catalog_system", "renamed")
    assert told["ts"] == state_of(store).version
    assert call("show", "role", "--key", key, "--store", store)["rows"][0]["value"]["name"] == "renamed"
    with pytest.raises(FencedError):
        leader.refresh()
    assert findings_of(store) == []
    assert call("debug", "edit", "role", key, value, "--store", store)["ts"] is None


def test_an_edit_is_typed_strictly(store_of: Stores) -> None:
    """An unknown field, a wrong type, a key that is not there, a broken constraint: nothing is written."""
    store = store_of()
    before = bytes_of(store)
    rows = call("show", "role", "--store", store)["rows"]
    key, value = json.dumps(rows[0]["key"]), rows[0]["value"]
    words = ("--yes", "--store", store)

    def refused(key: str, value: object, expect: ExitCode = ExitCode.FAILED, *more: str) -> str:
        return fail("debug", "edit", "role", key, json.dumps(value), *more, *words, expect=expect).code

    assert refused(key, {**value, "colour": 1}, ExitCode.USAGE) == "UnfitJsonError"
    assert refused(key, {**value, "name": 7}, ExitCode.USAGE) == "UnfitJsonError"
    assert refused(key, [1], ExitCode.USAGE) == "UsageError"
    assert refused('{"id": {"user": 77}}', value) == "NoSuchRowError"
    assert refused(key, {**value, "name": rows[1]["value"]["name"]}) == "DuplicateError"
    assert refused(key, {**value, "member_of": [{"user": 77}]}) == "DanglingReferenceError"
    after = {path: digest for path, digest in bytes_of(store).items() if "role" in path}
    assert after == {path: digest for path, digest in before.items() if "role" in path}


def test_the_engines_own_rows_need_a_second_flag(store_of: Stores) -> None:
    """And those that marks stand for are never taken out of step with them."""
    store = store_of(15, 18)
    event = call("show", "migration_event", "--limit", "1", "--store", store)["rows"][0]
    key, value = json.dumps(event["key"]), json.dumps({**event["value"], "build": "0.0.9"})
    before = bytes_of(store)
    assert fail("debug", "edit", "migration_event", key, value, "--yes", "--store", store).code == "ProtectedRowError"
    version = ("config", '{"name": "stash_version"}')
    assert fail("debug", "edit", *version, '{"number": 19}', "--yes", "--store", store).code == "ProtectedRowError"
    words = ("--yes", "--protected", "--store", store)
    assert fail("debug", "edit", *version, '{"number": 19}', *words).code == "MarkedRowError"
    assert fail("debug", "delete", *version, *words).code == "MarkedRowError"
    assert bytes_of(store) == before
    assert call("debug", "edit", "migration_event", key, value, *words)["after"]["build"] == "0.0.9"


def test_a_row_is_deleted_by_its_key(store_of: Stores) -> None:
    """Unless others refer to it, or it is not there."""
    store = store_of()
    setting = call("show", "setting", "--store", store)["rows"][0]
    key = json.dumps(setting["key"])
    told = call("debug", "delete", "setting", key, "--yes", "--store", store)
    assert (told["before"], told["after"]) == (setting["value"], None)
    assert call("show", "setting", "--key", key, "--store", store)["rows"] == []
    assert fail("debug", "delete", "setting", key, "--yes", "--store", store).code == "NoSuchRowError"
    database = json.dumps(call("show", "database", "--store", store)["rows"][0]["key"])
    assert fail("debug", "delete", "database", database, "--yes", "--store", store).code == "DanglingReferenceError"


def test_a_copy_has_the_same_rows_and_says_that_it_is_one(store_of: Stores, tmp_path: Path) -> None:
    """Its source stays as it is, and an occupied target too."""
    store, target = store_of(15, 18), tmp_path / "copy"
    before = bytes_of(store)
    told = call("debug", "copy", store, target)["copied"]
    assert (told["source"], told["target"], told["version"]) == (str(store), str(target), 18)
    assert rows_of(target) == rows_of(store)
    assert call("info", "--store", target)["copy_of"] == call("info", "--store", store)["id"]
    assert f"a copy of {told['copy_of']}" in text("info", "--store", target)
    copied = bytes_of(target)
    assert fail("debug", "copy", store, target).code == "CopyTargetError"
    assert "was copied to" in text("debug", "copy", store, tmp_path / "another")
    assert (bytes_of(store), bytes_of(target)) == (before, copied)


def test_a_start_can_make_a_copy_first(store_of: Stores, tmp_path: Path) -> None:
    """Of the store as it was before anything was done to it."""
    store, target = store_of(21), tmp_path / "backup"
    original = rows_of(store)
    told = call("start", "--backup", target, "--store", store)
    assert (told["version"], told["backup"]["version"]) == (22, 21)
    assert rows_of(target) == original
    before = bytes_of(store)
    assert fail("start", "--backup", target, "--store", store).code == "CopyTargetError"
    assert bytes_of(store) == before


def test_fsck_finds_nothing_in_a_sound_store_and_says_what_is_wrong_with_another(store_of: Stores) -> None:
    """Findings are an exit code of 1, each with its code and what to do."""
    store = store_of()
    report = call("debug", "fsck", "--store", store)["report"]
    assert call("debug", "fsck", "--every-state", "--store", store)["report"]["files"] >= report["files"]
    assert report["findings"] == []
    assert report["rows"] > 0
    assert "is in order" in text("debug", "fsck", "--store", store)
    append(store, "role", (b"no key", b"no value", 1))
    before = bytes_of(store)
    failed = fail("debug", "fsck", "--store", store)
    assert failed.code == "FindingsError"
    assert failed.data["report"]["findings"]
    assert "fix:" in text("debug", "fsck", "--store", store, expect=ExitCode.FAILED)
    assert bytes_of(store) == before


def _databases(count: int) -> list[tuple[bytes, bytes, int]]:
    """Databases whose owners do not exist, each another."""
    return [
        (
            encode(DatabaseKey(id=5000 + number)),
            encode(DatabaseValue(name=f"d{number}", owner_id=RoleId(user=9_000_000 + number))),
            1,
        )
        for number in range(count)
    ]


@pytest.mark.parametrize("count", [7, 1100], ids=["few", "more than are listed"])
def test_findings_of_one_cause_are_one_example_and_a_count(store_of: Stores, count: int) -> None:
    """Hundreds of rows that are wrong for one reason are read as one; JSON lists them."""
    store = store_of()
    append(store, "database", *_databases(count))
    told = text("debug", "fsck", "--store", store, expect=ExitCode.FAILED)
    assert told.count("which does not exist") == 1
    assert f"(and {count - 1:,} more like it)" in told
    failed = fail("debug", "fsck", "--store", store)
    assert failed.message.endswith(f"findings: {count}")
    listed = [own for own in failed.data["report"]["findings"] if own["severity"] == "error"]
    assert len(listed) == min(count, 1000)


def test_a_check_of_an_upgrade_tells_findings_of_one_cause_once(store_of: Stores) -> None:
    """Before the upgrade as after it."""
    store = store_of(21)
    append(store, "database", *_databases(40))
    told = text("debug", "upgrade-check", store, expect=ExitCode.FAILED)
    assert told.count("before the upgrade: F402 ") == 1
    assert "which does not exist (and 39 more like it)" in told


def test_findings_of_several_causes_are_an_example_of_each(store_of: Stores) -> None:
    """None hides behind another."""
    store = store_of()
    append(store, "database", *_databases(3))
    append(store, "role", (b"no key", b"no value", 1))
    told = text("debug", "fsck", "--store", store, expect=ExitCode.FAILED)
    assert "(and 2 more like it)" in told
    assert {"F305", "F402"} <= {line.split()[0] for line in told.splitlines() if line.startswith("F")}


def test_files_become_few_and_rows_stay(store_of: Stores) -> None:
    """Of all collections or of those named; nobody is fenced."""
    store = store_of(19)
    before, fence = rows_of(store), state_of(store).fence
    told = call("debug", "compact", "role", "--store", store)
    assert told["collections"] == ["role"]
    assert told["files_after"] < told["files_before"]
    told = call("debug", "compact", "--store", store)
    assert "item" in told["collections"]
    assert told["files_after"] == len(state_of(store).files)
    assert (rows_of(store), state_of(store).fence) == (before, fence)
    assert text("debug", "compact", "--store", store).startswith("nothing to do: ")
    assert fail("debug", "compact", "rol", "--store", store, expect=ExitCode.USAGE).code == "UnknownCollectionError"


def test_a_vacuum_deletes_what_nothing_refers_to(store_of: Stores) -> None:
    """Tried first, it deletes nothing and says the same number; what is retained can still be read."""
    store = store_of(19)
    call("debug", "compact", "--store", store)
    before, rows = bytes_of(store), rows_of(store)
    assert call("debug", "vacuum", "--store", store)["files"] == 0
    tried = call("debug", "vacuum", "--retention", "0s", "--dry-run", "--store", store)
    assert (tried["done"], tried["files"] > 0, tried["size"] > 0) == (False, True, True)
    assert {path for path in before if path.endswith(".parquet")} <= bytes_of(store).keys()
    told = call("debug", "vacuum", "--retention", "0s", "--yes", "--store", store)
    assert (told["done"], told["files"], told["size"]) == (True, tried["files"], tried["size"])
    assert rows_of(store) == rows
    assert fail("debug", "vacuum", "--retention", "soon", "--store", store, expect=ExitCode.USAGE).code == "UsageError"
    assert fail("show", "role", "--as-of", "3", "--store", store).code == "RetiredError"


def test_nothing_is_vacuumed_while_a_step_is_said_to_run(store_of: Stores) -> None:
    """It may still need what it has written; that it is unfinished is the exit code."""
    store = store_of(15, 18)
    kill_in_step(store, 19)
    before = bytes_of(store)
    assert fail("debug", "vacuum", "--store", store, expect=ExitCode.UNFINISHED).code == "StepRunningError"
    assert bytes_of(store) == before


@on_spark
def test_an_upgrade_is_checked_on_a_scratch_copy(store_of: Stores, tmp_path: Path, spark: SparkSession) -> None:
    """Every step is run and told; the store is the same byte for byte, and so is the scratch folder."""
    del spark
    sound, wrong, scratch = store_of(19), store_of(19), tmp_path / "scratch"
    scratch.mkdir()
    append_roles(wrong, "catalog_system")
    before = bytes_of(sound), bytes_of(wrong)
    (verdict,) = call("debug", "upgrade-check", sound, "--scratch", scratch)["verdicts"]
    assert (verdict["version"], verdict["target"]) == (19, CURRENT)
    assert [step["name"] for step in verdict["steps"]] == ["v19_to_v20", "v20_to_v21", "v21_to_v22"]
    page = tmp_path / "page.html"
    failed = fail("debug", "upgrade-check", sound, wrong, "--scratch", scratch, "--html", page)
    assert failed.code == "UpgradeCheckError"
    assert _steps_on(page) == [step for own in failed.data["verdicts"] for step in _steps_in(own)]
    assert str(wrong) in failed.message
    assert str(sound) not in failed.message
    shown = text("debug", "upgrade-check", "--store", wrong, "--scratch", scratch, expect=ExitCode.FAILED)
    assert shown.startswith("FAIL: ")
    assert (bytes_of(sound), bytes_of(wrong)) == before
    assert list(scratch.iterdir()) == []


def _steps_in(verdict: Any) -> list[tuple[str, list[str]]]:  # noqa: ANN401 - JSON
    """Each step with its collections: their names, and the rows before and after."""
    return [
        (
            step["name"],
            [f"{own['collection']} {own['rows_before']:,} {own['rows_after']:,}" for own in step["collections"]],
        )
        for step in verdict["steps"]
    ]


def _steps_on(page: Path) -> list[tuple[str, list[str]]]:
    """The same, as a page has it."""
    document = html5lib.parse(page.read_text(encoding="utf-8"), namespaceHTMLElements=False)
    found = []
    for step in document.iterfind(".//section[@class='step']"):
        rows = [["".join(cell.itertext()) for cell in own] for own in step.iterfind("./div/table/tbody/tr")]
        found.append((step.findtext("./h4/code") or "", [f"{row[0]} {row[2]} {row[3]}" for row in rows]))
    return found


def test_a_store_that_cannot_be_checked_does_not_keep_others_from_it(store_of: Stores, tmp_path: Path) -> None:
    """Each has its verdict, or why there is none."""
    good, bad = store_of(), tmp_path / "nothing"
    told = fail("debug", "upgrade-check", bad, good)
    assert [(own["store"], own["ok"]) for own in told.data["verdicts"]] == [(str(good), True)]
    assert [own["store"] for own in told.data["unchecked"]] == [str(bad)]
    assert str(bad) in told.message


def test_a_short_retention_is_asked_about(store_of: Stores) -> None:
    """What it deletes cannot be read again; with the usual one nothing is lost that was promised."""
    store = store_of()
    assert "--yes" in fail("debug", "vacuum", "--retention", "1s", "--store", store, expect=ExitCode.USAGE).next
    call("debug", "vacuum", "--retention", "7d", "--yes", "--store", store)
    call("debug", "vacuum", "--store", store)
