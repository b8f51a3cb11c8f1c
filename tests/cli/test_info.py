"""info, validate, show, config show: what looks at a store and leaves it as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from catalog.cli.answer import ExitCode
from tests.cli.commands import bytes_of, call, complaint, fail, text
from tests.cli.conftest import CURRENT, Stores
from tests.cli.histories import forge_checksums, kill_in_step, pretend_step
from tests.engine.migrate.stores import state_of


def test_info_shows_every_version_and_how_it_was_reached(store_of: Stores) -> None:
    """The one that the store began with, those that steps led to, and those that are pending."""
    store = store_of(15, 18)
    before = bytes_of(store)
    told = call("info", "--store", store)
    assert (told["version"], told["pending"], told["build_version"]) == (18, CURRENT - 18, CURRENT)
    assert (told["deploy_generation"], told["holder"]) == (0, "test")
    lines = {line["version"]: line for line in told["versions"]}
    states = {version: line["state"] for version, line in lines.items()}
    assert states == {
        14: "",
        15: "INITIAL",
        **dict.fromkeys((16, 17, 18), "MIGRATED"),
        **dict.fromkeys(range(19, CURRENT + 1), "PENDING"),
    }
    applied = lines[16]
    assert (applied["name"], applied["checksum"], applied["previous"]) == ("v15_to_v16", "ok", 15)
    assert applied["completed_ms"] >= applied["started_ms"] > 0
    assert applied["rows_before"] > 0
    assert applied["bytes_after"] > 0
    shown = text("info", "--store", store)
    assert "is at version 18" in shown
    assert "4 migrations are pending" in shown
    assert bytes_of(store) == before


def test_a_check_says_by_its_exit_code_what_is_to_be_done(store_of: Stores) -> None:
    """0: nothing; 3: migrations are pending; 4: a checksum differs; 6: a step began and did not end."""
    assert call("info", "--check", "--store", store_of())["pending"] == 0
    older = store_of(15, 18)
    assert fail("info", "--check", "--store", older, expect=ExitCode.PENDING).data["pending"] == CURRENT - 18
    kill_in_step(older, 19)
    failed = fail("info", "--check", "--store", older, expect=ExitCode.UNFINISHED)
    assert (failed.code, failed.message[:10]) == ("UnfinishedStepError", "v18_to_v19")
    forge_checksums(older, 17)
    assert fail("info", "--check", "--store", older, expect=ExitCode.CHECKSUM).code == "ChecksumError"
    assert call("info", "--store", older)["version"] == 18


def test_validate_lists_every_mismatch(store_of: Stores) -> None:
    """Not only the first; those that agree are listed as well."""
    store = store_of(15, 18)
    assert [own["verdict"] for own in call("validate", "--store", store)["migrations"]] == ["ok", "ok", "ok"]
    forge_checksums(store, 16, 18)
    before = bytes_of(store)
    failed = fail("validate", "--store", store, expect=ExitCode.CHECKSUM)
    verdicts = {own["name"]: own["verdict"] for own in failed.data["migrations"]}
    assert verdicts == {"v15_to_v16": "differs", "v16_to_v17": "ok", "v17_to_v18": "differs"}
    assert "v15_to_v16, v17_to_v18" in failed.message
    assert all(own["verdict"] == "ok" for own in failed.data["snapshots"])
    assert [own["version"] for own in failed.data["snapshots"]] == list(range(15, CURRENT + 1))
    shown = text("validate", "--store", store, expect=ExitCode.CHECKSUM)
    assert shown.count("differs") == 2
    assert fail("apply", "--store", store, expect=ExitCode.CHECKSUM).code == "ChecksumError"
    assert bytes_of(store) == before


def test_a_migration_whose_module_is_gone_is_shown_and_no_mismatch(store_of: Stores) -> None:
    """It was applied by a build that had it; that this one has it no more is nobody's mistake."""
    store = store_of(15, 18)
    for version in (12, 13):
        pretend_step(store, version)
    told = call("info", "--store", store)
    line = next(line for line in told["versions"] if line["version"] == 12)
    assert (line["name"], line["state"], line["checksum"], line["build"]) == ("v11_to_v12", "MIGRATED", "gone", "0.0.1")
    assert "v11_to_v12" in text("info", "--store", store)
    verdicts = {own["name"]: own["verdict"] for own in call("validate", "--store", store)["migrations"]}
    assert verdicts["v12_to_v13"] == "gone"
    assert verdicts["v15_to_v16"] == "ok"


@pytest.mark.parametrize("version", [14, 15, 19, CURRENT])
def test_rows_are_shown_with_the_types_of_the_store(store_of: Stores, version: int) -> None:
    """Of any version that this build knows, the one from before protobuf included."""
    store = store_of(version)
    told = call("show", "role", "--store", store, "--limit", "0")
    assert (told["version"], told["collection"], told["more"]) == (version, "role", False)
    assert len(told["rows"]) >= 2
    assert isinstance(told["rows"][0]["key"]["id"], int if version < 17 else dict)
    first = told["rows"][0]
    assert call("show", "role", "--key", _json(first["key"]), "--store", store)["rows"] == [first]
    assert call("show", "role", "--where", f"name={first['value']['name']}", "--store", store)["rows"] == [first]
    assert call("show", "role", "--where", "name=nobody", "--store", store)["rows"] == []


def test_rows_are_found_by_key_by_tests_and_by_number(store_of: Stores) -> None:
    """Tests add up; there may be more than are shown, and that is said."""
    store = store_of(19)
    rows = call("show", "item", "--limit", "0", "--store", store)["rows"]
    wanted = rows[3]
    number = wanted["key"]["id"]
    assert call("show", "item", "--key", f"id={number}", "--store", store)["rows"] == [wanted]
    assert call("show", "item", "--key", "id=999999999", "--store", store)["rows"] == []
    tests = ["--where", f"key.id>={number}", "--where", f"id<={number}"]
    assert call("show", "item", *tests, "--store", store)["rows"] == [wanted]
    some = call("show", "item", "--limit", "2", "--store", store)
    assert (some["rows"], some["more"]) == (rows[:2], True)
    assert call("show", "item", "--limit", str(len(rows)), "--store", store)["more"] is False
    shown = text("show", "item", "--limit", "1", "--store", store)
    assert shown.splitlines()[0] == _json(rows[0]["key"])
    assert f'  name: "{rows[0]["value"]["name"]}"' in shown.splitlines()
    assert shown.splitlines()[-1].endswith("and there are more: see --limit")


def test_rows_are_shown_as_they_were(store_of: Stores) -> None:
    """At an earlier ts, with the types of the version that the store had then."""
    store = store_of(15, 18)
    frontier = call("info", "--store", store)["frontier"]
    then = call("show", "item", "--as-of", str(frontier), "--limit", "1", "--store", store)
    assert (then["version"], then["ts"]) == (15, frontier)
    assert call("show", "item", "--limit", "1", "--store", store)["version"] == 18
    newest = state_of(store).version
    assert fail("show", "item", "--as-of", str(newest + 1), "--store", store).code == "NoSuchVersionError"
    assert fail("show", "item", "--as-of", str(frontier - 1), "--store", store).code == "RetiredError"


def test_a_ts_before_the_first_rows_is_told_with_the_first_that_has_some(tmp_path: Path) -> None:
    """The store is initialised: the advice is no start, but a later ts."""
    store = tmp_path / "store"
    call("init", "--store", store)
    for ts in (0, 1):
        assert complaint("show", "role", "--as-of", str(ts), "--store", store) == [
            f"{store} had no rows yet at ts {ts}",
            "why:  it was made there, and initialised at ts 2",
            "next: read at ts 2 or later; `catalog history` lists them with their times",
        ]
    assert complaint("show", "role", "--as-of", "-1", "--store", store) == [
        "there is no ts -1",
        "why:  ts are the numbers of commits, from 0 on",
        "next: the earliest ts that can be read is 0",
    ]


def test_a_mistyped_collection_field_or_key_is_said_to_be_one(store_of: Stores) -> None:
    """With those that there are."""
    store = store_of()
    failed = fail("show", "rol", "--store", store, expect=ExitCode.USAGE)
    assert failed.code == "UnknownCollectionError"
    assert "role" in failed.next
    failed = fail("show", "role", "--where", "nam=x", "--store", store, expect=ExitCode.USAGE)
    assert failed.next == "did you mean name?"
    failed = fail("show", "role", "--key", '{"di": 1}', "--store", store, expect=ExitCode.USAGE)
    assert failed.code == "UnfitJsonError"


def test_every_setting_is_shown_with_where_it_came_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flag before a variable before the environment before the file before the default."""
    (tmp_path / "catalog.toml").write_text(
        '[tool.catalog]\nstore = "here"\nlock_timeout = "5m"\nspark = "local[1]"\n'
        '[tool.catalog.env.prod]\nspark = "spark://prod:7077"\n'
        'storage_options = { aws_secret_access_key = "${SECRET}" }\n',
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CATALOG_TIMEOUT", "90")
    monkeypatch.setenv("SECRET", "very-hidden")
    words = ("config", "show", "--env", "prod")
    told = {own["name"]: (own["value"], own["source"]) for own in call(*words, "--store", "flag")["settings"]}
    assert told["store"] == ("flag", "--store")
    assert told["timeout"] == (90.0, "CATALOG_TIMEOUT")
    assert told["spark"] == ("spark://prod:7077", "[tool.catalog.env.prod] in catalog.toml")
    assert told["lock_timeout"] == (300.0, "[tool.catalog] in catalog.toml")
    assert told["deploy_generation"] == (None, "default")
    assert told["storage_options.aws_secret_access_key"][0] == "********"
    assert "very-hidden" not in text(*words)


def test_options_stand_before_or_after_the_command(store_of: Stores) -> None:
    """The nearest to the command holds."""
    store = store_of()
    assert call("--store", store, "info")["store"] == str(store)
    assert call("--store", "elsewhere", "info", "-s", store)["store"] == str(store)
    assert call("--store", store, "debug", "epoch")["store"] == str(store)


def test_a_format_may_be_a_setting(store_of: Stores, tmp_path: Path) -> None:
    """Of a file as well; a flag stands before it."""
    file = tmp_path / "settings.toml"
    file.write_text(f'[tool.catalog]\nformat = "json"\nstore = "{store_of()}"\n', encoding="utf-8")
    assert text("info", "-c", file).startswith('{"ok": true')
    assert "is at version" in text("info", "-c", file, "--format", "text")


def test_a_command_without_a_store_says_how_to_name_one() -> None:
    """By a flag, a variable or a file."""
    what, _, following = complaint("info", expect=ExitCode.USAGE)
    assert what == "no store was named"
    assert "--store" in following
    assert "CATALOG_STORE" in following


def _json(data: object) -> str:
    return json.dumps(data, ensure_ascii=False)


def test_an_undone_step_is_told_wherever_one_plans(store_of: Stores) -> None:
    """It is not applied again by itself, so neither the plan nor the check takes it for merely pending."""
    store = store_of(21, 22)
    call("undo", "--yes", "--store", store)
    for words in (["info", "--check"], ["apply", "--dry-run"]):
        told = fail(*words, "--store", store, expect=ExitCode.PENDING)
        assert (told.code, "--reapply" in told.next) == ("UndoneError", True)
    assert call("apply", "--dry-run", "--reapply", "--store", store)["until"] == 22
