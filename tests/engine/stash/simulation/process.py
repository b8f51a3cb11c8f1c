"""A process that uses the stash, as far as one process of tests can play several, and the faults it meets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from catalog.constraints import CONSTRAINTS
from catalog.engine.log.maintenance import Policy
from catalog.engine.log.protocol import FaultPoint
from catalog.engine.stash.compaction import CompactionPolicy
from catalog.engine.stash.registry import Registry
from catalog.engine.stash.stash import Stash
from catalog.engine.stash.transaction import Transaction
from catalog.generated import objects_pb2 as types
from tests.engine.log.places import Crash, Place
from tests.memory_log import LostResponseError

REGISTRY = Registry.of(types)
POLICY = Policy(checkpoint_every=3, clean_every=8, retention_ms=60_000, orphan_ms=30_000)
SHAPE = CompactionPolicy(tail_files_max=3, tail_share_max=1.5, tail_bytes_max=20)


class Faults:
    """What happens at the points that a log passes: something of another process, a crash or a lost answer."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.points: tuple[FaultPoint, ...] = ()
        self.skip_count = 0
        self.crash = False
        self.meanwhile: tuple[FaultPoint, Callable[[], None]] | None = None

    def __call__(self, point: FaultPoint) -> None:
        if self.meanwhile is not None and self.meanwhile[0] is point:
            do, self.meanwhile = self.meanwhile[1], None
            do()
        if point not in self.points:
            return
        self.skip_count -= 1
        if self.skip_count < 0:
            raise Crash(point) if self.crash else LostResponseError(f"no answer at {point}")


@dataclass
class Process:
    """A handle on the stash, as a process of its own would have it."""

    stash: Stash
    faults: Faults

    @classmethod
    def start(cls, place: Place) -> Process:
        faults = Faults()
        stash = Stash.open(place.open(faults), REGISTRY, CONSTRAINTS, POLICY)
        stash.compaction = SHAPE
        stash.join()
        return cls(stash, faults)

    def begin(self) -> Transaction:
        self.stash.refresh()
        return Transaction(REGISTRY, self.stash.view())
