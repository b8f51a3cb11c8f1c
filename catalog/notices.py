"""What is told of a store while it is opened and upgraded: one stream of notices, whoever listens.

Logs, metrics, the readiness file, progress bars and callers' own functions are observers of the same notices. An
observer only watches: what it raises is said once and never reaches the upgrade, and nothing waits for its answer.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from catalog.errors import CatalogError

if TYPE_CHECKING:
    from catalog.engine.plan import StepPlan
    from catalog.engine.progress import Counts


@dataclass(frozen=True, slots=True)
class Opening:
    """Somebody begins to open a store."""

    store: str
    project: str
    mode: str
    build: str
    target: int
    """The version that the store is to come to."""


@dataclass(frozen=True, slots=True)
class WaitingForLeader:
    """Another process leads, and seems to live."""

    holder: str
    deploy_generation: int
    epoch: int
    timeout_s: float


@dataclass(frozen=True, slots=True)
class FenceTaken:
    """The process leads; whoever led before can write no more."""

    deploy_generation: int
    epoch: int
    version: int | None
    """Of the store; none if it is not initialised."""
    waited_s: float


@dataclass(frozen=True, slots=True)
class Initialized:
    """An empty store has its first rows."""

    version: int


@dataclass(frozen=True, slots=True)
class StepBegan:
    """A step begins."""

    plan: StepPlan


@dataclass(frozen=True, slots=True)
class StepAdvanced:
    """About so many of the stored rows and bytes to be rewritten are done: never fewer than before, at last all."""

    plan: StepPlan
    rows: int
    size: int


@dataclass(frozen=True, slots=True)
class StepCommitted:
    """A step was committed, as a whole."""

    plan: StepPlan
    counts: Mapping[str, Counts]
    seconds: float

    @property
    def rows_before(self) -> int:
        return sum(own.rows_before for own in self.counts.values())

    @property
    def rows_after(self) -> int:
        return sum(own.rows_after for own in self.counts.values())

    @property
    def bytes_before(self) -> int:
        return sum(own.bytes_before for own in self.counts.values())

    @property
    def bytes_after(self) -> int:
        return sum(own.bytes_after for own in self.counts.values())


@dataclass(frozen=True, slots=True)
class StepFailed:
    """Nothing of the step was applied, as far as this process can tell."""

    plan: StepPlan
    code: str
    what: str
    seconds: float


@dataclass(frozen=True, slots=True)
class BuiltinsMigrated:
    """The collections that the software brings along are those of this build."""

    build: str
    evolved: int
    replaced: int
    created: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Maintained:
    """Maintenance did something after a commit, or left something for another time."""

    consolidated: tuple[str, ...]
    """The collections of which fewer files were made."""
    checkpoint: int | None
    frontier: int | None
    files_deleted: int
    postponed: str | None
    """Why something was left, if it was."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The store can be used: it is at the version of the build, or an upgraded copy of it is."""

    store: str
    mode: str
    version: int
    deploy_generation: int
    epoch: int
    ts: int
    seconds: float
    """Since the opening began."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The store cannot be used, and why."""

    code: str
    what: str
    why: str
    next: str
    seconds: float

    @classmethod
    def of(cls, error: BaseException, seconds: float) -> Self:
        code = type(error).__name__
        if isinstance(error, CatalogError):
            return cls(code, error.what, error.why, error.next, seconds)
        if isinstance(error, Exception):
            return cls(code, f"unexpected {code}: {error}", "", "", seconds)
        return cls(code, "it was stopped", "", "", seconds)


@dataclass(frozen=True, slots=True)
class Closed:
    """The store is used no more by this process."""

    version: int


Notice = (
    Opening
    | WaitingForLeader
    | FenceTaken
    | Initialized
    | StepBegan
    | StepAdvanced
    | StepCommitted
    | StepFailed
    | BuiltinsMigrated
    | Maintained
    | Ready
    | Failed
    | Closed
)

Observer = Callable[[Notice], None]
Complaint = Callable[[str], None]


def ignore(_notice: Notice) -> None:
    """For nobody."""


def together(*observers: Observer | None, complain: Complaint | None = None) -> Observer:
    """One observer for several: each is told everything, whatever another one raises."""
    present = [guarded(observer, complain) for observer in observers if observer is not None]

    def tell(notice: Notice) -> None:
        for observer in present:
            observer(notice)

    return tell


def guarded(observer: Observer, complain: Complaint | None = None) -> Observer:
    """An observer that never raises. The first error of each kind is said, by default to Python's `logging`."""
    said: set[type[Exception]] = set()

    def tell(notice: Notice) -> None:
        try:
            observer(notice)
        except Exception as error:
            if type(error) not in said:
                said.add(type(error))
                text = f"an observer failed, and is told on: {type(error).__name__}: {error}"
                if complain is not None:
                    complain(text)
                else:
                    logging.getLogger("catalog").warning(text, exc_info=True)

    return tell


@contextmanager
def opening(observer: Observer, begun: Opening) -> Iterator[Callable[[], float]]:
    """Tell that a store is being opened and, if that fails, why; hands out the seconds since it began."""
    began_s = time.monotonic()
    observer(begun)
    try:
        yield lambda: time.monotonic() - began_s
    except BaseException as error:
        observer(Failed.of(error, time.monotonic() - began_s))
        raise
