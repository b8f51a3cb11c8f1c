"""Examinations: what is to be looked at, as data; then what was found, as data. One that fails stops no other."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from catalog.errors import CatalogError
from catalog.project import Project


class Grade(StrEnum):
    OK = "ok"
    WARNING = "warning"
    """It works, and may not always."""
    PROBLEM = "problem"
    """Something cannot work until this is mended."""
    SKIPPED = "skipped"
    """There is nothing to look at, or another problem comes first."""


@dataclass(frozen=True, slots=True)
class Examined:
    name: str
    grade: Grade
    found: str
    next: str = ""
    """What to do; empty if nothing is to be done."""
    error: CatalogError | None = None
    """What a command would fail with because of this, if that is known."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is examined, and how far."""

    project: Project
    store: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    spark: str | None = None
    deploy_generation: int | None = None
    scratch: Path = field(default_factory=lambda: Path(tempfile.gettempdir()))
    """Where copies are made that somebody only looks at."""
    variables: Mapping[str, str] = field(default_factory=lambda: os.environ)
    is_deep: bool = False
    """Every row is read, and Spark started."""
    starts_spark: bool = False
    probes: bool = False
    """Whether an object store may be written to; a folder is, and left as it was."""
    began_s: tuple[float, float] = field(default_factory=lambda: (time.time(), time.monotonic()))
    """By the clock that can be set, and by the one that cannot."""

    @property
    def is_remote(self) -> bool:
        return self.store is not None and "://" in self.store and not self.store.startswith("file://")


Look = Callable[[Subject], Iterable[Examined]]


@dataclass(frozen=True, slots=True)
class Examination:
    name: str
    look: Look
    after: str = ""
    """Is passed over if that one found a problem, or was passed over itself."""


def examine(subject: Subject, examinations: Sequence[Examination]) -> Iterator[Examined]:
    """Look at everything, in order."""
    missed: dict[str, str] = {}
    for own in examinations:
        if own.after in missed:
            missed[own.name] = missed[own.after]
            yield Examined(own.name, Grade.SKIPPED, f"not looked at: see {missed[own.after]}")
            continue
        for found in _looked(own, subject):
            if found.grade in {Grade.PROBLEM, Grade.SKIPPED}:
                missed[own.name] = own.name
            yield found


def from_error(name: str, error: CatalogError) -> Examined:
    """A problem that an error tells of."""
    return Examined(name, Grade.PROBLEM, error.what, error.next, error)


def _looked(examination: Examination, subject: Subject) -> Iterator[Examined]:
    try:
        yield from examination.look(subject)
    except CatalogError as error:
        yield from_error(examination.name, error)
    except Exception as error:  # noqa: BLE001 - whatever it is, the others are still looked at
        told = f"this could not be looked at: {type(error).__name__}: {error}"
        yield Examined(examination.name, Grade.PROBLEM, told, "report it as an error of the program")
