"""Checks and their results, as data. A check that fails stops no other."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from catalog.engine.base.project import Project
from catalog.engine.log.place import StorePlace
from catalog.errors import CatalogError


class Status(StrEnum):
    OK = "ok"
    WARNING = "warning"
    """It works now, but may fail later."""
    PROBLEM = "problem"
    """Something cannot work until this is corrected."""
    SKIPPED = "skipped"
    """There is nothing to check, or another problem comes first."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    name: str
    grade: Status
    found: str
    next: str = ""
    """The action to take; empty if there is none."""
    error: CatalogError | None = None
    """The error with which a command would fail because of this, if that is known."""


@dataclass(frozen=True, slots=True)
class DoctorContext:
    """The machine and the store to check, and how deeply."""

    project: Project
    store: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    spark: str | None = None
    class_archive: str | None = None
    deploy_generation: int | None = None
    scratch: Path = field(default_factory=lambda: Path(tempfile.gettempdir()))
    """The folder of scratch copies."""
    variables: Mapping[str, str] = field(default_factory=lambda: os.environ)
    is_deep: bool = False
    """Every row is read, and Spark started."""
    starts_spark: bool = False
    probes: bool = False
    """Write to an object store and delete again; a folder is always written to, and left as it was."""
    began_s: tuple[float, float] = field(default_factory=lambda: (time.time(), time.monotonic()))
    """The wall clock and the monotonic clock at the beginning."""

    @property
    def place(self) -> StorePlace:
        """The place of the store; only checks of a store ask for it."""
        if self.store is None:
            raise ValueError("no store was named")
        return StorePlace.at(self.project, self.store, self.options)

    @property
    def is_remote(self) -> bool:
        return self.store is not None and "://" in self.store and not self.store.startswith("file://")


CheckFunction = Callable[[DoctorContext], Iterable[CheckResult]]


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    look: CheckFunction
    after: str = ""
    """The check before this one: if it found a problem or was skipped, this one is skipped."""


def examine(subject: DoctorContext, checks: Sequence[Check]) -> Iterator[CheckResult]:
    """Run every check, in order."""
    missed: dict[str, str] = {}
    for own in checks:
        if own.after in missed:
            missed[own.name] = missed[own.after]
            yield CheckResult(own.name, Status.SKIPPED, f"not checked: see {missed[own.after]}")
            continue
        for found in _results(own, subject):
            if found.grade in {Status.PROBLEM, Status.SKIPPED}:
                missed[own.name] = own.name
            yield found


def from_error(name: str, error: CatalogError) -> CheckResult:
    return CheckResult(name, Status.PROBLEM, error.what, error.next, error)


def _results(check: Check, subject: DoctorContext) -> Iterator[CheckResult]:
    try:
        yield from check.look(subject)
    except CatalogError as error:
        yield from_error(check.name, error)
    except Exception as error:  # noqa: BLE001 - the other checks still run
        text = f"the check itself failed: {type(error).__name__}: {error}"
        yield CheckResult(check.name, Status.PROBLEM, text, "report it as an error of the program")
