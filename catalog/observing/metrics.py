"""Notices as metrics in the text format of Prometheus, in a file for the textfile collector of node_exporter.

Every sample is a gauge: the file tells of the last start at one store, and a later one replaces it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from catalog.notices import (
    BuiltinsMigrated,
    Closed,
    Failed,
    FenceTaken,
    Initialized,
    Notice,
    Opening,
    Ready,
    StepAdvanced,
    StepBegan,
    StepCommitted,
    StepFailed,
)
from catalog.observing.files import replace_file

_ADVANCED_EVERY_S: Final = 5.0
HELP: Final[Mapping[str, str]] = {
    "catalog_build_info": "The build that was started, and the project that it is of.",
    "catalog_ready": "Whether the store can be used: 1, or 0 before, after a failure and when it is closed.",
    "catalog_failed": "Whether the last start failed, with the error's code if it did.",
    "catalog_store_version": "The version that the store is at.",
    "catalog_target_version": "The version that the build serves.",
    "catalog_deploy_generation": "The deploy generation of the leader.",
    "catalog_epoch": "The epoch of the leader.",
    "catalog_ts": "The newest ts when the store was ready.",
    "catalog_start_timestamp_seconds": "When the start began, in seconds since 1970.",
    "catalog_start_seconds": "How long the start took until the store was ready, or until it failed.",
    "catalog_waited_seconds": "How long the start waited for another leader.",
    "catalog_steps_applied": "How many steps this start applied.",
    "catalog_steps_failed": "How many steps of this start failed.",
    "catalog_step_seconds": "How long a step took.",
    "catalog_step_progress_ratio": "How much of a step is done, from 0 to 1.",
    "catalog_step_rows": "Live rows of the collections that a step names, before and after it.",
    "catalog_step_bytes": "Bytes of the files of those collections, before and after it.",
    "catalog_builtins_seconds": "How long the migration of builtins took.",
}


class Sample(NamedTuple):
    name: str
    value: float
    labels: Mapping[str, str]


@dataclass(slots=True)
class MetricsFile:
    """Written anew at each notice that changes it; while a step advances, every five seconds at most."""

    path: Path
    redact: Callable[[str], str] = str
    """Takes secrets out of what is written."""
    clock: Callable[[], float] = time.time
    _samples: dict[tuple[str, tuple[tuple[str, str], ...]], Sample] = field(default_factory=dict)
    _store: str = ""
    _written_s: float = 0.0

    def __call__(self, notice: Notice) -> None:
        if isinstance(notice, Opening):
            self._samples.clear()
            self._store = notice.store
        changed = list(self._changes(notice))
        if not changed:
            return
        for sample in changed:
            self._samples[sample.name, tuple(sample.labels.items())] = sample
        if isinstance(notice, StepAdvanced) and self.clock() - self._written_s < _ADVANCED_EVERY_S:
            return
        self._written_s = self.clock()
        replace_file(self.path, self.redact(exposition(self._samples.values())))

    def _changes(self, notice: Notice) -> Iterator[Sample]:  # noqa: C901 - an arm per notice
        one = self._one
        match notice:
            case Opening():
                yield one("catalog_build_info", 1, build=notice.build, project=notice.project)
                yield one("catalog_start_timestamp_seconds", self.clock())
                yield one("catalog_target_version", notice.target)
                for name in ("catalog_ready", "catalog_steps_applied", "catalog_steps_failed"):
                    yield one(name, 0)
                yield one("catalog_failed", 0, code="")
            case FenceTaken():
                yield one("catalog_deploy_generation", notice.deploy_generation)
                yield one("catalog_epoch", notice.epoch)
                yield one("catalog_waited_seconds", notice.waited_s)
                if notice.version is not None:
                    yield one("catalog_store_version", notice.version)
            case Initialized():
                yield one("catalog_store_version", notice.version)
            case StepBegan() | StepAdvanced() | StepCommitted() | StepFailed():
                yield from self._step_changes(notice)
            case BuiltinsMigrated():
                yield one("catalog_builtins_seconds", notice.seconds)
            case Ready():
                yield one("catalog_ready", 1)
                yield one("catalog_start_seconds", notice.seconds)
                yield one("catalog_store_version", notice.version)
                yield one("catalog_deploy_generation", notice.deploy_generation)
                yield one("catalog_epoch", notice.epoch)
                yield one("catalog_ts", notice.ts)
            case Failed():
                self._samples = {key: own for key, own in self._samples.items() if own.name != "catalog_failed"}
                yield one("catalog_failed", 1, code=notice.code)
                yield one("catalog_ready", 0)
                yield one("catalog_start_seconds", notice.seconds)
            case Closed():
                yield one("catalog_ready", 0)
            case _:
                pass

    def _step_changes(self, notice: StepBegan | StepAdvanced | StepCommitted | StepFailed) -> Iterator[Sample]:
        one = self._one
        match notice:
            case StepBegan(plan=plan):
                yield one("catalog_step_progress_ratio", 0, step=plan.name)
            case StepAdvanced(plan=plan):
                ratio = notice.rows / plan.rows_to_rewrite if plan.rows_to_rewrite else 0.0
                yield one("catalog_step_progress_ratio", round(ratio, 4), step=plan.name)
            case StepCommitted(plan=plan):
                yield one("catalog_store_version", plan.version)
                yield self._counted("catalog_steps_applied")
                yield one("catalog_step_progress_ratio", 1, step=plan.name)
                yield one("catalog_step_seconds", notice.seconds, step=plan.name)
                yield one("catalog_step_rows", notice.rows_before, step=plan.name, when="before")
                yield one("catalog_step_rows", notice.rows_after, step=plan.name, when="after")
                yield one("catalog_step_bytes", notice.bytes_before, step=plan.name, when="before")
                yield one("catalog_step_bytes", notice.bytes_after, step=plan.name, when="after")
            case StepFailed(plan=plan):
                yield self._counted("catalog_steps_failed")
                yield one("catalog_step_seconds", notice.seconds, step=plan.name)

    def _one(self, name: str, value: float, **labels: str) -> Sample:
        return Sample(name, value, {"store": self._store, **labels})

    def _counted(self, name: str) -> Sample:
        before = next((own.value for own in self._samples.values() if own.name == name), 0)
        return self._one(name, before + 1)


def exposition(samples: Iterable[Sample]) -> str:
    """Samples in the text format: those of one name together, each name with what it means."""
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
