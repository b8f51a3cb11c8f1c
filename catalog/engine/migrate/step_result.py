"""The context in which a step is executed on the driver, and the result that its commit needs."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from catalog.engine.base.fence import Fence
from catalog.engine.base.project import Project
from catalog.engine.log.protocol import DataFile, Log, LogState
from catalog.engine.migrate.plan import StepPlan
from catalog.engine.migrate.row_errors import BadRows
from catalog.engine.migrate.row_types import registry_of
from catalog.engine.migrate.step_progress import Counts
from catalog.engine.migrate.violations import Violations
from catalog.engine.spark.jobs import ProgressCallback, SparkJobs
from catalog.engine.stash.constraints import Constraints
from catalog.engine.stash.registry import Registry


@dataclass(frozen=True, slots=True)
class StepContext:
    """A step, the state of the store that it reads, and where it runs."""

    plan: StepPlan
    state: LogState
    log: Log
    project: Project
    place: tuple[str, Mapping[str, str]]
    """The store's address and storage options."""
    fence: Fence
    jobs: SparkJobs
    watch: ProgressCallback
    is_thorough: bool = False
    """True to find every row that breaks a rule; else a task stops at the first one."""
    excluded: Mapping[str, AbstractSet[bytes]] = field(default_factory=dict)
    """Keys of rows that were set aside before: a row that refers to them breaks no rule of its own."""

    @property
    def registry(self) -> Registry:
        """The collections of the new version."""
        return registry_of(self.project, self.plan.version)

    @property
    def constraints(self) -> Constraints:
        return self.project.constraints.at(self.plan.version)


@dataclass(slots=True)
class StepResult:
    """The files of an executed step, what its commit needs, and the rows that break a rule."""

    adds: list[DataFile] = field(default_factory=list)
    removes: list[DataFile] = field(default_factory=list)
    depends: frozenset[str] = frozenset()
    """Collections that must not have changed when it is committed."""
    next_ids: dict[str, int] = field(default_factory=dict)
    """By allocator, after the step."""
    counts: dict[str, Counts] = field(default_factory=dict)
    bad_stored: BadRows = field(default_factory=BadRows)
    """Stored rows that break a rule. A thorough execution that finds any returns nothing else but its files."""
    bad_new: BadRows = field(default_factory=BadRows)
    """New rows that break a rule. Those that broke a constraint are in the files."""
    task_s: float = 0.0
    sampled_s: float = 0.0
    """Of these, the time of protobuf's own reading and writing."""

    @property
    def violations(self) -> Violations:
        """Every violation, those of stored rows first."""
        found = Violations()
        found.merge([self.bad_stored.violations, self.bad_new.violations])
        return found

    def counts_of(self, collection: str) -> Counts:
        return self.counts.setdefault(collection, Counts())
