"""What tools of this kind get wrong, and this one does not."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

from catalog.cli.answer import ExitCode
from catalog.engine.migrate.recorder import RunState
from tests.cli.commands import MAIN, bytes_of, call, fail, in_program, text, three_lines
from tests.cli.conftest import CURRENT, Stores, on_spark
from tests.cli.histories import forge_checksums, kill_in_step, kill_program_in_step, pretend_step
from tests.cli.terminal import variables
from tests.engine.migrate.stores import events_of, findings_of, rows_of, state_of, version_of


@on_spark
def test_a_step_whose_process_was_killed_is_finished_by_the_next_start(store_of: Stores, spark: SparkSession) -> None:
    """Once it shows no more signs of life; until then it is said to be unfinished. Nothing of it is there twice."""
    del spark
    store = store_of(19)
    kill_program_in_step(store)
    assert fail("info", "--check", "--store", store, expect=ExitCode.UNFINISHED).code == "UnfinishedStepError"
    told = call("start", "--store", store)
    assert (told["version_before"], told["version"]) == (19, CURRENT)
    dead, *done = [(event.value.name, event.state) for event in events_of(store)]
    assert dead == ("v19_to_v20", RunState.ERROR)
    assert done == [(f"v{number}_to_v{number + 1}", RunState.MIGRATED) for number in range(19, CURRENT)]
    assert call("info", "--check", "--store", store)["pending"] == 0
    assert findings_of(store) == []


def test_a_step_whose_process_was_killed_is_given_up_by_hand(store_of: Stores) -> None:
    """By `abort`: its process could write no more, the reason is recorded, and the rows are those of before."""
    store = store_of(15, 18)
    before = rows_of(store)
    kill_in_step(store, 19)
    epoch = state_of(store).fence.epoch
    assert call("abort", "--yes", "--store", store)["steps"] == ["v18_to_v19"]
    assert state_of(store).fence.epoch == epoch + 1
    line = next(line for line in call("info", "--store", store)["versions"] if line["version"] == 19)
    assert line["state"] == "ERROR"
    assert line["error"].startswith("aborted by ")
    assert "v18_to_v19 failed: aborted by" in text("info", "--store", store)
    assert (rows_of(store), version_of(store)) == (before, 18)
    assert call("apply", "--next", "--dry-run", "--store", store)["steps"][0]["name"] == "v18_to_v19"


def test_a_step_whose_process_was_killed_is_marked_by_a_repair(store_of: Stores) -> None:
    """Which fences nobody; tried first, it changes nothing."""
    store = store_of(15, 18)
    kill_in_step(store, 19)
    fence, before = state_of(store).fence, bytes_of(store)
    tried = fail("repair", "--dry-run", "--store", store).data
    assert (tried["repaired"], [run["step"] for run in tried["diagnosis"]["runs"]]) == (None, ["v18_to_v19"])
    assert bytes_of(store) == before
    mended = call("repair", "--yes", "--store", store)
    assert [run["step"] for run in mended["repaired"]["closed"]] == ["v18_to_v19"]
    assert state_of(store).fence == fence
    assert events_of(store)[-1].state is RunState.ERROR
    assert text("repair", "--store", store).startswith("nothing to repair")


def test_a_torn_entry_is_set_aside_by_a_repair(store_of: Stores) -> None:
    """Every command refuses the store until then; nothing that was acknowledged is lost."""
    store = store_of(21)
    before = rows_of(store)
    torn = store / "stash" / "_delta_log" / f"{state_of(store).version + 1:020d}.json"
    torn.write_bytes(b'{"commitInfo": {"txid"')
    assert fail("info", "--store", store).code == "TornLogError"
    mended = call("repair", "--yes", "--store", store)
    assert (store / mended["repaired"]["kept"]).read_bytes() == b'{"commitInfo": {"txid"'
    assert rows_of(store) == before
    assert call("apply", "--store", store)["version"] == CURRENT


def test_checksums_are_recorded_again_only_when_asked_for(store_of: Stores) -> None:
    """Each difference is shown; without the flag it stays one, and the exit code says so."""
    store = store_of(15, 18)
    forge_checksums(store, 16, 18)
    before = bytes_of(store)
    failed = fail("repair", "--yes", "--store", store, expect=ExitCode.CHECKSUM)
    assert [own["step"] for own in failed.data["diagnosis"]["checksums"]] == ["v15_to_v16", "v17_to_v18"]
    assert bytes_of(store) == before
    mended = call("repair", "--checksums", "--yes", "--store", store)
    assert [own["step"] for own in mended["repaired"]["recorded"]] == ["v15_to_v16", "v17_to_v18"]
    assert all(own["verdict"] == "ok" for own in call("validate", "--store", store)["migrations"])


def test_an_applied_version_whose_module_is_gone_disturbs_nobody(store_of: Stores) -> None:
    """It is shown as gone; looking, validating and applying go on."""
    store = store_of(21)
    pretend_step(store, 12)
    assert re.search(r"12 +v11_to_v12 +MIGRATED +gone", text("info", "--store", store))
    assert "gone" in text("validate", "--store", store)
    assert call("apply", "--store", store)["version"] == CURRENT
    assert call("info", "--check", "--store", store)["pending"] == 0


def test_the_next_of_nothing_is_nothing(store_of: Stores) -> None:
    """It ends well, and fences nobody."""
    store = store_of()
    before = bytes_of(store)
    assert call("apply", "--next", "--store", store)["steps"] == []
    assert text("apply", "--next", "--store", store).startswith("nothing to do: ")
    assert bytes_of(store) == before


@on_spark
def test_two_who_apply_at_once_apply_each_step_once(store_of: Stores) -> None:
    """Both end well, whoever was first."""
    store = store_of(19)
    command = [sys.executable, "-c", MAIN, "apply", "--store", str(store)]
    processes = [
        subprocess.Popen(command, env=variables(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    ended = [(*process.communicate(), process.returncode) for process in processes]
    assert [code for *_, code in ended] == [0, 0], ended
    applied = [event.value.name for event in events_of(store) if event.state is RunState.MIGRATED]
    assert applied == ["v19_to_v20", "v20_to_v21", "v21_to_v22"]
    assert {event.state for event in events_of(store)} == {RunState.MIGRATED}
    assert sorted(" went from version 19 to 22" in out for out, *_ in ended) == [False, True]
    assert findings_of(store) == []


def test_a_mistyped_flag_or_command_is_refused_with_what_was_meant() -> None:
    """It is never taken for another one, nor passed over."""
    for words, meant in (
        (["apply", "--dry-rum"], "--dry-run"),
        (["info", "--stor", "x"], "--store"),
        (["start", "--readonly"], "--read-only"),
        (["debug", "edit", "--protect"], "--protected"),
        (["aply"], "`catalog apply`"),
        (["debug", "dmup"], "`catalog debug dump`"),
    ):
        shown = in_program(*words, expect=ExitCode.USAGE)
        assert three_lines(shown.err)[2] == f"next: did you mean {meant}?"


def test_a_missing_file_of_settings_is_no_default(store_of: Stores, tmp_path: Path) -> None:
    """Whoever names a file means it, by a flag or by a variable."""
    store = store_of()
    for words, changed in (
        (["-c", str(tmp_path / "none.toml")], {}),
        ([], {"CATALOG_CONFIG_FILE": str(tmp_path / "none.toml")}),
    ):
        shown = in_program("info", *words, "--store", store, expect=ExitCode.USAGE, changed=changed)
        assert "it cannot be read: No such file or directory" in three_lines(shown.err)[0]


def test_a_store_out_of_reach_is_a_clear_error_in_seconds() -> None:
    """Also with the options that one gives by default: retries of a client end before a person gives up."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and never listens
        changed = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{taken.getsockname()[1]}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
        }
        for verb in ("info", "start"):
            began = time.monotonic()
            shown = in_program(verb, "--store", "s3://bucket/store", expect=ExitCode.FAILED, changed=changed)
            assert time.monotonic() - began < 30
            what, why, _ = three_lines(shown.err)
            assert what.startswith("cannot read s3://bucket/store/store.json: ")
            assert why == "why:  the storage refused or did not answer"
