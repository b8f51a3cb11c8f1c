"""A check as tests run it: the store must be byte for byte the same afterwards, whatever came of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest import mock

from pyspark.sql import SparkSession

from catalog.engine.base.project import Project
from catalog.engine.log.place import StorePlace
from catalog.engine.stash.registry import encode
from catalog.tools.upgrade_check.check import check_upgrade
from catalog.tools.upgrade_check.report import StepReport, UpgradeReport
from catalog.upgrade import PROJECT
from tests.engine.migrate.direct import DirectJobs
from tests.engine.migrate.stores import append
from tests.upgrade.stores import files_of

Row = tuple[str, bytes, bytes]
UNKNOWN = b"\xa0\x06\x01"
"""Field 100, a number."""


def checked(store: Path, scratch: Path, spark: SparkSession, project: Project = PROJECT) -> UpgradeReport:
    before = files_of(store)
    try:
        verdict = check_upgrade(StorePlace.at(project, store), spark=spark, scratch=scratch)
    finally:
        assert files_of(store) == before
    assert json.loads(json.dumps(asdict(verdict)))["ok"] is verdict.ok
    for step in verdict.steps:
        assert_adds_up(step)
    return verdict


def checked_directly(store: Path, scratch: Path, project: Project = PROJECT) -> UpgradeReport:
    """The same with Spark's tasks called in this process."""
    with mock.patch("catalog.engine.spark.jobs.SparkJobs", lambda make: DirectJobs(make_session=make)):
        return checked(store, scratch, _never, project)  # type: ignore[arg-type]


_never = object()
"""A session that nobody may use."""


def assert_adds_up(step: StepReport) -> None:
    for own in step.collections:
        gone = own.deleted + own.set_aside + own.left_out
        assert own.rows_after == own.rows_before + own.inserted - gone, own
    assert step.left_out == sum(own.left_out for own in step.collections)


def row(collection: str, key: Any, value: Any) -> Row:  # noqa: ANN401 - messages of any version
    return collection, encode(key), value if isinstance(value, bytes) else encode(value)


def insert(store: Path, rows: Iterable[Row], diff: int = 1) -> None:
    """Commit rows as they are, whatever they hold; or take them back."""
    by_collection: dict[str, list[tuple[bytes, bytes, int]]] = {}
    for collection, key, value in rows:
        by_collection.setdefault(collection, []).append((key, value, diff))
    for collection, own in by_collection.items():
        append(store, collection, *own)


def of(step: StepReport, collection: str) -> tuple[int, int]:
    """How many rows of a collection were set aside, and left out with others."""
    own = next((own for own in step.collections if own.collection == collection), None)
    return (own.set_aside, own.left_out) if own else (0, 0)
