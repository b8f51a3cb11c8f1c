"""What must be true of a store while it is upgraded and after, whatever happened to those who upgraded it."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from catalog import STASH_VERSION
from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.maintenance import Policy, clean
from catalog.engine.log.protocol import AppTxn, Log, LogState, Operation
from catalog.engine.migrate.recorder import MigrationEvent, RunState, read_events
from catalog.engine.migrate.row_types import ENGINE_COLLECTIONS, registry_of
from catalog.engine.migrate.system_rows import SystemRows
from catalog.engine.stash.stash import Stash
from catalog.engine.stash.view import BaseFileCache, load_view
from catalog.tools.fsck.findings import FsckCode, Severity
from catalog.tools.fsck.stash import fsck
from catalog.tools.generator import generate
from catalog.upgrade import PROJECT
from tests.engine.migrate.cluster.upgraders import NOTHING, Said, Upgrader

REGISTRY = registry_of(PROJECT, STASH_VERSION)
Digests = dict[str, str]
"""Of the rows of each collection, in the order of keys."""


def log_of(store: Path | str, options: Mapping[str, str] = NOTHING) -> DeltaLog:
    return DeltaLog(f"{store}/stash", options)


def digests(log: Log, state: LogState) -> Digests:
    view = load_view(BaseFileCache(log), state)
    found = {}
    for name in sorted(view.collections() - ENGINE_COLLECTIONS):
        digest, count = hashlib.sha256(), 0
        for row in view.rows(name):
            for part in row:
                digest.update(len(part).to_bytes(8, "big") + part)
            count += 1
        if count:
            found[name] = f"{count} rows {digest.hexdigest()}"
    return found


def newest(log: Log) -> LogState:
    return log.state(log.verify())


def stepped(log: Log, newest: LogState) -> LogState:
    """As the last step left it: builtins, which are migrated then, have shards of other names in every store."""
    steps = [one for one in log.commits(1, newest.version) if one.operation is Operation.MIGRATE]
    return log.state(steps[-1].version) if steps else newest


def events_of(log: Log, state: LogState) -> list[MigrationEvent]:
    return read_events(SystemRows(log, REGISTRY, state.fence, state))


@dataclass(frozen=True, slots=True)
class Reference:
    """A store of an old version, and what an upgrade that nobody disturbed made of it, step by step."""

    template: Path
    version: int
    rows: Mapping[int, Digests]
    """After the step to each version."""
    counts: Mapping[int, tuple[int, int]]
    seconds: Mapping[int, float] = field(default_factory=dict)
    """That the step to each version took."""

    @classmethod
    def of(  # noqa: PLR0913 - which store, and who upgrades it where
        cls,
        folder: Path,
        version: int,
        upgrader: Upgrader,
        spark: str,
        *,
        rows: int = 1000,
        seed: int = 1,
        settings: Mapping[str, str] = NOTHING,
    ) -> Reference:
        """Make a store and upgrade a copy of it."""
        template, upgraded = folder / "template", folder / "undisturbed"
        generate(PROJECT, template, version, rows, seed)
        shutil.copytree(template, upgraded)
        upgrader.upgrade(upgraded, spark, generation=1, settings=settings)
        said = upgrader.finish()
        began = {one["began"]: one["at"] for one in said if "began" in one}
        seconds = {one["ended"]: one["at"] - began[one["ended"]] for one in said if "ended" in one}
        log = log_of(upgraded)
        state = newest(log)
        steps = [one for one in log.commits(1, state.version) if one.operation is Operation.MIGRATE]
        assert len(steps) == STASH_VERSION - version
        found = {version: digests(log, newest(log_of(template)))}
        for step in steps:
            after = log.state(step.version)
            found[after.app_txns[AppTxn.STASH_VERSION]] = digests(log, after)
        counts = {int(event.value.version): _counts(event) for event in events_of(log, state)}
        return cls(template, version, found, counts, seconds)

    def seconds_from(self, version: int) -> float:
        return sum(seconds for step, seconds in self.seconds.items() if step > version)

    def examine(
        self, store: Path | str, said: Sequence[Said] = (), options: Mapping[str, str] = NOTHING, *, deaths: int = 0
    ) -> int:
        """Whole, at a version where the undisturbed one also was, and not behind what was said; answer the version."""
        log = log_of(store, options)
        state = newest(log)
        version = state.app_txns[AppTxn.STASH_VERSION]
        assert digests(log, stepped(log, state)) == self.rows[version]
        assert version >= max((one["ended"] for one in said if "ended" in one), default=self.version)
        self._examine_events(log, state, version, deaths)
        if version >= PROJECT.first_proto:
            worse = _findings(log, version) - {(FsckCode.ORPHAN, Severity.SWEEPABLE)}
            assert worse == set()
        return version

    def _examine_events(self, log: Log, state: LogState, version: int, deaths: int) -> None:
        """Each step that led here is said once to be done; no more are said to have failed or to run than did."""
        events = events_of(log, state)
        done = [event for event in events if event.state is RunState.MIGRATED]
        assert [int(event.value.version) for event in done] == list(range(self.version + 1, version + 1))
        assert [_counts(event) for event in done] == [self.counts[int(event.value.version)] for event in done]
        failed = [event for event in events if event.state is RunState.ERROR]
        errors = {event.value.error for event in failed}
        assert errors <= {"its process ended before the step did"}, errors
        running = [event for event in events if event.state is RunState.RUNNING]
        assert [int(event.value.version) for event in running] in ([], [version + 1])
        assert len(failed) + len(running) <= deaths
        assert state.app_txns.get(AppTxn.RUNNING_STEP, 0) == (version + 1 if running else 0)

    def examine_upgraded(
        self, store: Path | str, options: Mapping[str, str] = NOTHING, *, deaths: int = 0, said: Sequence[Said] = ()
    ) -> None:
        """Upgraded as if nothing had happened; a sweep by the next leader leaves not one file too many."""
        assert self.examine(store, said, options, deaths=deaths) == STASH_VERSION
        log = log_of(store, options)
        stash = Stash.open(log, REGISTRY, PROJECT.constraints)
        stash.take_over(stash.state.fence.generation + 1, "next")
        clean(log, stash.state, Policy())
        assert _findings(log, STASH_VERSION) == set()


def _counts(event: MigrationEvent) -> tuple[int, int]:
    return int(event.value.rows_before), int(event.value.rows_after)


def _findings(log: Log, version: int) -> set[tuple[FsckCode, Severity]]:
    report = fsck(log, registry_of(PROJECT, version), PROJECT.constraints.at(version), every_state=True)
    return {(found.code, found.severity) for found in report.findings}
