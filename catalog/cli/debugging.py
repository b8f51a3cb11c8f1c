"""The verbs that check, copy, make up and look after whole stores. They print nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalog.cli.answers import Checked, Compacted, Copies, Health, MadeUp, Unchecked, Vacuumed
from catalog.cli.environment import Environment
from catalog.cli.results import Answer
from catalog.cli.settings import seconds
from catalog.errors import CatalogError, FindingsError, UpgradeCheckError, UsageError
from catalog.log.storage import open_storage
from catalog.notices import Observer, ignore
from catalog.project import Place

if TYPE_CHECKING:
    from catalog.anonymising import Anonymiser
    from catalog.engine.verdict import Verdict
    from catalog.generator.statistics import Statistics
    from catalog.stash.stash import Stash


def copy(
    environment: Environment,
    target: str,
    *,
    target_options: Mapping[str, str] | None = None,
    anonymise: bool = False,
    key: str | None = None,
) -> Answer:
    """A consistent copy of a store, at an empty place; the target has the source's storage options, and its own."""
    from catalog.copying import copy_store  # noqa: PLC0415 - a verb loads what it needs, and no other's

    options = {**environment.options, **(target_options or {})}
    source, project = environment.storage, environment.project
    rewrite = _anonymiser(environment, key) if anonymise else None
    where = open_storage(target, options)
    copied = copy_store(project, source, environment.options, where, options, rewrite=rewrite)
    return Answer(Copies(copied, anonymised=anonymise))


def _anonymiser(environment: Environment, key: str | None) -> Anonymiser:
    from catalog.anonymising import Anonymiser, require_strong  # noqa: PLC0415

    try:
        require_strong(key)
    except ValueError as error:
        raise UsageError(
            f"the key of an anonymised copy is too short: {error}",
            "the same names become the same replacements under a key, and under no other",
            "give one of 16 characters or more, or none",
        ) from error
    return Anonymiser.of(environment.project, environment.storage, key)


def upgrade_check(
    environments: Sequence[Environment], *, scratch: str | None = None, observer: Observer = ignore
) -> Answer:
    """The full upgrade of a scratch copy of each store, and everything that is wrong with it."""
    from catalog.checking import check_upgrade  # noqa: PLC0415

    verdicts: list[Verdict] = []
    unchecked: list[Unchecked] = []
    for own in environments:
        place = None if scratch is None else Path(scratch)
        try:
            verdicts.append(
                check_upgrade(own.project, own.store, own.options, spark=own.spark, scratch=place, observer=observer)
            )
        except CatalogError as error:
            if len(environments) == 1:
                raise
            unchecked.append(Unchecked(own.store, error.what, error.why, error.next))
    failed = [*(verdict.store for verdict in verdicts if not verdict.ok), *(own.store for own in unchecked)]
    wrong = UpgradeCheckError(tuple(failed), len(environments)) if failed else None
    return Answer(Checked(tuple(verdicts), tuple(unchecked)), wrong)


def generate(
    environment: Environment, *, version: int | None = None, rows: int = 1000, seed: int = 0, like: str | None = None
) -> Answer:
    """A made-up store, in an empty place."""
    from catalog.generator import generate as make_up  # noqa: PLC0415

    project = environment.project
    wanted = project.minimum if version is None else version
    if not project.minimum <= wanted <= project.current:
        raise UsageError(
            f"there is no version {wanted} to make a store of",
            f"this build knows versions {project.minimum} to {project.current}",
            "give --version one of these",
        )
    shape = None if like is None else _shape(like)
    made = make_up(project, environment.store, wanted, rows, seed, like=shape, options=environment.options)
    return Answer(MadeUp(made))


def fsck(environment: Environment) -> Answer:
    """Everything about a store that can be checked."""
    from catalog.health import check_store  # noqa: PLC0415

    storage = environment.storage
    report = check_store(environment.project, storage, environment.options)
    error = None
    if not report.ok:
        count = sum(finding.severity == "error" for finding in report.findings)
        error = FindingsError(storage.uri, count, "each finding says whether and how it can be repaired")
    return Answer(Health(storage.uri, report), error)


def compact(environment: Environment, collections: Sequence[str] = ()) -> Answer:
    """One base of all the files of each collection; written beside the present leader."""
    from catalog.leading import own_stash  # noqa: PLC0415

    look = environment.look()
    stash = own_stash(environment.project, look.log)
    stash.join()
    before = stash.head.state.files
    stored = sorted({file.collection for file in before.values()})
    for name in collections:
        stash.head.registry.named(name)
    done = []
    for name in stored:
        files = [file for file in before.values() if file.collection == name]
        if (not collections or name in collections) and len(files) > 1:
            stash.consolidate(name)
            done.append(name)
    _keep_books(environment, stash)
    return Answer(Compacted(look.storage.uri, stash.ts, tuple(done), len(before), len(stash.head.state.files)))


def vacuum(environment: Environment, *, retention: str | None = None, dry_run: bool = False) -> Answer:
    """Delete what no retained state refers to, after moving the frontier to where retention ends."""
    from catalog.leading import own_stash  # noqa: PLC0415
    from catalog.log.delta import DeltaLog  # noqa: PLC0415
    from catalog.log.maintenance import Policy, clean, due_frontier, find_doomed  # noqa: PLC0415
    from catalog.shard.shard import shard_ids, shard_uri  # noqa: PLC0415

    look, policy = environment.look(), Policy()
    if retention is not None:
        try:
            policy = replace(policy, retention_ms=int(seconds(retention) * 1000))
        except ValueError as error:
            raise UsageError(
                f"--retention {retention}: {error}", "it says how long the past is kept", "write 24h"
            ) from error
    uri, options = look.storage.uri, environment.options
    shards = [DeltaLog(shard_uri(uri, shard), options) for shard in sorted(shard_ids(look.storage))]
    frontiers, deleted = [], list[int]()
    for log in (look.log, *shards):
        sizes, state = {file.path: file.size for file in log.files()}, log.state(log.verify())
        if dry_run:
            frontiers.append(due_frontier(log, state, policy))
            paths = find_doomed(log, state, policy, since=state.frontier, frontier=frontiers[-1])
        else:
            done = clean(log, state, policy)
            frontiers.append(done.state.frontier)
            paths = done.deleted
        deleted += [sizes.get(path, 0) for path in paths]
    if not dry_run:
        _keep_books(environment, own_stash(environment.project, look.log))
    return Answer(Vacuumed(uri, not dry_run, frontiers[0], len(deleted), sum(deleted)))


def _keep_books(environment: Environment, stash: Stash) -> None:
    """Maintenance is when builtins are brought up to date and the store is measured."""
    from catalog.builtin.keeping import keep_migrated  # noqa: PLC0415

    project = environment.project
    if stash.head.serves == project.current:
        stash.join()
        keeper = keep_migrated(Place(environment.storage.uri, environment.options, project), stash)
        if keeper is not None:
            keeper.maintain()


def _shape(like: str) -> Statistics:
    import json  # noqa: PLC0415

    from catalog.generator.statistics import Statistics  # noqa: PLC0415

    try:
        found: Any = json.loads(Path(like).read_text(encoding="utf-8"))
        shape = found.get("data", {}).get("shape", found) if "data" in found else found
        return Statistics.from_json(json.dumps(shape))
    except OSError as error:
        raise UsageError(
            f"{like} cannot be read: {error.strerror}", "--like names a file", "correct the path"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{like} does not say what a store is like: {error}",
            "--like takes what was measured of a store",
            "make it with `catalog debug stats --shape --format json`",
        ) from error
