"""Stores with a past that this build did not give them, and processes that die while they give them one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from catalog.engine.log.protocol import AppTxn, CommitRequest, Operation
from catalog.engine.migrate.recorder import MigrationEvent, RunState
from catalog.engine.migrate.system_rows import SystemRows
from catalog.engine.stash.registry import Registry, encode
from catalog.engine.stash.transaction import RowChange
from catalog.upgrade import PROJECT
from tests.cli.commands import MAIN
from tests.cli.terminal import variables
from tests.engine.migrate.stores import REGISTRY, append, events_of, open_log, state_of, version_of

_RUN = """
import sys
from pathlib import Path
from catalog.engine.migrate.executor import upgrade
from catalog.engine.migrate.step_runner import StepPoint
from tests.engine.migrate.stores import lead

def stop(point):
    if point is StepPoint(sys.argv[2]):
        print("there", flush=True)
        sys.stdin.read()

upgrade(lead(Path(sys.argv[1]), reached=stop), int(sys.argv[3]))
"""


def pretend_version(store: Path, version: int) -> None:
    """Give a store a version of another build."""
    log = open_log(store)
    change = CommitRequest(Operation.TRANSACTION, uuid.uuid4().hex, app_txns={AppTxn.STASH_VERSION: version})
    log.compare_and_append(log.state(log.verify()), change)


def pretend_step(store: Path, version: int) -> None:
    """Record a migration to a version that this build has never had, or has no more."""
    kind = REGISTRY.named("migration_event")
    value = kind.value_type(
        version=version,
        name=f"v{version - 1}_to_v{version}",
        state=RunState.MIGRATED,
        checksum="sha256:gone",
        started_ms=1_700_000_000_000,
        completed_ms=1_700_000_001_000,
        previous=version - 1,
        rows_before=4,
        rows_after=3,
        bytes_before=40,
        bytes_after=30,
        build="0.0.1",
    )
    number = max((event.id for event in events_of(store)), default=0) + 1
    _write(store, lambda journal: journal.change(kind.key_type(id=number), value))


def forge_checksums(store: Path, *versions: int) -> None:
    """Record other checksums for applied migrations, as an edited module would have had."""

    def change(journal: SystemRows, event: MigrationEvent) -> RowChange:
        value: Any = type(event.value)()
        value.CopyFrom(event.value)
        value.checksum = f"sha256:{event.id:064x}"
        return journal.change(REGISTRY.named("migration_event").key_type(id=event.id), value)

    for event in events_of(store):
        if event.value.version in versions:
            _write(store, lambda journal, event=event: change(journal, event))  # type: ignore[misc]


def append_roles(store: Path, *names: str) -> None:
    """Add roles by hand, whatever other roles are called."""
    registry = Registry.of(PROJECT.types(version_of(store)))
    kind = registry.named("role")
    for number, name in enumerate(names):
        key: Any = kind.key_type()
        key.id.user = 900_000 + number
        append(store, "role", (encode(key), encode(kind.value_type(name=name)), 1))


def kill_in_step(store: Path, until: int, point: str = "step:after-tasks") -> None:
    """Begin the next step in a process, and kill it there."""
    command = [sys.executable, "-c", _RUN, str(store), point, str(until)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables(), text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        process.kill()
    assert process.returncode == -signal.SIGKILL


def kill_program_in_step(store: Path) -> None:
    """Apply migrations by the real program, and kill it with its JVM as soon as a step is said to run."""
    command = [sys.executable, "-c", MAIN, "apply", "--store", str(store)]
    with subprocess.Popen(
        command, env=variables(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        while not any(event.state is RunState.RUNNING for event in events_of(store)):
            assert process.poll() is None, process.communicate()
        os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert events_of(store)[-1].state is RunState.RUNNING, "it was too late"


def _write(store: Path, change: Callable[[SystemRows], RowChange]) -> None:
    state = state_of(store)
    journal = SystemRows(open_log(store), REGISTRY, state.fence, state)
    journal.append(Operation.TRANSACTION, [change(journal)], {})
