"""The verbs that mend or remove a store: repair and clean. They print nothing."""

from __future__ import annotations

from catalog import removing, repairing
from catalog.cli.answers import Cleaned, Mended
from catalog.cli.environment import Environment
from catalog.cli.results import Answer
from catalog.cli.upgrading import holder


def diagnose(environment: Environment) -> Answer:
    """What is wrong with a store that a crash can leave behind; nothing is changed."""
    found = repairing.diagnose(environment.place)
    return Answer(Mended(environment.storage.uri, found, None))


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
    return Answer(Cleaned(done.uri, done=True, files=done.files, size=done.bytes, left=done.others))
