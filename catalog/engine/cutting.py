"""Taking rows out of a scratch copy, in one commit however many they are. Never used on a store itself."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet

import pyarrow as pa
import pyarrow.compute as pc

from catalog.engine.journal import Journal
from catalog.log.protocol import DataFile, FileKind, Operation
from catalog.stash.arrays import binary_column
from catalog.stash.consolidation import base_tables


def cut(journal: Journal, rows: Mapping[str, AbstractSet[bytes]], doubled: Collection[str] = ()) -> None:
    """Take out these rows, and in doubled collections all rows of a key but one."""
    adds: list[DataFile] = []
    removes: list[DataFile] = []
    for collection in sorted({*(name for name, keys in rows.items() if keys), *doubled}):
        files = [file for file in journal.state.files.values() if file.collection == collection]
        kept = _kept(journal, collection, rows.get(collection, set()))
        adds += [journal.log.write(collection, FileKind.BASE, journal.fence, table) for table in kept]
        removes += files
    if removes:
        journal.append(Operation.TRANSACTION, (), {}, adds=adds, removes=removes)


def _kept(journal: Journal, collection: str, gone: AbstractSet[bytes]) -> Iterator[pa.Table]:
    view, sought = journal.view(collection), binary_column(sorted(gone)).combine_chunks()
    last: bytes | None = None
    for table in base_tables(view, collection, journal.state.version):
        kept = table.filter(pc.invert(pc.is_in(table["key"], value_set=sought)))
        if not kept.num_rows:
            continue
        keys = kept["key"].combine_chunks()
        first = pa.array([keys[0].as_py() != last])
        kept = kept.filter(pa.concat_arrays([first, pc.not_equal(keys[1:], keys[:-1])]))
        last = keys[-1].as_py()
        if kept.num_rows:
            yield kept
