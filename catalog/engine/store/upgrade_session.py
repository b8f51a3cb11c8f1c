"""The Spark session of an upgrade: there when this process is to lead, and not started if another one does the work.

It starts in the background as soon as steps are due, while the store is read and checked. While another leader is
waited for, it starts only if that one is not upgrading the store, falls silent, or is about to be replaced. Nobody is
fenced before it is there. Importing this loads no pyspark.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass

from catalog.engine.base.fence import Fence
from catalog.engine.base.project import Project
from catalog.engine.log.place import StorePlace
from catalog.engine.log.protocol import AppTxn, LogState
from catalog.engine.log.replica import newest_state
from catalog.engine.spark.session_start import SessionStart
from catalog.engine.storage.heartbeat import LeaderStatus, leader_status
from catalog.errors import CatalogError

_HEAD_START_S = 10.0
"""Before the end of the wait: Spark takes about so long to start."""
_READ_EVERY_S = 1.0
"""While another leader is waited for; it begins its first step sooner than that."""
_SILENT_INTERVALS = 1.5
"""Without a heartbeat for so long, a leader may have died."""


@dataclass(slots=True)
class UpgradeSession:
    """The session for the steps from the version of a store to another; `SparkJobs` gets it by `start.session`."""

    place: StorePlace
    target: int
    start: SessionStart
    _is_foreseen: bool = False
    """Steps were due when the store was read; if its version changes, it is read again."""
    _read_s: float = 0.0
    _idle_at: int | None = None
    """The log version at which the leader that is waited for ran no step."""

    def foresee(self, state: LogState, deploy_generation: int | None) -> None:
        """Begin at once if steps are due and there is no leader to wait for."""
        self._is_foreseen = self._is_due(state)
        if self._is_foreseen and not self._is_led(state.fence, deploy_generation):
            self.start.begin()

    def wait(self, silent_s: float, left_s: float, interval_s: float) -> None:
        """Begin if the leader that is waited for does not do the work, or not much longer."""
        now_s = time.monotonic()
        if not self._is_foreseen or self.start.is_begun or now_s - self._read_s < _READ_EVERY_S:
            return
        self._read_s = now_s
        state = newest_state(self.place.log())
        runs_step = bool(state.app_txns.get(AppTxn.RUNNING_STEP, 0))
        is_idle = not runs_step and self._idle_at == state.version
        self._idle_at = None if runs_step else state.version
        is_near = silent_s > _SILENT_INTERVALS * interval_s or left_s < _HEAD_START_S
        if (is_idle or is_near) and self._is_due(state):
            self.start.begin()

    def complete(self) -> None:
        """Wait until Spark is there, if steps are due: the present leader is fenced afterwards."""
        if self._is_foreseen and self._is_due(newest_state(self.place.log())):
            self.start.session()

    def _is_led(self, fence: Fence, deploy_generation: int | None) -> bool:
        """Tell if there may be a leader to wait for: one of the same generation that did not say that it ended."""
        is_same = fence.epoch > 0 and deploy_generation in {None, fence.generation}
        return is_same and leader_status(self.place.storage, fence) is LeaderStatus.BEATING

    def _is_due(self, state: LogState) -> bool:
        return needs_spark(self.place.project, state, self.target)


def needs_spark(project: Project, state: LogState, target: int) -> bool:
    """Tell if one of the steps from the version of a state to another needs Spark."""
    version = state.stash_version
    if version is None or not project.minimum <= version < target:
        return False
    from catalog.engine.migrate.plan import plan_step  # noqa: PLC0415 - a store that is up to date needs no engine

    with suppress(CatalogError):  # which is raised where the plan is checked
        return any(plan_step(project, state, number).needs_spark for number in range(version, target))
    return False
