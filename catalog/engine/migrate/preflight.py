"""The checks of the machine before an upgrade: Spark, Java and disk space. They run before any process is fenced."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from catalog.engine.base.disk import free_bytes
from catalog.engine.base.project import Project
from catalog.engine.log.protocol import LogState
from catalog.engine.migrate.plan import StepPlan, plan
from catalog.engine.spark.java import find_java
from catalog.errors import PreflightError

_ROOM_FACTOR = 1.5
"""New files may be larger than those they replace, which stay until retention ends."""


def preflight(
    project: Project, uri: str, state: LogState, version: int, *, has_session: bool, until: int | None = None
) -> list[StepPlan]:
    """Raise if the machine lacks what an upgrade needs: Spark, Java, disk space. Return the plan of the upgrade."""
    steps = plan(project, state, version, project.current if until is None else until)
    if any(step.needs_spark for step in steps) and not has_session:
        require_spark(uri)
    folder = Path(uri)
    if "://" not in uri and folder.is_dir():
        needed, free = room_needed(steps), free_bytes(folder)
        if free < needed:
            raise PreflightError(
                uri,
                f"about {needed >> 20} MiB are needed beside the present files, and {free >> 20} MiB are free",
                "make room on the disk, or move the store to a larger one",
            )
    return steps


def room_needed(steps: Sequence[StepPlan]) -> int:
    """Return about how many bytes the steps write."""
    return int(_ROOM_FACTOR * sum(step.bytes_to_rewrite for step in steps))


def require_spark(uri: str) -> None:
    """Raise if no Spark session can be started on this machine."""
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
