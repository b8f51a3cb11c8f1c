"""An upgrade: every step that is due, one after the other, after looking whether it may begin at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from catalog.engine.events import Event, State, close_dead, read_events
from catalog.engine.journal import Journal
from catalog.engine.made import Made
from catalog.engine.plan import StepPlan, describe, known_checksums, migration_of, plan
from catalog.engine.step import Runner
from catalog.errors import ChecksumError, PreflightError, UndoneError
from catalog.log.protocol import State as LogState
from catalog.project import Project
from catalog.spark.java import find_java

_ROOM = 1.5
"""New files may be larger than those they replace, which stay until retention ends."""


def upgrade(runner: Runner, until: int | None = None, *, reapply: bool = False) -> list[tuple[StepPlan, Made]]:
    """Take a store to a version, by default the current one; each step is committed by itself."""
    journal, project = runner.journal, runner.project
    journal.refresh()
    close_dead(journal)
    validate(project, journal)
    if not reapply:
        require_not_undone(journal, project)
    done = []
    while journal.version < (project.current if until is None else until):
        module = migration_of(project, journal.version)
        done.append((describe(module, journal.state, journal.version), runner.run(module)))
    return done


def validate(project: Project, journal: Journal) -> None:
    """Refuse to go on from migrations that are not those of this build; all that differ are named."""
    wrong = mismatches(project, read_events(journal))
    if wrong:
        raise ChecksumError(", ".join(event.value.name for event in wrong))


def mismatches(project: Project, events: Sequence[Event]) -> list[Event]:
    """The applied migrations whose recorded checksum is none that this build's module had; retired ones aside."""
    found = []
    for event in applied(events).values():
        previous = int(event.value.previous)
        if previous < project.minimum or previous >= project.current:
            continue
        module = project.migration_from(previous, project.build)
        if module is not None and event.value.checksum not in known_checksums(project, module):
            found.append(event)
    return found


def applied(events: Sequence[Event]) -> dict[int, Event]:
    """The step that led to each version the store has behind it."""
    found: dict[int, Event] = {}
    for event in events:
        if event.state is State.MIGRATED:
            found[int(event.value.version)] = event
        elif event.state is State.UNDONE:
            found.pop(int(event.value.version), None)
    return found


def require_not_undone(journal: Journal, project: Project) -> None:
    """Refuse to apply again what somebody took back, however often it was tried since."""
    if is_undone(journal, project):
        raise UndoneError(journal.version, project.current)


def is_undone(journal: Journal, project: Project) -> bool:
    """Whether somebody took back the step that is due."""
    following = [
        event.state
        for event in read_events(journal)
        if int(event.value.version) == journal.version + 1 and event.state in {State.MIGRATED, State.UNDONE}
    ]
    return bool(following) and following[-1] is State.UNDONE and journal.version < project.current


def preflight(
    project: Project, uri: str, state: LogState, version: int, *, has_session: bool, until: int | None = None
) -> list[StepPlan]:
    """What an upgrade needs, looked at before anyone is fenced; answers its plan."""
    steps = plan(project, state, version, project.current if until is None else until)
    if any(step.needs_spark for step in steps) and not has_session:
        require_spark(uri)
    folder = Path(uri)
    if "://" not in uri and folder.is_dir():
        needed, free = room_needed(steps), shutil.disk_usage(folder).free
        if free < needed:
            raise PreflightError(
                uri,
                f"about {needed >> 20} MiB are needed beside the present files, and {free >> 20} MiB are free",
                "make room on the disk, or move the store to a larger one",
            )
    return steps


def room_needed(steps: Sequence[StepPlan]) -> int:
    """About the bytes that steps write."""
    return int(_ROOM * sum(step.bytes_to_rewrite for step in steps))


def require_spark(uri: str) -> None:
    """Refuse where no session can be started."""
    if find_spec("pyspark") is None:
        raise PreflightError(
            uri, "a step rewrites rows on Spark, and pyspark is not installed", "pip install 'stash-catalog[spark]'"
        )
    if os.environ.get("SPARK_REMOTE"):
        return
    java = find_java(os.environ)
    if java is None:
        raise PreflightError(
            uri,
            "a step rewrites rows on Spark, and there is no Java",
            "install Java 17 or 21 and set JAVA_HOME, or put it on the path",
        )
    if not java.is_there:
        raise PreflightError(
            uri,
            f"a step rewrites rows on Spark, and JAVA_HOME leads to no Java: there is no {java.program}",
            "correct or unset JAVA_HOME: Spark takes no other Java while it is set",
        )
