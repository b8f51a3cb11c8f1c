"""`catalog init`: initialise an empty store at the current version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult
from catalog.engine.store.catalog import Mode
from catalog.engine.store.leader_upgrade import initialize_stash
from catalog.engine.store.open import open_store

if TYPE_CHECKING:
    from catalog.cli.app import Invocation
    from catalog.engine.base.project import Project


@dataclass(frozen=True, slots=True)
class InitResult:
    store: str
    version: int
    done: bool
    """True if this command initialised the store; False if it existed before, or with --dry-run."""
    exists: bool
    rows: Mapping[str, int]
    """The number of rows of a new store, by collection."""


def init(run: Invocation, *, dry_run: bool) -> CommandResult:
    """Initialise a store at the current version; leave an existing one as it is."""
    target = run.target
    project, uri = target.project, target.place.uri
    before = target.find_version()
    if before is not None:
        return CommandResult(InitResult(uri, before, done=False, exists=True, rows={}))
    rows = _initial_rows(project)
    if dry_run:
        return CommandResult(InitResult(uri, project.current, done=False, exists=False, rows=rows))
    leadership = replace(target.leadership, deploy_generation=target.deploy_generation or 0)
    with open_store(target.place, Mode.LEADER, leadership) as cat:
        return CommandResult(InitResult(uri, cat.version, done=True, exists=True, rows=rows))


def _initial_rows(project: Project) -> dict[str, int]:
    """Return the number of rows that `initialize()` writes, by running it on a log that is removed again."""
    from catalog.engine.log.delta import DeltaLog  # noqa: PLC0415 - an existing store needs none
    from catalog.engine.stash.registry import Registry  # noqa: PLC0415
    from catalog.engine.stash.stash import Stash  # noqa: PLC0415

    with TemporaryDirectory(prefix="catalog-init-") as folder:
        log = DeltaLog(folder)
        log.create("dry-run")
        stash = Stash.open(log, Registry.of(project.current_types), project.constraints)
        stash.replica.row_version = project.current
        stash.take_over(0, "dry-run")
        initialize_stash(project, stash, "dry-run")
        view = stash.view()
        return {name: view.table(name).num_rows for name in sorted(view.collections())}
