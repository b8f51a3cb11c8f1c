"""Answers as texts and tables, for people. Builds them; `render` prints them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import ndiff
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.filesize import decimal
from rich.table import Column, Table

from catalog.cli import answers, feeds, inquiries
from catalog.cli.changes import changes, dump, subscribed
from catalog.cli.diagnoses import mended, short
from catalog.cli.grades import examinations
from catalog.cli.grids import csv, grid
from catalog.cli.lines import compact, nested
from catalog.cli.results import plain
from catalog.cli.sparklines import measured
from catalog.cli.timelines import graph, history
from catalog.cli.times import shown_time
from catalog.cli.verdicts import verdicts
from catalog.editing import Edit

if TYPE_CHECKING:
    from catalog.engine.events import Event

NONE = "-"
"""Where there is nothing to show."""


def told(data: Any) -> Iterator[RenderableType]:  # noqa: ANN401 - whatever a command answers
    """What is shown of an answer, part by part."""
    yield from _TELLING[type(data)](data)


def table(names: Sequence[str], numbers: Sequence[str] = (), rows: Iterable[Sequence[object]] = ()) -> Table:
    """A table of texts and, after them, of numbers."""
    made = Table(*(Column(name, overflow="fold") for name in names), box=SIMPLE_HEAD, pad_edge=False)
    for name in numbers:
        made.add_column(name, justify="right")
    for row in rows:
        made.add_row(*map(str, row))
    return made


def plan_table(steps: Sequence[answers.PlannedStep]) -> Table:
    """Each step by the forms of its actions, with the files that it replaces as they are now."""
    made = table(["step", "form", "collections"], ["files", "rows", "bytes"])
    for step in steps:
        nothing = answers.PlannedWork("no change", (step.reason,), 0, 0, 0, replaces=False)
        for number, work in enumerate(step.works or (nothing,)):
            sums = (f"{work.files:,}", f"{work.rows:,}", decimal(work.size)) if work.replaces else (NONE,) * 3
            made.add_row("" if number else step.name, work.form, ", ".join(work.collections), *sums)
    return made


def steps_table(steps: Sequence[answers.StepDone]) -> Table:
    made = table(["step"], ["rows before", "rows after", "bytes", "seconds"])
    for step in steps:
        size = f"{decimal(step.bytes_before)} to {decimal(step.bytes_after)}"
        made.add_row(step.name, f"{step.rows_before:,}", f"{step.rows_after:,}", size, f"{step.seconds:.1f}")
    return made


def events_table(events: Iterable[Event]) -> Table:
    """What each run of a step did."""
    made = table(["version", "step", "state"], ["rows before", "rows after", "bytes", "seconds"])
    for event in events:
        value = event.value
        counted, ended = value.HasField("rows_after"), value.HasField("completed_ms")
        made.add_row(
            str(value.version),
            value.name,
            event.state.name,
            *((f"{value.rows_before:,}", f"{value.rows_after:,}") if counted else (NONE, NONE)),
            f"{decimal(value.bytes_before)} to {decimal(value.bytes_after)}" if counted else NONE,
            f"{(value.completed_ms - value.started_ms) / 1000:.1f}" if ended else NONE,
        )
    return made


def _started(data: answers.Started) -> Iterator[RenderableType]:
    if data.backup is not None:
        yield f"copied to {data.backup.target} first: {data.backup.rows:,} rows"
    if data.steps:
        yield steps_table(data.steps)
    if data.mode == "read-only" and data.version_before not in {None, data.version}:
        yield f"{data.store} can be upgraded from version {data.version_before} to {data.version}; it was left as it is"
        return
    if data.version_before is None:
        happened = "initialised at"
    elif data.steps:
        happened = f"upgraded from version {data.version_before} to"
    else:
        happened = "up to date at"
    yield (
        f"{data.store} is {happened} version {data.version}"
        f" (generation {data.deploy_generation}, epoch {data.epoch}, ts {data.ts}, {data.seconds:.1f} s)"
    )


def _initialized(data: answers.Initialized) -> Iterator[RenderableType]:
    if data.done:
        yield f"{data.store} is initialised at version {data.version}"
    elif data.exists:
        yield f"nothing to do: {data.store} is there, at version {data.version}"
        return
    else:
        yield f"{data.store} would be initialised at version {data.version}; nothing was written"
    yield table(["collection"], ["rows"], ((name, f"{rows:,}") for name, rows in data.rows.items() if rows))


def _founded(data: answers.Founded) -> Iterator[RenderableType]:
    yield f"made the project {data.name} in {data.folder}"
    yield from (f"  {file}" for file in data.written)
    yield f"\n{data.left}\n\nnext, in that folder:"
    yield from (f"  {command}" for command in data.then)
    yield "README.md has the rest"


def _created(data: answers.Created) -> Iterator[RenderableType]:
    yield data.summary
    yield from (f"  {file}" for file in data.written)
    yield from (f"  {file} (removed)" for file in data.removed)
    yield "" if data.ready else "\nLeft to do:\n"
    yield data.left
    if not data.ready:
        yield f"when it is done: {data.then}"


def _planned(data: answers.Planned) -> Iterator[RenderableType]:
    if not data.steps:
        yield f"nothing to do: {data.store} is at version {data.version}"
        return
    yield f"{data.store} would go from version {data.version} to {data.until}; nothing was written"
    yield plan_table(data.steps)
    yield (
        f"{data.rows_to_rewrite:,} rows and {decimal(data.bytes_to_rewrite)} to rewrite,"
        " as the files are now; - where none is replaced"
    )


def _applied(data: answers.Applied) -> Iterator[RenderableType]:
    if not data.steps:
        yield f"nothing to do: {data.store} is at version {data.version}"
        return
    yield steps_table(data.steps)
    left = data.current - data.version
    rest = f"; {left} more to apply" if left else ""
    yield f"{data.store} went from version {data.version_before} to {data.version}{rest}"


def _info(data: answers.Info) -> Iterator[RenderableType]:
    yield f"{data.store} is at version {data.version}, ts {data.ts}" + (_pending(data.pending))
    yield f"last led by {data.holder or 'nobody yet'} (generation {data.deploy_generation}, epoch {data.epoch})"
    yield f"this build is {data.build}: versions {data.build_minimum} to {data.build_version}"
    if data.copy_of:
        yield f"a copy of {data.copy_of}"
    names = ["version", "step", "state", "checksum", "from", "started", "completed"]
    made = table(names, ["rows", "bytes"])
    for line in data.versions:
        made.add_row(
            str(line.version),
            line.name or NONE,
            line.state or NONE,
            line.checksum or NONE,
            NONE if line.previous is None else str(line.previous),
            NONE if line.started_ms is None else shown_time(line.started_ms),
            NONE if line.completed_ms is None else shown_time(line.completed_ms),
            NONE if line.rows_after is None else f"{line.rows_after:,}",
            NONE if line.bytes_after is None else decimal(line.bytes_after),
        )
    yield made
    for line in data.versions:
        if line.error:
            yield f"{line.name} failed: {line.error}"


def _pending(count: int) -> str:
    return "" if not count else "; 1 migration is pending" if count == 1 else f"; {count} migrations are pending"


def _validated(data: answers.Validated) -> Iterator[RenderableType]:
    made = table(["migration", "verdict", "recorded", "in this build"])
    for own in data.migrations:
        made.add_row(own.name, own.verdict, short(own.recorded), ", ".join(map(short, own.present)) or NONE)
    if data.migrations:
        yield made
    else:
        yield f"{data.store} has no migration behind it: it was initialised at version {data.version}"
    for snapshot in data.snapshots:
        if snapshot.verdict != "ok":
            yield f"the types of version {snapshot.version}: {snapshot.found}"
    if all(snapshot.verdict == "ok" for snapshot in data.snapshots):
        yield f"the types of {len(data.snapshots)} versions are as they were frozen"


def _undone(data: answers.Undone) -> Iterator[RenderableType]:
    if not data.steps:
        yield f"nothing to do: {data.store} is at version {data.version}"
        return
    if data.done:
        yield f"undone: {', '.join(data.steps)}; {data.store} is at version {data.version} again"
    else:
        yield f"{data.store} goes back from version {data.version_before} to {data.version}: {', '.join(data.steps)}"


def _aborted(data: answers.Aborted) -> Iterator[RenderableType]:
    if not data.steps:
        yield f"nothing to do: no migration is said to run in {data.store}"
        return
    if data.done:
        yield f"given up: {', '.join(data.steps)}; whoever ran it can write no more"
    else:
        yield f"{', '.join(data.steps)} is said to run in {data.store}"


def _rows(data: answers.Rows) -> Iterator[RenderableType]:
    for row in data.rows:
        yield compact(row.key)
        yield from (f"  {line}" for line in nested(row.value))
    count = f"{len(data.rows):,} rows" if len(data.rows) != 1 else "1 row"
    more = ", and there are more: see --limit" if data.more else ""
    yield f"{count} of {data.collection} at version {data.version}, ts {data.ts}{more}"


def _configured(data: answers.Configured) -> Iterator[RenderableType]:
    rows = ((own.name, NONE if own.value is None else own.value, own.source) for own in data.settings)
    yield table(["setting", "value", "source"], rows=rows)


def _epoch(data: answers.Epoch) -> Iterator[RenderableType]:
    signs = {"beating": "it may still be running", "released": "it has ended", "none": "it shows no sign of life"}
    yield f"generation {data.deploy_generation}, epoch {data.epoch}"
    yield f"held by {data.holder or 'nobody yet'}: {signs[data.sign]}"


def _stats(data: answers.Stats) -> Iterator[RenderableType]:
    yield f"{data.store} is at version {data.version}, ts {data.ts}; it can be read from ts {data.frontier} on"
    made = table(["collection"], ["rows", "base files", "tail files", "tail rows", "bytes"])
    for own in data.collections:
        counts = (own.rows, own.base_files, own.tail_files, own.tail_rows)
        made.add_row(own.collection, *(f"{count:,}" for count in counts), decimal(own.size))
    yield made
    rows, size = sum(own.rows for own in data.collections), sum(own.size for own in data.collections)
    yield f"{rows:,} rows, {decimal(size)}"
    yield from measured(data.measures)
    if data.shape is not None:
        yield json.dumps(plain(data.shape))
    if data.page is not None:
        yield f"the page is {data.page}"


def _edited(data: answers.Edited) -> Iterator[RenderableType]:
    if data.ts is None:
        yield f"nothing to do: {data.collection} {compact(data.key)} is as it should be"
    else:
        verb = "deleted" if data.after is None else "written"
        yield f"{data.collection} {compact(data.key)} was {verb} at ts {data.ts}"


def _edit(data: Edit) -> Iterator[RenderableType]:
    """A change before it is made: what goes, and what comes."""
    yield f"{data.collection} {compact(data.key)}, version {data.version}, ts {data.ts}"
    before, after = list(nested(data.before)), [] if data.after is None else list(nested(data.after))
    for line in ndiff(before, after):
        if not line.startswith("?"):
            yield line


def _copies(data: answers.Copies) -> Iterator[RenderableType]:
    own = data.copied
    how = " and anonymised" if data.anonymised else ""
    yield f"{own.source} at ts {own.ts} was copied{how} to {own.target}: {own.rows:,} rows at version {own.version}"


def _made_up(data: answers.MadeUp) -> Iterator[RenderableType]:
    made = data.generated
    yield f"{made.uri} is made up at version {made.version}: {made.total:,} rows"


def _health(data: answers.Health) -> Iterator[RenderableType]:
    for finding in data.report.findings:
        yield f"{finding.code} {finding.severity} {finding.where}"
        yield f"  what: {finding.what}"
        yield f"  fix:  {finding.repair}"
    verdict = "is in order" if data.report.ok else "is not in order"
    counts = f"{data.report.entries:,} entries, {data.report.files:,} files, {data.report.rows:,} rows"
    yield f"{data.store} {verdict}: {counts}"


def _compacted(data: answers.Compacted) -> Iterator[RenderableType]:
    if data.files_after == data.files_before:
        yield f"nothing to do: {data.store} has {data.files_before:,} files"
    else:
        yield f"{data.files_before:,} files became {data.files_after:,}: {', '.join(data.collections)}"


def _vacuumed(data: answers.Vacuumed) -> Iterator[RenderableType]:
    verb = "deleted" if data.done else "would be deleted"
    yield f"{data.files:,} files with {decimal(data.size)} {verb}; {data.store} can be read from ts {data.frontier} on"


def _cleaned(data: answers.Cleaned) -> Iterator[RenderableType]:
    verb = "was removed" if data.done else "would be removed"
    yield f"{data.store} {verb}: {data.files:,} files, {decimal(data.size)}"
    if data.unfenced is not None:
        yield f"its leader could not be fenced, and may leave files behind: {data.unfenced}"
    for path in data.left:
        yield f"left alone, because it is not the store's: {path}"


_TELLING: Mapping[type, Callable[[Any], Iterator[RenderableType]]] = {
    answers.Started: _started,
    answers.Initialized: _initialized,
    answers.Founded: _founded,
    answers.Created: _created,
    answers.Planned: _planned,
    answers.Applied: _applied,
    answers.Info: _info,
    answers.Validated: _validated,
    answers.History: history,
    answers.Graph: graph,
    answers.Undone: _undone,
    answers.Aborted: _aborted,
    answers.Rows: _rows,
    inquiries.Queried: grid,
    inquiries.Csv: csv,
    answers.Configured: _configured,
    answers.Examinations: examinations,
    answers.Script: lambda data: iter([data.script.rstrip("\n")]),
    answers.Epoch: _epoch,
    answers.Stats: _stats,
    feeds.Dump: dump,
    feeds.Changes: changes,
    feeds.Subscribed: subscribed,
    answers.Edited: _edited,
    Edit: _edit,
    answers.Mended: mended,
    answers.Checked: verdicts,
    answers.Copies: _copies,
    answers.MadeUp: _made_up,
    answers.Health: _health,
    answers.Compacted: _compacted,
    answers.Vacuumed: _vacuumed,
    answers.Cleaned: _cleaned,
}
