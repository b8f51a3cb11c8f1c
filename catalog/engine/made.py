"""What a step runs on, and what it made: handed from whoever runs steps to its execution, and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from catalog.engine.judging import SAMPLE, Judge
from catalog.engine.progress import Counts
from catalog.engine.violations import Violations
from catalog.log.protocol import DataFile, Fence, Log
from catalog.project import Project
from catalog.spark.jobs import SparkJobs, Watch

Keys = dict[str, set[bytes]]
"""Of rows, by collection."""


@dataclass(frozen=True, slots=True)
class Source:
    """What a step runs on, and where."""

    log: Log
    project: Project
    place: tuple[str, Mapping[str, str]]
    """The store's address and storage options."""
    fence: Fence
    jobs: SparkJobs
    watch: Watch
    faults_max: int | None = 1
    """None: every row that breaks a rule is looked for, and set aside."""
    sample: int = SAMPLE
    dead: Mapping[str, AbstractSet[bytes]] = field(default_factory=dict)
    """Keys of rows that were set aside before: what refers to them breaks no rule of its own."""

    @property
    def is_thorough(self) -> bool:
        return self.faults_max is None


@dataclass(slots=True)
class Made:
    """What a step made, and what its commit needs."""

    adds: list[DataFile] = field(default_factory=list)
    removes: list[DataFile] = field(default_factory=list)
    depends: frozenset[str] = frozenset()
    """Collections that must not have changed when it is committed."""
    next_ids: dict[str, int] = field(default_factory=dict)
    """By allocator, after the step."""
    counts: dict[str, Counts] = field(default_factory=dict)
    violations: Violations = field(default_factory=Violations)
    faulty: Keys = field(default_factory=dict)
    """Stored rows that break a rule. If every fault was asked for, only those are told then: leave them out first."""
    spoilt: Keys = field(default_factory=dict)
    """New rows that break a rule, by key: some of them are in the files."""
    doubled: set[str] = field(default_factory=set)
    """Collections of which the files hold a key more than once."""
    set_aside: Counter[str] = field(default_factory=Counter)
    """How many new rows break a rule, by collection."""
    task_s: float = 0.0
    sampled_s: float = 0.0
    """Of that, what protobuf's own reading and writing took."""

    def take_stored(self, judge: Judge) -> None:
        """Take in what a task found of stored rows."""
        self.violations.merge([judge.stored])
        add_keys(self.faulty, judge.faulty)
        self.sampled_s += judge.sampled_s

    def take_made(self, judge: Judge) -> None:
        """Take in what a task found of new rows."""
        self.violations.merge([judge.made])
        self.set_aside += judge.dropped
        add_keys(self.spoilt, judge.spoilt)

    def take_named(self, named: Named) -> None:
        """Take in the rows that broke a rule across rows."""
        self.violations.merge([named.violations])
        self.set_aside += named.set_aside
        add_keys(self.spoilt, named.spoilt)
        self.doubled |= named.doubled


@dataclass(slots=True)
class Named:
    """Rows of a state that broke a rule across rows."""

    violations: Violations = field(default_factory=Violations)
    set_aside: Counter[str] = field(default_factory=Counter)
    """How many, by collection."""
    spoilt: Keys = field(default_factory=dict)
    """Their keys, where no other row has the same."""
    doubled: set[str] = field(default_factory=set)
    """Collections in which a key is there more than once."""

    def spoil(self, collection: str, key: bytes) -> None:
        own = self.spoilt.setdefault(collection, set())
        if key not in own:
            own.add(key)
            self.set_aside[collection] += 1


def add_keys(keys: Keys, more: Mapping[str, AbstractSet[bytes]]) -> None:
    for collection, own in more.items():
        keys.setdefault(collection, set()).update(own)
