"""Generated stores of every old version, each upgraded by opening it, and what was told of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from catalog import open_catalog
from catalog.engine.migrate.plan import StepPlan
from catalog.engine.migrate.step_progress import Counts
from catalog.events import Event, StepAdvanced, StepBegan, StepCommitted
from catalog.tools.generator import generate
from catalog.upgrade import PROJECT
from tests.migrations.plain import Store
from tests.upgrade.golden import ROWS, SEED
from tests.upgrade.stores import log_of, plain_at, rows_at, steps_of


@dataclass(slots=True)
class Told:
    """Everything that an upgrade told, in order."""

    notices: list[Event] = field(default_factory=list)
    began_steps: list[StepPlan] = field(default_factory=list)
    advances: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    ended_steps: list[tuple[StepPlan, Mapping[str, Counts]]] = field(default_factory=list)

    def __call__(self, notice: Event) -> None:
        self.notices.append(notice)
        match notice:
            case StepBegan(plan):
                self.began_steps.append(plan)
                self.advances[plan.name] = []
            case StepAdvanced(plan, rows, size):
                self.advances[plan.name].append((rows, size))
            case StepCommitted(plan, counts):
                self.ended_steps.append((plan, counts))
            case _:
                pass


@dataclass(slots=True)
class Upgraded:
    store: Path
    first: int
    """The version that it was generated at."""
    first_ts: int
    """The newest ts of that version, before anybody opened it."""
    told: Told

    def at(self, version: int) -> Store:
        """Its rows when it came to a version."""
        return plain_at(self.store, version, self.ts(version))

    def stored_at(self, version: int) -> dict[str, list[tuple[bytes, bytes]]]:
        return rows_at(self.store, self.ts(version))

    def ts(self, version: int) -> int:
        return self.first_ts if version == self.first else steps_of(self.store)[version].version


class UpgradedStores:
    """By the version that each was generated at; made when it is first asked for."""

    def __init__(self, place: Path, spark: SparkSession) -> None:
        self.place, self.spark = place, spark
        self.versions = range(PROJECT.minimum, PROJECT.current)
        self._made: dict[int, Upgraded] = {}

    def __getitem__(self, version: int) -> Upgraded:
        if version not in self._made:
            store, told = self.place / f"v{version}", Told()
            generate(PROJECT, store, version, ROWS, SEED)
            ts = log_of(store).verify()
            open_catalog(store, deploy_generation=1, spark=self.spark, observer=told).close()
            self._made[version] = Upgraded(store, version, ts, told)
        return self._made[version]
