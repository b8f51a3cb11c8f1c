"""`catalog repair` as text: the diagnosis, or the repairs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import RenderableType

from catalog.cli.commands.repair import RepairResult
from catalog.cli.text.formats import short_checksum
from catalog.engine.log.damaged_entry import Remedy

if TYPE_CHECKING:
    from catalog.engine.log.damaged_entry import DamagedEntry
    from catalog.tools.repair import Diagnosis

_DONE = {
    Remedy.RESTORE: "restored",
    Remedy.RETIRE: "retired",
    Remedy.SET_ASIDE: "set aside",
    Remedy.LEAVE_OUT: "left out",
}


def render(data: RepairResult) -> Iterator[RenderableType]:
    found, done = data.diagnosis, data.repaired
    if done is None:
        yield from _diagnosis(found)
        if found.is_sound and not found.runs:
            yield f"nothing to repair in {data.store}"
        return
    if found.damaged is not None:
        yield _repaired("log entry", found.damaged, done.kept)
    for shard, path in zip(found.mendable_shards, done.kept_of_shards, strict=True):
        yield _repaired(f"log entry of shards/{shard.id}", shard.damaged, path)
    if found.mendable_tables is not None:
        yield _repaired("log entry of tables", found.mendable_tables, done.kept_of_tables)
    for run in done.closed:
        yield f"marked as ERROR: {run.step}"
    if done.stray_step:
        yield f"cleared: the mark of a running migration to version {done.stray_step}"
    for own in done.recorded:
        yield f"recorded: {own.step} has the checksum {short_checksum(own.present)}"
    for row in done.rewritten:
        yield f"written as the log has it: `{row.collection}` {row.key}"
    yield f"{data.store} is at ts {done.ts}"


def _diagnosis(found: Diagnosis) -> Iterator[RenderableType]:
    if (entry := found.damaged) is not None:
        yield f"log entry {entry.version} is damaged: {entry.found}; {_fate(entry)}"
    for shard in found.shards:
        entry = shard.damaged
        yield f"log entry {entry.version} of shards/{shard.id} is damaged: {entry.found}; {_fate(entry)}"
    if (entry := found.tables) is not None:
        yield f"log entry {entry.version} of tables is damaged: {entry.found}; {_fate(entry)}"
    for run in found.runs:
        lives = "is alive, and is left alone" if run.lives else "is dead"
        yield f"{run.step} is RUNNING; its process (generation {run.fence[0]}, epoch {run.fence[1]}) {lives}"
    if found.stray_step:
        yield f"a migration to version {found.stray_step} is marked as running, but there is no event of it"
    for row in found.contradictions:
        yield f"{row}{'' if row.is_mendable else '; this cannot be repaired'}"
    for own in found.checksums:
        yield f"{own.step}: recorded {short_checksum(own.recorded)}, in this build {short_checksum(own.present)}"


def _fate(entry: DamagedEntry) -> str:
    if entry.obstacle:
        return f"it cannot be repaired: {entry.obstacle}"
    if entry.restored:
        return "it can be restored as it was, which is proven by digests"
    return f"a repair loses {entry.lost}"


def _repaired(what: str, entry: DamagedEntry, kept: str) -> str:
    lost = f"lost: {entry.lost}" if entry.lost else "nothing is lost"
    return f"{_DONE[entry.remedy or Remedy.SET_ASIDE]}: {what} {entry.version}; {lost}; its damaged bytes are in {kept}"
