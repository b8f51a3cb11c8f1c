"""Events as metrics in the text format of Prometheus, in a file for the textfile collector of node_exporter.

Every sample is a gauge: the file describes the last start at one store, and the next start replaces it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from catalog.engine.base.atomic_file import replace_file
from catalog.events import (
    BuiltinsMigrated,
    Closed,
    Event,
    Failed,
    FenceTaken,
    Initialized,
    Opening,
    Ready,
    SparkStarted,
    StepAdvanced,
    StepBegan,
    StepCommitted,
    StepFailed,
)

_ADVANCED_EVERY_S: Final = 5.0
HELP: Final[Mapping[str, str]] = {
    "catalog_build_info": "The build that was started, and its project.",
    "catalog_ready": "1 while the store can be used and members can join; 0 before, after a failure and when closed.",
    "catalog_failed": "1 if the last start failed, with the code of the error.",
    "catalog_store_version": "The version that the store is at.",
    "catalog_target_version": "The version that the build serves.",
    "catalog_deploy_generation": "The deploy generation of the leader.",
    "catalog_epoch": "The epoch of the leader.",
    "catalog_ts": "The newest ts when the store was ready.",
    "catalog_start_timestamp_seconds": "Time when the start began, in seconds since 1970.",
    "catalog_start_seconds": "Seconds from the start until the store was ready, or until it failed.",
    "catalog_waited_seconds": "Seconds that the start waited for another leader.",
    "catalog_spark_start_seconds": "Seconds that the session of Spark took to start, beside other work.",
    "catalog_steps_applied": "Number of steps that this start applied.",
    "catalog_steps_failed": "Number of steps of this start that failed.",
    "catalog_step_seconds": "Seconds that a step took.",
    "catalog_step_progress_ratio": "Progress of a step, from 0 to 1.",
    "catalog_step_rows": "Live rows of the collections that a step names, before and after it.",
    "catalog_step_bytes": "Bytes of the files of those collections, before and after it.",
    "catalog_builtins_seconds": "Seconds that the migration of the builtins took.",
}


class MetricSample(NamedTuple):
    name: str
    value: float
    labels: Mapping[str, str]


@dataclass(slots=True)
class MetricsFile:
    """Rewrites the file at each event that changes it; while a step advances, every five seconds at most."""

    path: Path
    redact: Callable[[str], str] = str
    """Removes secrets from the text."""
    clock: Callable[[], float] = time.time
    _samples: dict[tuple[str, tuple[tuple[str, str], ...]], MetricSample] = field(default_factory=dict)
    _store: str = ""
    _written_s: float = 0.0

    def __call__(self, event: Event) -> None:
        if isinstance(event, Opening):
            self._samples.clear()
            self._store = event.store
        changed = list(self._changes(event))
        if not changed:
            return
        for sample in changed:
            self._samples[sample.name, tuple(sample.labels.items())] = sample
        if isinstance(event, StepAdvanced) and self.clock() - self._written_s < _ADVANCED_EVERY_S:
            return
        self._written_s = self.clock()
        replace_file(self.path, self.redact(exposition(self._samples.values())))

    def _changes(self, event: Event) -> Iterator[MetricSample]:  # noqa: C901 - an arm per event
        one = self._one
        match event:
            case Opening():
                yield one("catalog_build_info", 1, build=event.build, project=event.project)
                yield one("catalog_start_timestamp_seconds", self.clock())
                yield one("catalog_target_version", event.target)
                for name in ("catalog_ready", "catalog_steps_applied", "catalog_steps_failed"):
                    yield one(name, 0)
                yield one("catalog_failed", 0, code="")
            case SparkStarted():
                yield one("catalog_spark_start_seconds", event.elapsed_s)
            case FenceTaken():
                yield one("catalog_deploy_generation", event.deploy_generation)
                yield one("catalog_epoch", event.epoch)
                yield one("catalog_waited_seconds", event.waited_s)
                if event.version is not None:
                    yield one("catalog_store_version", event.version)
            case Initialized():
                yield one("catalog_store_version", event.version)
            case StepBegan() | StepAdvanced() | StepCommitted() | StepFailed():
                yield from self._step_changes(event)
            case BuiltinsMigrated():
                yield one("catalog_builtins_seconds", event.seconds)
            case Ready():
                yield one("catalog_ready", 1)
                yield one("catalog_start_seconds", event.seconds)
                yield one("catalog_store_version", event.version)
                yield one("catalog_deploy_generation", event.deploy_generation)
                yield one("catalog_epoch", event.epoch)
                yield one("catalog_ts", event.ts)
            case Failed():
                self._samples = {key: own for key, own in self._samples.items() if own.name != "catalog_failed"}
                yield one("catalog_failed", 1, code=event.code)
                yield one("catalog_ready", 0)
                yield one("catalog_start_seconds", event.seconds)
            case Closed():
                yield one("catalog_ready", 0)
            case _:
                pass

    def _step_changes(self, event: StepBegan | StepAdvanced | StepCommitted | StepFailed) -> Iterator[MetricSample]:
        one = self._one
        match event:
            case StepBegan(plan=plan):
                yield one("catalog_step_progress_ratio", 0, step=plan.name)
            case StepAdvanced(plan=plan):
                ratio = event.rows / plan.rows_to_rewrite if plan.rows_to_rewrite else 0.0
                yield one("catalog_step_progress_ratio", round(ratio, 4), step=plan.name)
            case StepCommitted(plan=plan):
                yield one("catalog_store_version", plan.version)
                yield self._counted("catalog_steps_applied")
                yield one("catalog_step_progress_ratio", 1, step=plan.name)
                yield one("catalog_step_seconds", event.seconds, step=plan.name)
                yield one("catalog_step_rows", event.rows_before, step=plan.name, when="before")
                yield one("catalog_step_rows", event.rows_after, step=plan.name, when="after")
                yield one("catalog_step_bytes", event.bytes_before, step=plan.name, when="before")
                yield one("catalog_step_bytes", event.bytes_after, step=plan.name, when="after")
            case StepFailed(plan=plan):
                yield self._counted("catalog_steps_failed")
                yield one("catalog_step_seconds", event.seconds, step=plan.name)

    def _one(self, name: str, value: float, **labels: str) -> MetricSample:
        return MetricSample(name, value, {"store": self._store, **labels})

    def _counted(self, name: str) -> MetricSample:
        before = next((own.value for own in self._samples.values() if own.name == name), 0)
        return self._one(name, before + 1)


def exposition(samples: Iterable[MetricSample]) -> str:
    """Format samples as text: those of one name together, each name with its meaning."""
    lines: list[str] = []
    found = list(samples)
    for name, meaning in HELP.items():
        own = [sample for sample in found if sample.name == name]
        if own:
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} gauge"]
            lines += [f"{name}{{{_labels(sample.labels)}}} {_number(sample.value)}" for sample in own]
    return "".join(f"{line}\n" for line in lines)


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else repr(round(value, 6))
