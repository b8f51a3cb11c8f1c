"""The demonstration: what it shows is what the store holds, and it leaves nothing behind."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from google.protobuf.text_format import MessageToString
from pyspark.sql import SparkSession

from catalog import open_catalog
from catalog.cli.screen import make_console
from catalog.engine.log.delta import DeltaLog
from catalog.engine.migrate.plan import LiveRows, StepPlan, plan
from catalog.engine.migrate.recorder import RunState
from catalog.engine.stash.registry import Registry
from catalog.engine.store.catalog import Catalog
from catalog.objects import ClusterReplicaKey, CommentKey, ItemKey, MigrationEventKey
from catalog.tools.fsck.stash import fsck
from catalog.upgrade import PROJECT
from examples.demo import demonstrate
from tests.cli.terminal import in_pipe

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"
OLDEST, CURRENT = PROJECT.minimum, PROJECT.current


@pytest.mark.spark
def test_the_demonstration_shows_what_the_store_holds(tmp_path: Path, spark: SparkSession) -> None:
    """The plan, a line for each step, the events, the new rows, and an item of before and of now."""
    store, out = tmp_path / "store", io.StringIO()
    demonstrate(store, make_console(out), rows=100, spark=spark)
    shown, log = out.getvalue(), DeltaLog(f"{store}/stash")
    assert fsck(log, Registry.of(PROJECT.current_types), PROJECT.constraints).ok
    with open_catalog(store, "read-only") as catalog:
        items = _through_time(catalog, *_section(shown, "Item "))
        before = log.state(items[OLDEST])
        steps = plan(PROJECT, before, OLDEST, CURRENT, LiveRows(log))
        _expect_plan(_section(shown, "What an upgrade")[1], steps)
        told = re.findall(r"(?m)^step (\d+) of (\d+), (\w+): ", "\n".join(_section(shown, "The upgrade, on Spark")[1]))
        assert told == [(str(number), str(len(steps)), step.name) for number, step in enumerate(steps, 1)]
        heading, table = _section(shown, "The store is at")
        assert heading == f"The store is at version {CURRENT}, ts {catalog.ts}"
        events = [value for _, value in catalog.rows(MigrationEventKey)]
        assert [row[:5] for row in _cells(table)] == [
            [str(e.version), e.name, RunState(e.state).name, str(e.rows_before), str(e.rows_after)]  # type: ignore[attr-defined]
            for e in events
        ]
        for title, key_type in (("Comments", CommentKey), ("Replicas", ClusterReplicaKey)):
            heading, table = _section(shown, title)
            rows = list(catalog.rows(key_type))
            assert heading.endswith(f"the first of {len(rows)}")
            assert _cells(table)[0][0] == MessageToString(rows[0][0], as_one_line=True)


def _expect_plan(lines: list[str], steps: list[StepPlan]) -> None:
    """The rows with numbers are the collections to be rewritten, step by step."""
    *table, _ = lines
    numbers = [[int(cell.replace(",", "")) for cell in row[-3:-1]] for row in _cells(table) if row[-1].endswith("B")]
    replaced = [[work for work in step.works if work.collection in step.rewrites] for step in steps]
    expected = [[sum(work.files for work in works), sum(work.rows for work in works)] for works in replaced if works]
    assert numbers == expected


def _through_time(catalog: Catalog, heading: str, lines: list[str]) -> dict[int, int]:
    """The ts of each version that an item is shown at; its comment is in it until it has a row of its own."""
    number = int(heading.split()[1])
    starts = [row for row in _cells(lines) if row[0].isdigit()]
    assert [int(row[1]) for row in starts] == [OLDEST, 18, CURRENT]
    (now,) = [value for key, value in catalog.rows(ItemKey) if key.id == number]
    (then,) = [value for key, value in catalog.rows(ItemKey, as_of=int(starts[1][0])) if key.id == number]  # type: ignore[attr-defined]
    comments = [value.comment for key, value in catalog.rows(CommentKey) if key.item_id == number]  # type: ignore[attr-defined]
    held = [then.comment] if then.HasField("comment") else []  # type: ignore[attr-defined]
    assert sorted(comments) == sorted([*held, *(column.comment for column in then.column_comments)])  # type: ignore[attr-defined]
    text = re.sub(r"\s+", " ", " ".join(lines))
    assert re.sub(r'create_sql: "(?:[^"\\]|\\.)*" ', "", MessageToString(now, as_one_line=True)) in text
    assert all(f'"{comment}"' in text for comment in comments)
    return {int(row[1]): int(row[0]) for row in starts}


def _section(shown: str, title: str) -> tuple[str, list[str]]:
    """A heading that begins so, and the lines below it."""
    blocks = re.split(r"(?m)^\n(?=\S)", shown)
    found = next(block for block in blocks if block.startswith(title))
    heading, *lines = [line for line in found.splitlines() if line.strip()]
    return heading, lines


def _cells(lines: list[str]) -> list[list[str]]:
    """The rows of a table, cell by cell."""
    ruler = next(number for number, line in enumerate(lines) if "──" in line)
    return [re.split(r"\s{2,}", line.strip()) for line in lines[ruler + 1 :]]


def test_without_java_it_says_so_in_three_lines(tmp_path: Path) -> None:
    """On standard error, with a status, before anything was fenced; the store that it made is gone."""
    nowhere = {"PATH": str(tmp_path), "JAVA_HOME": "", "SPARK_REMOTE": "", "TMPDIR": str(tmp_path)}
    shown, errors = in_pipe("-P", str(DEMO), expect=1, CI="true", **nowhere)
    assert "What an upgrade to version" in shown
    what, why, following = errors.splitlines()
    assert "there is no Java" in what
    assert (why[:6], following[:6]) == ("why:  ", "next: ")
    assert list(tmp_path.iterdir()) == []
