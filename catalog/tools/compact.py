"""Compaction of a whole store on request, beside its leader; it fences no process.

A leader does the same by itself after its commits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from catalog.engine.builtins.tables import maintain_builtins
from catalog.engine.log.place import StorePlace
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
    """Merge the files of each collection, or of some, into one base file."""
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
    return CompactResult(stash.ts, tuple(due), len(before), len(stash.state.files))
