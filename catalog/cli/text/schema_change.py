"""Schema changes in words, the same in results, on a terminal and in a pipe."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from catalog.cli.text.formats import count, duration, plural, utc_ms

if TYPE_CHECKING:
    from catalog.cli.schema_changes import ChangeShown, StageLine
    from catalog.engine.schema_change.change import Waiting

_BAR_CELLS = 10
_CLOSE = "CLOSE"
_MEASURED_BELOW_S = 10


def block(shown: ChangeShown) -> Iterator[str]:
    """Yield a change as a heading and lines below it."""
    yield f"{shown.id}  {shown.statement}   {status(shown)}"
    yield from _indented(shown.id, _facts(shown))


def status(shown: ChangeShown) -> str:  # noqa: PLR0911 - one arm each
    """Return the status of a change, and since when it has it."""
    number = shown.id
    match shown.status:
        case "PENDING" if shown.behind:
            return f"PENDING behind {_changes(shown.behind)}"
        case "PENDING" if not shown.owner:
            return "PENDING, and nobody carries it out yet"
        case "WAITING":
            return f"WAITING {waited(shown)}"
        case "RUNNING" if not shown.owner:
            return f"RUNNING, and nobody carries it out since {utc_ms(shown.since_ms)}"
        case "PENDING" | "RUNNING":
            return f"{shown.status} since {utc_ms(shown.submitted_ms)}, owner {shown.owner}"
        case "PAUSED":
            return f"PAUSED: `catalog ddl resume {number}` goes on, `catalog ddl cancel {number}` undoes it"
        case "HOLDING":
            return f"HOLDING: `catalog ddl resume {number}` goes on, `catalog ddl cancel {number}` goes back"
        case "FAILED":
            return "FAILED, and is undone: nothing is left of it"
        case "CANCELLED":
            return "CANCELLED, and is undone: nothing is left of it"
        case _:
            return f"{shown.status} in {duration(_seconds(shown.submitted_ms, shown.ended_ms or shown.now_ms))}"


def headline(shown: ChangeShown) -> str:
    """Return what a change that is not over does now, in one line."""
    match shown.status:
        case "PENDING" if shown.behind:
            return f"change {shown.id} waits for {_changes(shown.behind)} of the same tables"
        case "PENDING" | "RUNNING" | "WAITING" if not shown.owner:
            resume = f"`catalog ddl resume {shown.id}`"
            return f"nobody carries out change {shown.id} now: the next leader of the store does, or {resume}"
        case "PENDING":
            return f"change {shown.id} begins"
        case _:
            return f"{position(shown)}: {stage(shown)}"


def position(shown: ChangeShown) -> str:
    return f"stage {min(shown.stages_done + 1, len(shown.stages))} of {len(shown.stages)}"


def stage(shown: ChangeShown) -> str:
    present = shown.stages[shown.stages_done : shown.stages_done + 1]
    return present[0].text if present else "done"


def rows(shown: ChangeShown) -> Iterator[str]:
    """Yield the progress of the present stage, each time in fewer words; nothing if it counts no rows."""
    if not shown.rows_total:
        return
    done = f"{count(min(shown.rows_done, shown.rows_total))} of {plural(shown.rows_total, 'row')}"
    if shown.rows_per_s and shown.left_s:
        left_s = max(1, shown.left_s)
        left = f"about {f'{left_s:.0f} s' if left_s < _MEASURED_BELOW_S else duration(left_s)} left"
        yield f"{done}, {shown.rows_per_s:,.0f} rows/s, {left}"
        yield f"{done}, {left}"
    yield done


def waited(shown: ChangeShown) -> str:
    """Return how long a change has waited, and how long it does at most."""
    seconds = min(_seconds(shown.since_ms, shown.now_ms), shown.patience_s)
    return f"{seconds:.0f} s of {shown.patience_s:.0f} s"


def waiting(one: Waiting) -> str:
    began = f"bulk write to {one.table} at version {one.version} since {utc_ms(one.since_ms)}"
    return f"{one.who}, {began}, {plural(one.rows, 'row')} written"


def stage_lines(stages: Sequence[StageLine]) -> Iterator[str]:
    """Yield stages by their numbers; the one from which on a change cannot be undone says so."""
    for number, own in enumerate(stages, 1):
        yield f"{number:>4}  {own.text}{'; can be cancelled until here' if own.is_visible else ''}"


def key_text(key: str) -> str:
    """Return the key of a row, stored as JSON, as `id: 17`."""
    try:
        found = json.loads(key)
    except ValueError:
        return key
    if not isinstance(found, dict):
        return key
    return ", ".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in found.items())


def _facts(shown: ChangeShown) -> Iterator[tuple[str, str]]:
    failure = shown.failure
    if failure is not None:
        violations = f": {plural(failure.count, 'violation')} at ts {failure.at_ts}" if failure.keys else ""
        yield "why", f"{failure.rule}{violations}; {failure.why}"
        if failure.keys:
            yield "keys", "; ".join(map(key_text, failure.keys))
        yield "next", "correct the rows or the statement, then run it again"
        return
    if shown.is_over:
        if not shown.stages:  # of what had nothing to do, the reason was noted
            yield "why", "; ".join(own.text for own in shown.events[-1:])
        return
    if shown.stages:
        progress = next(rows(shown), "")
        yield position(shown), f"{stage(shown)}{f'  {_bar(shown)}  {progress}' if progress else ''}"
    for one in shown.waiting_on:
        yield "waiting for", waiting(one)
    to_come = [own for own in shown.stages[shown.stages_done + 1 :] if own.kind != _CLOSE]
    if to_come:
        yield "next", ", ".join(own.text for own in to_come)
    if shown.can_be_cancelled:
        last = next((own.text for own in shown.stages if own.is_visible), "")
        yield "undo", f"`catalog ddl cancel {shown.id}`{f', until: {last}' if last else ''}"
    else:
        yield "undo", "no longer: it is visible"


def _indented(number: int, facts: Iterator[tuple[str, str]]) -> Iterator[str]:
    found = list(facts)
    width = max((len(name) for name, _ in found), default=0)
    margin = " " * (len(str(number)) + 2)
    yield from (f"{margin}{name:<{width}}  {text}" for name, text in found)


def _bar(shown: ChangeShown) -> str:
    full = _BAR_CELLS * min(shown.rows_done, shown.rows_total) // max(1, shown.rows_total)
    return "█" * full + "░" * (_BAR_CELLS - full)


def _changes(numbers: Sequence[int]) -> str:
    return f"change{'' if len(numbers) == 1 else 's'} {', '.join(map(str, numbers))}"


def _seconds(began_ms: int, ended_ms: int) -> float:
    return max(0, ended_ms - began_ms) / 1000
