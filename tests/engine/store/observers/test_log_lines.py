"""A line for each notice, that people can read and machines can parse."""

from __future__ import annotations

import json
import re
from typing import get_args

import pytest

from catalog.actions import columnar
from catalog.engine.migrate.plan import CollectionPlan, StepPlan
from catalog.engine.migrate.step_progress import Counts
from catalog.engine.store.observers.log_lines import LogLines, event_fields, event_name, log_line
from catalog.events import (
    BuiltinsMigrated,
    Closed,
    Event,
    Failed,
    FenceTaken,
    Initialized,
    Maintained,
    Opening,
    Ready,
    SparkStarted,
    SparkStarting,
    StepAdvanced,
    StepBegan,
    StepCommitted,
    StepFailed,
    WaitingForLeader,
)
from tests.conftest import ROOT

ITEMS = CollectionPlan("item", "columnar", 1, 10, 640, replaces=True)
PLAN = StepPlan("v1_to_v2", 1, 2, "Two words.", "sha256:", (columnar("item", lambda batch: batch),), (ITEMS,))
NOTICES: tuple[Event, ...] = (
    Opening("/srv/a store", "catalog", "leader", "1.2.3", 2),
    WaitingForLeader('ann"s:1', 0, 1, 60.0),
    SparkStarting(),
    SparkStarted(4.5),
    FenceTaken(0, 2, None, 0.12345),
    Initialized(2),
    StepBegan(PLAN),
    StepAdvanced(PLAN, 5, 320),
    StepCommitted(PLAN, {"item": Counts(10, 9, 640, 600)}, 1.5),
    StepFailed(PLAN, "StepRefusedError", "a = b\nc", 1.5),
    BuiltinsMigrated("1.2.3", 1, 2, 3, 0.5),
    Maintained(("item", "role"), 20, None, 3, None),
    Ready("/srv/a store", "leader", 2, 0, 2, 7, 3.0),
    Failed("NoStoreError", "there is none", "who knows", "make one", 0.1),
    Closed(2),
)
NOW_S = 1_700_000_000.25


def lines(form: str) -> list[str]:
    written: list[str] = []
    log = LogLines(written.append, form, clock=lambda: NOW_S + 100 * len(written))
    for notice in NOTICES:
        log(notice)
    return written


def test_there_is_one_of_every_kind_here() -> None:
    """Whoever adds a kind of notice adds it to the tests of what is written."""
    assert [type(notice) for notice in NOTICES] == list(get_args(Event))


def test_every_notice_is_one_object_of_json() -> None:
    """With its time, its level and its name, and the facts as they are."""
    written = lines("json")
    assert len(written) == len(NOTICES)
    for line, notice in zip(written, NOTICES, strict=True):
        assert "\n" not in line
        found = json.loads(line)
        assert list(found)[:3] == ["time", "level", "event"]
        assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", found["time"])
        assert found["event"] == event_name(notice)
    by_event = {found["event"]: found for found in map(json.loads, written)}
    assert by_event["opening"]["time"] == "2023-11-14T22:13:20.250Z"
    assert by_event["fence_taken"]["waited_s"] == 0.123
    assert by_event["fence_taken"]["version"] is None
    committed = by_event["step_committed"]
    assert (committed["step"], committed["version"], committed["rows_after"], committed["bytes_after"]) == (
        "v1_to_v2",
        2,
        9,
        600,
    )
    assert by_event["maintained"]["consolidated"] == ["item", "role"]
    assert {event for event, found in by_event.items() if found["level"] == "error"} == {"step_failed", "failed"}
    assert by_event["waiting_for_leader"]["level"] == "warning"


def test_every_notice_is_one_line_of_text() -> None:
    """Values that are no words are quoted, so that a line can be taken apart again."""
    written = lines("text")
    assert written[0] == (
        '2023-11-14T22:13:20.250Z info opening store="/srv/a store" project=catalog mode=leader build=1.2.3 target=2'
    )
    assert 'holder="ann\\"s:1"' in written[1]
    assert "version=" not in written[4]
    assert written[9].endswith('code=StepRefusedError what="a = b\\nc" seconds=1.5')
    assert "consolidated=item,role checkpoint=20 files_deleted=3" in written[11]
    assert not any("\n" in line for line in written)


def test_a_step_that_advances_is_told_of_sparingly() -> None:
    """Every ten seconds, from its beginning on."""
    now_s, written = [0.0], list[str]()
    log = LogLines(written.append, "json", clock=lambda: now_s[0])
    log(StepBegan(PLAN))
    for tenth in range(300):
        now_s[0] = tenth / 10
        log(StepAdvanced(PLAN, tenth // 100, 64))
    assert [json.loads(line)["rows"] for line in written[1:]] == [1, 2]


@pytest.mark.parametrize(
    "text", ["\x00", "\x1b[31m", "a\rb", '"', "\\", "ünïcode", " ", "", "a=b", "\u2028", "\x85", "\x9b31m"]
)
def test_no_value_breaks_a_line(text: str) -> None:
    """Whatever a store or an error is called."""
    assert json.loads(log_line("json", NOW_S, "info", "x", {"what": text}))["what"] == text
    line = log_line("text", NOW_S, "info", "x", {"what": text})
    shown = line.partition("what=")[2]
    assert len(line.splitlines()) == 1
    assert "\x1b" not in line
    assert "\x9b" not in line
    assert shown == text or json.loads(shown) == text


def test_the_page_explains_every_event() -> None:
    """And every fact that it has, besides those that tell which step it is."""
    page = (ROOT / "docs" / "howto" / "operate.md").read_text(encoding="utf-8")
    rows = {line.split("|")[1].strip(" `"): line for line in page.splitlines() if line.startswith("| `")}
    for notice in NOTICES:
        row = rows[event_name(notice)]
        facts = event_fields(notice).keys() - {"step", "previous", "version", "store", "mode"}
        if isinstance(notice, Failed):
            facts -= {"seconds"}  # which a log can tell by its times
        assert [fact for fact in facts if f"`{fact}`" not in row] == [], row
