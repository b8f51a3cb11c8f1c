"""The verbs that mend or remove a store: repair and clean. They print nothing."""

from __future__ import annotations

from catalog import removing, repairing
from catalog.cli.answers import Cleaned, Mended
from catalog.cli.environment import Environment
from catalog.cli.results import Answer
from catalog.errors import CatalogError, ChecksumError, FindingsError, NotRepairableError
from catalog.leading import holder


def diagnose(environment: Environment, *, checksums: bool = False) -> Answer:
    """What a crash has left behind in a store, and what of it a repair would not mend; nothing is changed."""
    uri, found = environment.storage.uri, repairing.diagnose(environment.place)
    error: CatalogError | None = None
    if found.torn is not None and found.torn.obstacle:
        error = NotRepairableError(f"{uri}/stash", found.torn.version, found.torn.obstacle)
    elif lost := [shard for shard in found.shards if shard.torn.obstacle]:
        error = NotRepairableError(f"{uri}/shards/{lost[0].id}", lost[0].torn.version, lost[0].torn.obstacle)
    elif found.checksums and not checksums:
        error = ChecksumError(", ".join(own.step for own in found.checksums))
    elif not found.is_sound:
        many = len(found.dead) + len(found.checksums) + len(found.shards)
        count = many + (found.torn is not None) + bool(found.stray_step)
        error = FindingsError(uri, count, "`catalog repair` mends it, without --dry-run")
    return Answer(Mended(uri, found, None), error)


def is_mendable(diagnosis: repairing.Diagnosis, *, checksums: bool) -> bool:
    """Whether a repair would do anything."""
    if diagnosis.torn is not None and diagnosis.torn.obstacle:
        return False
    own = diagnosis.torn or diagnosis.dead or diagnosis.stray_step or diagnosis.mendable_shards
    return bool(own or (checksums and diagnosis.checksums))


def repair(environment: Environment, diagnosis: repairing.Diagnosis, *, checksums: bool = False) -> Answer:
    """Mend what was diagnosed."""
    repaired = repairing.repair(environment.place, diagnosis, checksums=checksums)
    return Answer(Mended(environment.storage.uri, diagnosis, repaired))


def name_of(environment: Environment) -> str:
    """What a store is called: the last part of its address."""
    return environment.storage.uri.rstrip("/").rpartition("/")[2]


def clean(environment: Environment, *, dry_run: bool = False) -> Answer:
    """Remove a store; what is at its place and not its own stays."""
    project, storage, options = environment.project, environment.storage, environment.options
    if dry_run:
        plan = removing.plan_removal(project, storage, options)
        return Answer(Cleaned(storage.uri, done=False, files=len(plan.files), size=plan.bytes, left=plan.others))
    done = removing.remove_store(project, storage, options, holder())
    return Answer(
        Cleaned(done.uri, done=True, files=done.files, size=done.bytes, left=done.others, unfenced=done.unfenced)
    )
