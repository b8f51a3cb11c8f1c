"""A running upgrade is a bar per step on a terminal, and lines everywhere else."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from catalog.actions import columnar
from catalog.cli.bars import shown_progress
from catalog.cli.render import make_console
from catalog.engine.plan import StepPlan, Work, plan
from catalog.engine.progress import Counts
from catalog.generator import generate
from catalog.log.delta import DeltaLog
from catalog.notices import StepAdvanced, StepBegan, StepCommitted
from catalog.upgrade import PROJECT
from tests.cli.terminal import COLOUR, ESCAPE, in_pipe, on_terminal

FIRST, CURRENT = 19, PROJECT.current
TOLD = """
import sys
from catalog.cli.bars import shown_progress
from catalog.cli.render import make_console
from catalog.engine.plan import plan
from catalog.engine.progress import Counts
from catalog.log.delta import DeltaLog
from catalog.notices import StepAdvanced, StepBegan, StepCommitted
from catalog.upgrade import PROJECT
log = DeltaLog(sys.argv[1])
console = make_console()
with shown_progress(console) as tell:
    for step in plan(PROJECT, log.state(log.verify()), 19, PROJECT.current):
        tell(StepBegan(step))
        if step.needs_spark:
            rows = sum(work.rows for work in step.works)
            tell(StepAdvanced(step, rows // 2, step.bytes_to_rewrite // 2))
            tell(StepAdvanced(step, rows, step.bytes_to_rewrite))
        tell(StepCommitted(step, {"item": Counts(7, 5, 7000, 5000)}, 0.0))
"""
"""Tells of an upgrade as the engine does."""


@pytest.fixture
def store(tmp_path: Path) -> str:
    generate(PROJECT, tmp_path / "store", FIRST, 200, seed=1)
    return f"{tmp_path}/store/stash"


def steps(store: str) -> list[StepPlan]:
    log = DeltaLog(store)
    return plan(PROJECT, log.state(log.verify()), FIRST, CURRENT)


def test_a_terminal_gets_a_bar_for_each_step(store: str) -> None:
    """In the end every bar is full and says what became of the rows; under way it said how far it was."""
    written = on_terminal(TOLD, store)
    planned = steps(store)
    lines = ESCAPE.sub("", written).replace("\r", "\n").splitlines()
    last = [line for line in lines if "━" in line][-len(planned) :]
    assert (
        [line.split()[0] for line in last]
        == [step.name for step in planned]
        == [
            "v19_to_v20",
            "v20_to_v21",
            "v21_to_v22",
        ]
    )
    for line, step in zip(last, planned, strict=True):
        told = "7.0 kB became 5.0 kB" if step.needs_spark else "none of them rewritten"
        assert f"━━━━━━━━━━━━ 7 rows became 5, {told}" in line
        assert "0:00:0" in line
    assert COLOUR.search(written)


def test_colours_can_be_refused(store: str) -> None:
    """By NO_COLOR, which leaves the bars."""
    written = on_terminal(TOLD, store, NO_COLOR="1")
    assert "━" in written
    assert not COLOUR.search(written)


@pytest.mark.parametrize(("width", "has_bars"), [(80, True), (40, False)])
def test_a_narrow_terminal_gets_what_fits(store: str, width: int, has_bars: bool) -> None:  # noqa: FBT001 - a case
    """The bars give way first, and nothing wraps."""
    lines = ESCAPE.sub("", on_terminal(TOLD, store, width=width)).replace("\r", "\n").splitlines()
    last = [line for line in lines if line.startswith("v")][-3:]
    assert [line[:3] for line in last] == ["v19", "v20", "v21"]
    assert [("━" in line) for line in last] == [has_bars] * 3
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize("program", ["terminal", "pipe", "coloured pipe"])
def test_where_the_cursor_cannot_move_there_are_lines(store: str, program: str) -> None:
    """On a dumb terminal, in a pipe, and in a pipe that wants colours: two lines for a step, each written once."""
    if program == "terminal":
        written = on_terminal(TOLD, store, TERM="dumb").replace("\r\n", "\n")
    else:
        wanted = "1" if program == "coloured pipe" else ""
        written, errors = in_pipe("-c", TOLD, store, CI="true", FORCE_COLOR=wanted)
        assert errors == ""
    lines = written.splitlines()
    assert [line.split(":")[0] for line in lines] == [step.name for step in steps(store) for _ in range(2)]
    assert lines[0] == f"v19_to_v20: {steps(store)[0].summary}"
    assert lines[1].startswith("v19_to_v20: 7 rows became 5, 7.0 kB became 5.0 kB, in 0.")
    assert not ESCAPE.search(written)


def test_lines_say_how_fast_it_goes_and_how_long_it_takes() -> None:
    """Measured from the first rows on: what Spark took to start says nothing of the rest. At most every two seconds."""
    now_s, out = [100.0], io.StringIO()
    step = _step(rows=1000, size=64_000)
    with shown_progress(make_console(out), clock=lambda: now_s[0]) as tell:
        tell(StepBegan(step))
        for at_s, rows in ((130, 0), (131, 100), (132, 200), (133.5, 200), (136, 600), (137, 1000)):
            now_s[0] = at_s
            tell(StepAdvanced(step, rows, rows * 64))
        tell(StepCommitted(step, {"item": Counts(1000, 999, 64_000, 63_000)}, 37.0))
    assert out.getvalue().splitlines() == [
        "v19_to_v20: A step.",
        "v19_to_v20: 100/1,000 rows 6.4 kB/64.0 kB",
        "v19_to_v20: 600/1,000 rows 38.4 kB/64.0 kB 100 rows/s 4 s left",
        "v19_to_v20: 1,000 rows became 999, 64.0 kB became 63.0 kB, in 37.0 s",
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
    assert out.getvalue().splitlines()[-1] == "v19_to_v20: 200/1,000 rows 12.8 kB/64.0 kB 10 rows/s 80 s left"


def _step(rows: int, size: int) -> StepPlan:
    works = (Work("item", "columnar", 1, rows, size),)
    return StepPlan("v19_to_v20", 19, 20, "A step.", "sha256:", (columnar("item", lambda batch: batch),), works)
