"""Vacuum of a whole store on request, beside its leader; it fences no process.

A leader does the same by itself after its commits. `engine/log/maintenance.py` says which files may be deleted.
"""

from __future__ import annotations

from dataclasses import dataclass

from catalog.engine.builtins.tables import maintain_builtins
from catalog.engine.log.maintenance import Policy, clean, plan_cleaning
from catalog.engine.log.place import StorePlace
from catalog.engine.log.replica import newest_state
from catalog.engine.schema_change.copying import tables_state
from catalog.engine.schema_change.layers import LayerCache
from catalog.engine.schema_change.maintenance import with_needs
from catalog.engine.storage.layout import shard_ids
from catalog.engine.store.leadership import own_stash
from catalog.engine.store.probed_place import require_probed


@dataclass(frozen=True, slots=True)
class VacuumResult:
    """The outcome of a vacuum, or of its dry run."""

    frontier: int
    """The retention frontier of the stash afterwards."""
    files: int
    bytes: int


def vacuum_store(place: StorePlace, policy: Policy, *, dry_run: bool = False) -> VacuumResult:
    """Move the retention frontier of the stash, every shard and the tables, and delete the files of retired states.

    Of tables nothing is retired that a schema change or a bulk write under way still reads.
    """
    place.identity()
    frontiers, deleted = list[int](), list[int]()
    stash_log = place.log()
    if not dry_run:  # a store that this build cannot serve is refused before anything is deleted
        require_probed(place.storage, place.project, own_stash(place.project, stash_log).view())
    tables_log = place.tables_log()
    logs = [(log, policy) for log in (stash_log, *map(place.shard_log, sorted(shard_ids(place.storage))))]
    if tables_state(tables_log) is not None:
        logs.append((tables_log, with_needs(policy, LayerCache(tables_log))))
    for log, own in logs:
        sizes, state = {file.path: file.size for file in log.files()}, newest_state(log)
        if dry_run:
            planned = plan_cleaning(log, state, own)
            frontiers.append(planned.frontier)
            paths = (*planned.spent, *planned.orphans)
        else:
            done = clean(log, state, own)
            frontiers.append(done.state.frontier)
            paths = done.deleted
        deleted += [sizes.get(path, 0) for path in paths]
    if not dry_run:
        maintain_builtins(place, own_stash(place.project, stash_log))
    return VacuumResult(frontiers[0], len(deleted), sum(deleted))
