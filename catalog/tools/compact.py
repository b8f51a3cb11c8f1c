"""Compaction of a whole store on request, beside its leader; it fences no process.

A leader does the same by itself after its commits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from catalog.engine.builtins.tables import maintain_builtins
from catalog.engine.log.place import StorePlace
from catalog.engine.log.protocol import Operation
from catalog.engine.schema_change.copying import tables_state
from catalog.engine.schema_change.folding import FoldingTask
from catalog.engine.schema_change.maintenance import orphaned_collections, reorganise
from catalog.engine.schema_change.replica import TablesReplica
from catalog.engine.schema_change.store import Draft, TablesStore
from catalog.engine.storage.layout import TABLES
from catalog.engine.store.leadership import own_stash
from catalog.engine.store.probed_place import require_probed


@dataclass(frozen=True, slots=True)
class CompactResult:
    ts: int
    collections: tuple[str, ...]
    """The collections whose files were merged."""
    files_before: int
    files_after: int


def compact_store(place: StorePlace, collections: Sequence[str] = ()) -> CompactResult:
    """Merge the files of each collection, or of some, into one base file; without names those of tables too."""
    place.identity()
    stash = own_stash(place.project, place.log())
    require_probed(place.storage, place.project, stash.view())
    stash.join()
    for name in collections:
        stash.registry.named(name)
    before = [file.collection for file in stash.state.files.values()]
    due = [name for name in sorted({*before}) if before.count(name) > 1 and (not collections or name in collections)]
    for name in due:
        stash.consolidate(name)
    maintain_builtins(place, stash)
    of_tables = _compact_tables(place) if not collections else CompactResult(0, (), 0, 0)
    return CompactResult(
        stash.ts,
        (*due, *of_tables.collections),
        len(before) + of_tables.files_before,
        len(stash.state.files) + of_tables.files_after,
    )


def _compact_tables(place: StorePlace) -> CompactResult:
    """Fold every collection of the tables that has several files, and remove those that no schema names."""
    if tables_state(place.tables_log()) is None:
        return CompactResult(0, (), 0, 0)
    store = TablesStore.open(place.tables_log())
    store.join()
    replica = store.replica
    before, folded = len(store.state.files), list[str]()
    with store.own():
        for name in sorted(store.view.collections()):
            if len(store.view.files_of(name)) > 1 and reorganise(replica, name, FoldingTask.FOLD):
                folded.append(f"{TABLES}/{name}")
    store.commit(_without_orphans)
    return CompactResult(store.ts, tuple(folded), before, len(store.state.files))


def _without_orphans(replica: TablesReplica) -> Draft | None:
    """Draft the removal of the files of elements that no schema names; none if there are none."""
    gone = [file for name in orphaned_collections(replica) for file in replica.view.files_of(name)]
    return Draft(Operation.REORGANISE, removes=tuple(gone)) if gone else None
