"""What is wrong with a store and can be mended, and what was mended, as texts for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import RenderableType

from catalog.cli import answers

if TYPE_CHECKING:
    from catalog.log.quarantine import Torn
    from catalog.repairing import Diagnosis


def mended(data: answers.Mended) -> Iterator[RenderableType]:
    found, done = data.diagnosis, data.repaired
    if done is None:
        yield from _diagnosis(found)
        if found.is_sound and not found.runs:
            yield f"nothing to repair in {data.store}"
        return
    if done.set_aside:
        yield f"set aside: the torn log entry, its bytes are in {done.set_aside}"
    for path in done.set_aside_of_shards:
        yield f"set aside: the torn log entry of a shard, its bytes are in {path}"
    for run in done.closed:
        yield f"marked as ERROR: {run.step}"
    if done.stray_step:
        yield f"no migration to version {done.stray_step} is said to run any more"
    for own in done.recorded:
        yield f"recorded: {own.step} has the checksum {short(own.present)}"
    yield f"{data.store} is at ts {done.ts}"


def _diagnosis(found: Diagnosis) -> Iterator[RenderableType]:
    if found.torn is not None:
        yield f"log entry {found.torn.version} is torn ({found.torn.found}); {_fate(found.torn)}"
    for shard in found.shards:
        torn = shard.torn
        yield f"log entry {torn.version} of shards/{shard.id} is torn ({torn.found}); {_fate(torn)}"
    for run in found.runs:
        lives = "lives, and is left alone" if run.lives else "is dead"
        yield f"{run.step} is said to run; its process (generation {run.fence[0]}, epoch {run.fence[1]}) {lives}"
    if found.stray_step:
        yield f"a migration to version {found.stray_step} is said to run, and there is no event of it"
    for own in found.checksums:
        yield f"{own.step}: recorded {short(own.recorded)}, in this build {short(own.present)}"


def _fate(torn: Torn) -> str:
    return f"it cannot be set aside: {torn.obstacle}" if torn.obstacle else "it was never acknowledged"


def short(checksum: str) -> str:
    """So much of a checksum as tells it from others."""
    return checksum.removeprefix("sha256:")[:12]
