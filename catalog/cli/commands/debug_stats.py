"""`catalog debug stats`: rows, files and bytes of each collection."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from catalog.cli.answer import CommandResult
from catalog.cli.store_reader import StoreReader
from catalog.engine.log.protocol import FileKind
from catalog.engine.schema_change.copying import tables_state
from catalog.engine.schema_change.layers import LayerCache, LayeredView
from catalog.engine.schema_change.sizes import TableSize, table_sizes
from catalog.errors import RetiredError

if TYPE_CHECKING:
    from catalog.cli.app import Invocation
    from catalog.cli.context import StoreTarget
    from catalog.engine.builtins.store_metrics import StoreMetric


@dataclass(frozen=True, slots=True)
class CollectionLine:
    collection: str
    rows: int
    base_files: int
    tail_files: int
    tail_rows: int
    size: int


@dataclass(frozen=True, slots=True)
class Stats:
    store: str
    version: int
    ts: int
    frontier: int
    collections: tuple[CollectionLine, ...]
    shape: Any = None
    """With `--shape`: the input of `debug generate --like`."""
    measures: tuple[StoreMetric, ...] = ()
    """The measurements that upgrades and maintenance recorded, the oldest first."""
    tables: tuple[TableSize, ...] = ()
    """The tables as they are now; their log has a ts of its own."""
    page: str | None = None
    """With `--html`: the path of the page."""


def stats(run: Invocation, *, shape: bool, as_of: int | None, html: str | None) -> CommandResult:
    """Measure the store; with `html`, also write a page."""
    target = run.target
    if html is None:
        return CommandResult(measure(target, shape=shape, as_of=as_of))
    from catalog.cli.html.output_file import page_place  # noqa: PLC0415 - only a page needs its templates
    from catalog.cli.html.page import Stamp  # noqa: PLC0415
    from catalog.cli.html.stats import stats_page  # noqa: PLC0415

    with page_place(html) as place:
        found = measure(target, shape=shape, as_of=as_of)
        return place.answer(
            CommandResult(found), lambda: stats_page(found, Stamp.now(target.project), run.screen.redact)
        )


def measure(target: StoreTarget, *, shape: bool = False, as_of: int | None = None) -> Stats:
    """Count rows, files and bytes by collection."""
    reader = StoreReader.at(target, as_of)
    names = sorted({file.collection for file in reader.state.files.values()})
    measured = None
    if shape:
        from catalog.tools.generator.shape import measure_log  # noqa: PLC0415 - reads every row

        measured = measure_log(target.project, reader.look.log)
    return Stats(
        reader.look.place.uri,
        reader.version,
        reader.state.version,
        reader.look.state.frontier,
        tuple(_line(reader, name) for name in names),
        measured,
        () if as_of is not None else _measures(target, reader),
        () if as_of is not None else _tables(target),
    )


def _tables(target: StoreTarget) -> tuple[TableSize, ...]:
    """Measure the tables at their newest state."""
    log = target.place.tables_log()
    while (state := tables_state(log)) is not None:
        with suppress(RetiredError):  # while they were counted: there is a newer state
            return table_sizes(LayeredView(LayerCache(log), state))
    return ()


def _line(reader: StoreReader, name: str) -> CollectionLine:
    files = reader.state.files_of(name)
    base = [file for file in files if file.kind is FileKind.BASE]
    tail = [file for file in files if file.kind is FileKind.TAIL]
    added = sum(sum(reader.look.log.read(file, ["diff"])["diff"].to_pylist()) for file in tail)
    return CollectionLine(
        name,
        sum(file.rows for file in base) + added,
        len(base),
        len(tail),
        sum(file.rows for file in tail),
        sum(file.size for file in files),
    )


def _measures(target: StoreTarget, reader: StoreReader) -> tuple[StoreMetric, ...]:
    """Read the recorded measurements; a store whose rows are not protobuf yet has none."""
    from catalog.engine.builtins.migrate import attach_as_found  # noqa: PLC0415 - not for a past ts
    from catalog.engine.builtins.tables import open_builtins  # noqa: PLC0415
    from catalog.engine.store.leadership import own_stash  # noqa: PLC0415

    project = target.project
    if not project.first_proto <= reader.version <= project.current:
        return ()
    keeper = open_builtins(target.place, own_stash(project, reader.look.log), None, attach_as_found)
    return () if keeper is None else keeper.measures()
