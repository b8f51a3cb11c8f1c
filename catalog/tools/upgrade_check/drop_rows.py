"""The removal of rows from a scratch copy, in one commit however many they are. Never used on a store itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet

import pyarrow as pa
import pyarrow.compute as pc

from catalog.engine.base.arrow import binary_column
from catalog.engine.base.project import Project
from catalog.engine.log.protocol import DataFile, FileKind, Operation
from catalog.engine.migrate.row_errors import Keys, add_keys
from catalog.engine.migrate.system_rows import SystemRows
from catalog.engine.stash.compaction import base_tables
from catalog.engine.stash.view import BaseFileCache, load_view
from catalog.tools.upgrade_check.references import ReferenceGraph


def drop_rows(journal: SystemRows, rows: Mapping[str, AbstractSet[bytes]], duplicated: Collection[str] = ()) -> None:
    """Take out these rows, and in collections with duplicates all rows of a key but one."""
    adds: list[DataFile] = []
    removes: list[DataFile] = []
    for collection in sorted({*(name for name, keys in rows.items() if keys), *duplicated}):
        files = journal.state.files_of(collection)
        kept = _kept(journal, collection, rows.get(collection, set()))
        adds += [journal.log.write(collection, FileKind.BASE, journal.fence, table) for table in kept]
        removes += files
    if removes:
        journal.append(Operation.TRANSACTION, (), {}, adds=adds, removes=removes)


def drop_referring_rows(journal: SystemRows, project: Project, version: int, excluded: Keys) -> Counter[str]:
    """Take out every row that refers to excluded rows, and exclude it too; return how many, by collection."""
    if not excluded:
        return Counter()
    view = load_view(BaseFileCache(journal.log), journal.state)
    referring = ReferenceGraph(project, version).left_out(view, excluded)
    add_keys(excluded, referring)
    drop_rows(journal, referring)
    return Counter({name: len(keys) for name, keys in referring.items()})


def _kept(journal: SystemRows, collection: str, dropped: AbstractSet[bytes]) -> Iterator[pa.Table]:
    view, dropped_keys = journal.view(collection), binary_column(sorted(dropped)).combine_chunks()
    last: bytes | None = None
    for table in base_tables(view, collection, journal.state.version):
        kept = table.filter(pc.invert(pc.is_in(table["key"], value_set=dropped_keys)))
        if not kept.num_rows:
            continue
        keys = kept["key"].combine_chunks()
        first = pa.array([keys[0].as_py() != last])
        kept = kept.filter(pa.concat_arrays([first, pc.not_equal(keys[1:], keys[:-1])]))
        last = keys[-1].as_py()
        if kept.num_rows:
            yield kept
