"""Stores of every version, small and generated once; and what is asked of them before and after a step."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from catalog.actions import Action
from catalog.engine.base.project import MigrationModule, Project
from catalog.engine.log.data_files import rows_table
from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.protocol import AppTxn, CommitRequest, FaultHook, FileKind, LogState, Operation, no_fault
from catalog.engine.migrate.recorder import MigrationEvent, read_events
from catalog.engine.migrate.row_types import ENGINE_COLLECTIONS
from catalog.engine.migrate.step_runner import StepPoint, StepRunner
from catalog.engine.migrate.step_runner import no_step_fault as pass_step
from catalog.engine.migrate.system_rows import SystemRows
from catalog.engine.stash.constraints import Constraints
from catalog.engine.stash.registry import Registry
from catalog.engine.stash.stash import Stash
from catalog.engine.stash.view import BaseFileCache, load_view
from catalog.tools.fsck.findings import FsckCode, FsckFinding
from catalog.tools.fsck.stash import fsck
from catalog.upgrade import PROJECT
from tests.engine.migrate.direct import DirectJobs

Rows = Mapping[str, list[tuple[bytes, bytes]]]
REGISTRY = Registry.of(PROJECT.current_types)


def open_log(store: Path, reached: FaultHook = no_fault) -> DeltaLog:
    return DeltaLog(f"{store}/stash", reached=reached)


def state_of(store: Path) -> LogState:
    log = open_log(store)
    return log.state(log.verify())


def rows_of(store: Path, state: LogState | None = None) -> Rows:
    """Every row of every collection but the engine's own, in the order of keys."""
    view = load_view(BaseFileCache(open_log(store)), state or state_of(store))
    found = {name: list(view.rows(name)) for name in sorted(view.collections() - ENGINE_COLLECTIONS)}
    return {name: rows for name, rows in found.items() if rows}


def events_of(store: Path) -> list[MigrationEvent]:
    state = state_of(store)
    return read_events(SystemRows(open_log(store), REGISTRY, state.fence, state))


def version_of(store: Path) -> int:
    return state_of(store).app_txns[AppTxn.STASH_VERSION]


def findings_of(store: Path) -> list[FsckFinding]:
    """What a check of everything finds, but for files that can be swept."""
    version = version_of(store)
    report = fsck(open_log(store), Registry.of(PROJECT.types(version)), PROJECT.constraints.at(version))
    return [found for found in report.findings if found.code is not FsckCode.ORPHAN]


def lead(
    store: Path,
    project: Project = PROJECT,
    *,
    log: DeltaLog | None = None,
    jobs: DirectJobs | None = None,
    reached: Callable[[StepPoint], None] = pass_step,
) -> StepRunner:
    """Take a store over, as a leader does before it upgrades."""
    log = log or open_log(store)
    fence = Stash.open(log, REGISTRY, Constraints()).take_over(state_of(store).fence.generation, "test")
    assert fence is not None
    journal = SystemRows(log, REGISTRY, fence, log.state(log.verify()))
    return StepRunner(journal, project, (str(store), {}), jobs or DirectJobs(), reached=reached)


def stash_of(store: Path, version: int) -> Stash:
    """The store as a process of a version writes to it, beside whoever leads."""
    stash = Stash.open(open_log(store), Registry.of(PROJECT.types(version)), Constraints())
    stash.join()
    return stash


def module_of(version: int, *actions: Action, **attributes: Any) -> MigrationModule:  # noqa: ANN401
    """A migration of a test's own."""
    name = f"tests.v{version}_to_v{version + 1}"
    return cast(
        "MigrationModule",
        SimpleNamespace(__name__=name, __doc__="A test.", upgrade=lambda: list(actions), **attributes),
    )


def project_with(version: int, *actions: Action) -> Project:
    """The project, with another migration from a version, which is the last but one."""
    module = module_of(version, *actions)
    return replace(
        PROJECT,
        current=version + 1,
        migration_from=lambda found, build: module if found == version else PROJECT.migration_from(found, build),
    )


def append(store: Path, collection: str, *rows: tuple[bytes, bytes, int]) -> None:
    """Commit rows to a tail as they are, whatever they hold: key, value and diff."""
    log = open_log(store)
    state = log.state(log.verify())
    dated = rows_table([(key, value, state.version + 1, diff) for key, value, diff in rows])
    file = log.write(collection, FileKind.TAIL, state.fence, dated)
    log.compare_and_append(state, CommitRequest(Operation.TRANSACTION, uuid.uuid4().hex, (file,)))
