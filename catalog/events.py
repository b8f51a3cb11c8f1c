"""Events emitted while a store is opened and upgraded.

Logs, metrics, the ready file, progress bars and callers' own functions are observers of the same events. An observer
only watches: an exception that it raises is logged once and never reaches the upgrade.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from catalog.errors import CatalogError
from catalog.errors.redaction import redact_addresses

if TYPE_CHECKING:
    from catalog.engine.migrate.plan import StepPlan
    from catalog.engine.migrate.step_progress import Counts


@dataclass(frozen=True, slots=True)
class Opening:
    """A process begins to open a store."""

    store: str
    project: str
    mode: str
    build: str
    target: int
    """The version of this build, to which the store is upgraded."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "store", redact_addresses(self.store))


@dataclass(frozen=True, slots=True)
class WaitingForLeader:
    """Another process leads the store and seems to be alive."""

    holder: str
    deploy_generation: int
    epoch: int
    timeout_s: float


@dataclass(frozen=True, slots=True)
class SparkStarting:
    """A session of Spark begins to start, in the background."""


@dataclass(frozen=True, slots=True)
class SparkStarted:
    """The session has started, and is needed now."""

    elapsed_s: float
    """Seconds that the start took, whether or not anybody waited for it."""


@dataclass(frozen=True, slots=True)
class FenceTaken:
    """The process leads; the leader before it can no longer write."""

    deploy_generation: int
    epoch: int
    version: int | None
    """The version of the store; none if it is not initialised."""
    waited_s: float


@dataclass(frozen=True, slots=True)
class Initialized:
    """An empty store was initialised."""

    version: int


@dataclass(frozen=True, slots=True)
class StepBegan:
    """A step begins."""

    plan: StepPlan


@dataclass(frozen=True, slots=True)
class StepAdvanced:
    """A step has rewritten about this many of its rows and bytes; the numbers only grow, and end at the total."""

    plan: StepPlan
    rows: int
    size: int


@dataclass(frozen=True, slots=True)
class StepCommitted:
    """A step was committed."""

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
    """A step failed; as far as this process knows, nothing of it was applied."""

    plan: StepPlan
    code: str
    what: str
    seconds: float


@dataclass(frozen=True, slots=True)
class BuiltinsMigrated:
    """The builtin collections were migrated to those of this build."""

    build: str
    evolved: int
    replaced: int
    created: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Maintained:
    """Maintenance after a commit did something, or postponed something."""

    consolidated: tuple[str, ...]
    """The collections whose files were merged."""
    checkpoint: int | None
    frontier: int | None
    files_deleted: int
    postponed: str | None
    """The reason why something was postponed; none if nothing was."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The store can be used and members can join: its rows and builtins are those of this build.

    In the modes read-only and savepoint, an upgraded scratch copy of it can be used.
    """

    store: str
    mode: str
    version: int
    deploy_generation: int
    epoch: int
    ts: int
    seconds: float
    """Seconds since Opening."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "store", redact_addresses(self.store))


@dataclass(frozen=True, slots=True)
class Failed:
    """The store cannot be used, for the reason given."""

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
            return cls(code, redact_addresses(f"unexpected {code}: {error}"), "", "", seconds)
        return cls(code, "it was stopped", "", "", seconds)


@dataclass(frozen=True, slots=True)
class Closed:
    """The process has closed the store."""

    version: int


Event = (
    Opening
    | WaitingForLeader
    | SparkStarting
    | SparkStarted
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

Observer = Callable[[Event], None]
ObserverComplaint = Callable[[str], None]


def ignore(_event: Event) -> None:
    """Ignore an event."""


def together(*observers: Observer | None, complain: ObserverComplaint | None = None) -> Observer:
    """Combine observers into one: each receives every event, even if another one raises."""
    present = [safe_observer(observer, complain) for observer in observers if observer is not None]

    def emit(event: Event) -> None:
        for observer in present:
            observer(event)

    return emit


def safe_observer(observer: Observer, complain: ObserverComplaint | None = None) -> Observer:
    """Wrap an observer so that it never raises; the first error of each type is reported, by default to `logging`."""
    reported: set[type[Exception]] = set()

    def emit(event: Event) -> None:
        try:
            observer(event)
        except Exception as error:
            if type(error) not in reported:
                reported.add(type(error))
                text = f"an observer raised an error and stays subscribed: {type(error).__name__}: {error}"
                if complain is not None:
                    complain(text)
                else:
                    logging.getLogger("catalog").warning(text, exc_info=True)

    return emit


@contextmanager
def opening(observer: Observer, begun: Opening) -> Iterator[Callable[[], float]]:
    """Emit Opening, and Failed if the block raises; yield a function that returns the seconds since Opening."""
    began_s = time.monotonic()
    observer(begun)
    try:
        yield lambda: time.monotonic() - began_s
    except BaseException as error:
        observer(Failed.of(error, time.monotonic() - began_s))
        raise
