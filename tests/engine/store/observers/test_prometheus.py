"""Metrics as Prometheus reads them: of the whole way of a start, and well formed whatever a store is called."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from catalog import open_catalog
from catalog.engine.store.observers.prometheus import HELP, MetricsFile
from catalog.events import Closed, Event, Failed, Opening, StepAdvanced, StepBegan, StepFailed
from catalog.tools.generator import generate
from catalog.upgrade import PROJECT
from tests.conftest import ROOT
from tests.engine.store.observers.test_log_lines import NOTICES, PLAN

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"({NAME})\{{({LABEL}(?:,{LABEL})*)?\}} (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)")
Samples = dict[tuple[str, tuple[str, ...]], float]


def parsed(text: str) -> Samples:
    """The samples of a file, by name and labels; refuses what the text format does not allow."""
    assert text.endswith("\n")
    found: Samples = {}
    declared: list[str] = []
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            name = line.split(" ")[2]
            assert name not in declared, "the lines of a name stand together"
            declared.append(name)
            assert line == f"# HELP {name} {HELP[name]}"
        elif line.startswith("# TYPE "):
            assert line == f"# TYPE {declared[-1]} gauge"
        else:
            sample = SAMPLE.fullmatch(line)
            assert sample is not None, line
            assert sample[1] == declared[-1]
            key = sample[1], tuple(re.findall(LABEL, sample[2] or ""))
            assert key not in found
            found[key] = float(sample[3])
    return found


@dataclass
class Written:
    path: Path

    @property
    def samples(self) -> Samples:
        return parsed(self.path.read_text(encoding="utf-8"))

    def __getitem__(self, name: str) -> float:
        (value,) = [value for (own, _), value in self.samples.items() if own == name]
        return value


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path / "catalog.prom")


def test_a_start_is_measured(tmp_path: Path, written: Written) -> None:
    """Versions, steps, rows and seconds, the fence, and that it is ready until it is closed."""
    store = tmp_path / "store"
    generate(PROJECT, store, PROJECT.current - 1, 100, seed=1)
    with open_catalog(store, observer=MetricsFile(written.path)) as cat:
        assert written["catalog_ready"] == 1
        assert written["catalog_store_version"] == written["catalog_target_version"] == PROJECT.current
        assert (written["catalog_steps_applied"], written["catalog_steps_failed"], written["catalog_failed"]) == (
            1,
            0,
            0,
        )
        assert (written["catalog_epoch"], written["catalog_ts"]) == (cat.epoch, cat.ts)
        assert 0 < written["catalog_step_seconds"] < written["catalog_start_seconds"]
        assert written["catalog_step_progress_ratio"] == 1
        labels = (f'store="{store}"', 'step="v21_to_v22"')
        for name in ("catalog_step_rows", "catalog_step_bytes"):
            before, after = (written.samples[name, (*labels, f'when="{when}"')] for when in ("before", "after"))
            assert before == after > 0
        build = written.samples["catalog_build_info", (labels[0], f'build="{PROJECT.build}"', 'project="catalog"')]
        assert build == 1
    assert written["catalog_ready"] == 0
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".tmp"] == []


def test_another_start_replaces_what_the_last_one_said(tmp_path: Path, written: Written) -> None:
    """Steps of before are not told of again."""
    observer = MetricsFile(written.path)
    for notice in NOTICES:
        observer(notice)
    assert any("step" in str(labels) for _, labels in written.samples)
    open_catalog(tmp_path / "store", observer=observer).close()
    assert not any("step=" in str(labels) for _, labels in written.samples)


def test_a_failure_is_measured(written: Written) -> None:
    """By the class of its error; before it, nothing is said to have failed."""
    observer = MetricsFile(written.path)
    told: list[Event] = [NOTICES[0], StepBegan(PLAN), StepFailed(PLAN, "StepRefusedError", "x", 2.0)]
    for notice in told:
        observer(notice)
    assert (written["catalog_failed"], written["catalog_ready"]) == (0, 0)
    observer(Failed("StepRefusedError", "x", "y", "z", 3.0))
    assert written.samples["catalog_failed", ('store="/srv/a store"', 'code="StepRefusedError"')] == 1
    assert (written["catalog_steps_failed"], written["catalog_start_seconds"]) == (1, 3.0)
    assert (written["catalog_failed"], written["catalog_step_seconds"]) == (1, 2.0)


@pytest.mark.parametrize("store", ['a"b', "a\\b", "a\nb", "Größe 目録", "{},=", ""])
def test_a_store_of_any_name_is_well_formed(written: Written, store: str) -> None:
    """Labels are escaped as the format says."""
    MetricsFile(written.path)(Opening(store, "catalog", "leader", "1.0.0", 2))
    escaped = store.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    assert written.samples["catalog_ready", (f'store="{escaped}"',)] == 0


def test_a_step_that_advances_is_written_sparingly(written: Written) -> None:
    """At most every five seconds; what comes after has everything."""
    now_s = [100.0]
    observer = MetricsFile(written.path, clock=lambda: now_s[0])
    observer(NOTICES[0])
    observer(StepBegan(PLAN))
    plan_rows = PLAN.rows_to_rewrite
    for passed_s, rows, seen in ((1, 3, 0.0), (4.9, 4, 0.0), (5.0, 5, 0.5), (6, 9, 0.5)):
        now_s[0] = 100 + passed_s
        observer(StepAdvanced(PLAN, rows, 64 * rows))
        assert written["catalog_step_progress_ratio"] == seen, (rows, plan_rows)
    observer(Closed(2))
    assert written["catalog_step_progress_ratio"] == 0.9


def test_secrets_are_taken_out(written: Written) -> None:
    """Wherever they turn up."""
    observer = MetricsFile(written.path, redact=lambda text: text.replace("hunter2", "***"))
    observer(Opening("s3://bucket/hunter2", "catalog", "leader", "1.0.0", 2))
    assert "hunter2" not in written.path.read_text(encoding="utf-8")
    assert "s3://bucket/***" in written.path.read_text(encoding="utf-8")


def test_others_may_read_the_file(written: Written) -> None:
    """The collector runs as somebody else."""
    MetricsFile(written.path)(NOTICES[0])
    assert written.path.stat().st_mode & 0o444 == 0o444


def test_the_page_explains_every_metric() -> None:
    """Each in its table."""
    page = (ROOT / "docs" / "howto" / "operate.md").read_text(encoding="utf-8")
    named = {
        name
        for line in page.splitlines()
        if line.startswith("| `catalog_")
        for name in re.findall(r"`(catalog_\w+)`", line)
    }
    assert named == set(HELP)
