"""`catalog debug dump`: every stored row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult
from catalog.cli.store_reader import ChangedRow, StoreReader
from catalog.engine.log.protocol import FileKind

if TYPE_CHECKING:
    from catalog.cli.app import Invocation


@dataclass(frozen=True, slots=True)
class Dump:
    store: str
    version: int
    ts: int
    rows: Iterable[ChangedRow]
    """Read while they are iterated over, once."""


def dump(
    run: Invocation, *, only: tuple[str, ...], ignore: tuple[str, ...], consolidate: bool, as_of: int | None
) -> CommandResult:
    """Read the stored rows by collection, with their diffs, or consolidated to the present rows."""
    reader = StoreReader.at(run.target, as_of)
    for name in (*only, *ignore):
        reader.type_of(name)
    stored = {file.collection for file in reader.state.files.values()}
    names = [name for name in sorted(stored) if (not only or name in only) and name not in ignore]
    changes = _consolidated if consolidate else _stored
    rows = (change for name in names for change in changes(reader, name))
    return CommandResult(Dump(reader.look.place.uri, reader.version, reader.state.version, rows))


def _stored(reader: StoreReader, name: str) -> Iterator[ChangedRow]:
    files = reader.state.files_of(name)
    for file in sorted(files, key=lambda file: (file.ts_min, file.kind is FileKind.TAIL, file.path)):
        for batch in reader.look.log.read(file).to_batches():
            for row in batch.to_pylist():
                yield ChangedRow(name, *reader.as_json(name, row["key"], row["value"]), row["ts"], row["diff"])


def _consolidated(reader: StoreReader, name: str) -> Iterator[ChangedRow]:
    for key, value in reader.view(name).rows(name):
        yield ChangedRow(name, *reader.as_json(name, key, value), reader.state.version, 1)
