"""`catalog table load`: write the rows of parquet files to a table, in one commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from catalog.cli.answer import CommandResult
from catalog.cli.store_tables import tables_with
from catalog.errors import UsageError

if TYPE_CHECKING:
    from catalog.cli.app import Invocation


@dataclass(frozen=True, slots=True)
class TableLoaded:
    store: str
    table: str
    files: int
    rows: int
    ts: int
    """Of the commit."""
    upserted: bool
    """True if rows that were there were replaced."""


def load(run: Invocation, *, name: str, files: Sequence[str], upsert: bool) -> CommandResult:
    """Append the rows of all files, or upsert them; nothing is written if one of them does not fit."""
    with tables_with(run.target, name) as tables:
        table = tables[name]
        frame = _frame(files)
        with run.screen.waiting(f"writing {frame.num_rows:,} rows to {table.name}"):
            ts = table.upsert(frame) if upsert else table.append(frame)
        loaded = TableLoaded(run.target.place.uri, table.name, len(files), frame.num_rows, ts, upsert)
    return CommandResult(loaded)


def _frame(files: Sequence[str]) -> pa.Table:
    parts = [_read(file) for file in files]
    for file, part in zip(files, parts, strict=True):
        if not part.schema.equals(parts[0].schema):
            raise UsageError(
                f"{file} has other columns or types than {files[0]}",
                "all files of a load are written in one commit, as one frame",
                "load them one after the other, or make them alike",
            )
    return pa.concat_tables(parts)


def _read(file: str) -> pa.Table:
    try:
        with pq.ParquetFile(Path(file)) as found:
            return found.read()
    except (OSError, ValueError, pa.ArrowException) as error:  # the second of a path with a NUL in it
        raise UsageError(
            f"{file} cannot be read as parquet: {error}", "nothing was written", "name parquet files of this machine"
        ) from error
