"""`catalog start`: open a store as an environment does when it starts."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult
from catalog.cli.observers import watched
from catalog.cli.upgrade_recorder import StepDone, UpgradeRecorder
from catalog.engine.store.catalog import Mode
from catalog.engine.store.leader_upgrade import UpgradeOptions
from catalog.engine.store.open import open_store
from catalog.errors import NotInitializedError, UpgradeNeededError
from catalog.events import Observer, together

if TYPE_CHECKING:
    from catalog.cli.app import Invocation
    from catalog.cli.context import StoreTarget
    from catalog.tools.copy import Copied


@dataclass(frozen=True, slots=True)
class Started:
    store: str
    mode: str
    version_before: int | None
    """None if this command created and initialised the store."""
    version: int
    deploy_generation: int
    epoch: int
    ts: int
    steps: tuple[StepDone, ...]
    backup: Copied | None
    seconds: float


def start(run: Invocation, *, read_only: bool, reapply: bool, backup: str | None) -> CommandResult:
    """Open the store, upgrade it if that is due, and close it again."""
    target = run.target
    with watched(run, target) as watch:
        return watch.settle(_start(target, read_only=read_only, reapply=reapply, backup=backup, observer=watch))


def _start(
    target: StoreTarget, *, read_only: bool, reapply: bool, backup: str | None, observer: Observer
) -> CommandResult:
    began_s = time.monotonic()
    before = target.find_version() if read_only or backup is not None else None
    if before is None and read_only:
        raise NotInitializedError(target.place.uri)
    copied = None
    if backup is not None and before is not None:
        from catalog.cli.commands.debug_copy import copy_to  # noqa: PLC0415 - few ask for one

        copied = copy_to(target, backup)
    recorder = UpgradeRecorder()
    upgrading = UpgradeOptions(target.spark, reapply, together(recorder, observer), target.permit, target.class_archive)
    leadership = target.leadership
    if leadership.deploy_generation is None:
        leadership = replace(leadership, deploy_generation=0)
    mode = Mode.READ_ONLY if read_only else Mode.LEADER
    with open_store(target.place, mode, leadership, upgrading) as cat:
        started = Started(
            target.place.uri,
            str(mode),
            before if read_only else recorder.version_before,
            cat.version,
            cat.deploy_generation,
            cat.epoch,
            cat.ts,
            tuple(recorder.steps),
            copied,
            time.monotonic() - began_s,
        )
    if read_only and before is not None and before < target.project.current:
        return CommandResult(started, UpgradeNeededError(started.store, before, target.project.current))
    return CommandResult(started)
