"""A running upgrade is told in lines, the same on a terminal and in a pipe; a terminal also draws a bar."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest

from catalog.actions import columnar
from catalog.cli.screen import make_console
from catalog.cli.text.progress import shown_progress
from catalog.engine.log.delta import DeltaLog
from catalog.engine.migrate.plan import CollectionPlan, LiveRows, StepPlan, StepPosition, plan
from catalog.engine.migrate.step_progress import Counts
from catalog.engine.stash.view import live_rows
from catalog.events import StepAdvanced, StepBegan, StepCommitted
from catalog.tools.generator import generate
from catalog.upgrade import PROJECT
from tests.cli.commands import MAIN
from tests.cli.terminal import COLOUR, ESCAPE, in_pipe, on_terminal

FIRST, CURRENT = 19, PROJECT.current
TOLD = """
import sys
from dataclasses import replace
from catalog.cli.text.progress import shown_progress
from catalog.cli.screen import make_console
from catalog.engine.migrate.plan import LiveRows, plan, positions
from catalog.engine.migrate.step_progress import Counts
from catalog.engine.log.delta import DeltaLog
from catalog.events import SparkStarted, SparkStarting, StepAdvanced, StepBegan, StepCommitted
from catalog.upgrade import PROJECT
log = DeltaLog(sys.argv[1])
steps = plan(PROJECT, log.state(log.verify()), 19, PROJECT.current, LiveRows(log))
with shown_progress(make_console()) as tell:
    tell(SparkStarting())
    tell(SparkStarted(4.2))
    for step, position in zip(steps, positions(steps), strict=True):
        step = replace(step, position=position)
        tell(StepBegan(step))
        tell(StepAdvanced(step, step.rows_to_rewrite // 2, step.bytes_to_rewrite // 2))
        tell(StepAdvanced(step, step.rows_to_rewrite, step.bytes_to_rewrite))
        tell(StepCommitted(step, {"item": Counts(7, 5, 7000, 5000)}, 0.0))
"""
"""Tells of an upgrade as the engine does."""
LINES = [
    "Spark started in 4.2 s",
    "step 1 of 3, v19_to_v20: the replicas of a cluster become rows of their own, with ids.",
    "step 2 of 3, v20_to_v21: the collection `timestamp` goes, and so do items whose schema is gone.",
    "step 3 of 3, v21_to_v22: roles, databases, schemas and items may have an `oid`.",
]
"""The lines that stay."""


@pytest.fixture
def store(tmp_path: Path) -> str:
    generate(PROJECT, tmp_path / "store", FIRST, 200, seed=1)
    return f"{tmp_path}/store/stash"


def steps(store: str) -> list[StepPlan]:
    log = DeltaLog(store)
    return plan(PROJECT, log.state(log.verify()), FIRST, CURRENT, LiveRows(log))


def drawn(store: str, **terminal: Any) -> list[str]:  # noqa: ANN401 - a width, or variables
    """Return each line that was on the screen at some time, once."""
    lines = ESCAPE.sub("", on_terminal(TOLD, store, **terminal)).replace("\r", "\n").splitlines()
    return list(dict.fromkeys(line.rstrip() for line in lines if line.strip()))


def left(written: str) -> list[str]:
    """Return the lines that are on the screen in the end."""
    screen, row = [""], 0
    for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", written):
        if part == "\n":
            row += 1
            screen += [""] * (row + 1 - len(screen))
        elif up := re.fullmatch(r"\x1b\[(\d+)A", part):
            row -= int(up[1])
        elif part == "\x1b[2K":
            screen[row] = ""
        elif part[0] not in "\x1b\r":
            screen[row] += part
    return [line.rstrip() for line in screen if line.strip()]


def test_a_terminal_gets_a_bar_for_the_running_step(store: str) -> None:
    """It says how far the step is, in live rows, and vanishes with it; what stays is told in the words of a pipe."""
    written = on_terminal(TOLD, store)
    assert left(written) == LINES
    seen = drawn(store)
    assert [line for line in seen if line.startswith("starting Spark ━━━━━━━━━━━━ 0:00:0")]
    for number, step in enumerate(steps(store), 1):
        rows = step.rows_to_rewrite
        told = f" of {rows} rows" if rows else "no rows to rewrite"
        assert [line for line in seen if line.startswith(f"step {number} of 3 ━") and told in line], (step.name, seen)
    assert COLOUR.search(written)


def test_rows_are_live_ones_in_plan_bar_and_outcome(store: str) -> None:
    """Not the entries of files, of which a tail has more: a row that was changed is one row."""
    log = DeltaLog(store)
    state = log.state(log.verify())
    (step,) = [step for step in steps(store) if step.name == "v19_to_v20"]
    (entries,) = [own for own in plan(PROJECT, state, FIRST, CURRENT) if own.name == "v19_to_v20"]
    live = sum(live_rows(log, state.files_of(name)) for name in step.rewrites)
    assert step.rows_to_rewrite == live < entries.rows_to_rewrite
    assert [line for line in drawn(store) if line.startswith("step 1 of 3 ━") and f" of {live} rows" in line]


def test_colours_can_be_refused(store: str) -> None:
    """By NO_COLOR, which leaves the bars."""
    written = on_terminal(TOLD, store, NO_COLOR="1")
    assert "━" in written
    assert not COLOUR.search(written)


@pytest.mark.parametrize(("width", "has_bars"), [(80, True), (34, False), (20, False)])
def test_a_narrow_terminal_gets_what_fits(store: str, width: int, has_bars: bool) -> None:  # noqa: FBT001 - a case
    """The bars give way first; no line is longer than the terminal, and none breaks in a word or number."""
    seen = drawn(store, width=width)
    bars = [line for line in seen if re.match(r"step \d of 3(?! *,)", line)]
    assert len(bars) >= 3
    assert {("━" in line) for line in bars} == {has_bars}
    assert max(map(len, seen)) <= width
    kept = left(on_terminal(TOLD, store, width=width))
    assert " ".join(kept).split() == " ".join(LINES).split()
    for line in bars:
        told = r"no rows to rewrite|[\d,]+ of [\d,]+ rows(, [\d,]+ rows/s)?(, about [\d a-z]+ left)?"
        assert re.fullmatch(rf"step \d of 3( ━*[╸╺]?━*)?( ({told}))?( \d:\d\d:\d\d)?", line), line


@pytest.mark.parametrize("program", ["terminal", "pipe", "coloured pipe"])
def test_where_the_cursor_cannot_move_there_are_lines(store: str, program: str) -> None:
    """On a dumb terminal, in a pipe, and in a pipe that wants colours: the words of a terminal, each written once."""
    if program == "terminal":
        written = on_terminal(TOLD, store, TERM="dumb").replace("\r\n", "\n")
    else:
        wanted = "1" if program == "coloured pipe" else ""
        written, errors = in_pipe("-c", TOLD, store, CI="true", FORCE_COLOR=wanted)
        assert errors == ""
    assert written.splitlines() == ["starting Spark", *LINES]


def test_lines_say_how_fast_it_goes_and_how_long_it_takes() -> None:
    """Measured from the first rows on: what Spark took to start says nothing of the rest. At most every two seconds."""
    now_s, out = [100.0], io.StringIO()
    step = _step(rows=1000, size=64_000)
    with shown_progress(make_console(out), clock=lambda: now_s[0]) as tell:
        tell(StepBegan(step))
        for at_s, rows in ((130, 0), (131, 100), (132, 200), (133.5, 200), (136, 600), (139, 1000)):
            now_s[0] = at_s
            tell(StepAdvanced(step, rows, rows * 64))
        tell(StepCommitted(step, {"item": Counts(1000, 999, 64_000, 63_000)}, 37.0))
    assert out.getvalue().splitlines() == [
        "step 1 of 1, v19_to_v20: A step.",
        "step 1 of 1: 100 of 1,000 rows",
        "step 1 of 1: 600 of 1,000 rows, 100 rows/s, about 4 s left",
    ]


def test_the_estimate_is_that_of_the_whole_upgrade() -> None:
    """The rows of later steps count, at the pace of all steps so far."""
    now_s, out = [0.0], io.StringIO()
    first = _step(1000, 64_000, StepPosition(1, 2, rows_to_come=9_000))
    second = _step(9_000, 64_000, StepPosition(2, 2))
    with shown_progress(make_console(out), clock=lambda: now_s[0]) as tell:
        for step, advances in ((first, ((10, 100), (14, 500), (18, 1000))), (second, ((28, 1000), (100, 9_000)))):
            tell(StepBegan(step))
            for at_s, rows in advances:
                now_s[0] = at_s
                tell(StepAdvanced(step, rows, 0))
            tell(StepCommitted(step, {}, 1.0))
    assert out.getvalue().splitlines() == [
        "step 1 of 2, v19_to_v20: A step.",
        "step 1 of 2: 100 of 1,000 rows",
        "step 1 of 2: 500 of 1,000 rows, 100 rows/s, about 1 min 35 s left",
        "step 2 of 2, v19_to_v20: A step.",
        "step 2 of 2: 1,000 of 9,000 rows, 106 rows/s, about 1 min 16 s left",
    ]


def test_a_step_that_begins_again_is_measured_anew() -> None:
    """As when others wrote to what it had read."""
    now_s, out = [0.0], io.StringIO()
    step = _step(rows=1000, size=64_000)
    with shown_progress(make_console(out), clock=lambda: now_s[0]) as tell:
        tell(StepBegan(step))
        for at_s, rows in ((10, 100), (20, 900), (30, 0), (40, 100), (50, 200)):
            now_s[0] = at_s
            tell(StepAdvanced(step, rows, rows * 64))
    assert out.getvalue().splitlines()[-1] == "step 1 of 1: 200 of 1,000 rows, 10 rows/s, about 1 min 20 s left"


def _step(rows: int, size: int, position: StepPosition = StepPosition()) -> StepPlan:  # noqa: B008 - it is frozen
    works = (CollectionPlan("item", "columnar", 1, rows, size),)
    actions = (columnar("item", lambda batch: batch),)
    return StepPlan("v19_to_v20", 19, 20, "A step.", "sha256:", actions, works, position=position)


def test_a_copy_shows_a_bar_of_rows_on_a_terminal_alone(store: str, tmp_path: Path) -> None:
    """It says how many of the rows are copied; a pipe gets the result and nothing else."""
    words = ("debug", "copy", str(Path(store).parent))
    written = ESCAPE.sub("", on_terminal(MAIN, *words, str(tmp_path / "one")))
    assert f"copying to {tmp_path / 'one'}" in written
    assert re.search(r"[1-9][\d,]*/[1-9][\d,]* rows", written)
    _, err = in_pipe("-c", MAIN, *words, str(tmp_path / "two"))
    assert err == ""
