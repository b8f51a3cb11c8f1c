"""Pages to be looked at: of real stores, of verdicts of every kind, and of whatever a hostile store could say."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from catalog.cli.commands.debug_stats import CollectionLine, Stats
from catalog.cli.commands.debug_upgrade_check import UncheckedStore, UpgradeCheckResult
from catalog.cli.html.page import Stamp
from catalog.cli.html.stats import stats_page
from catalog.cli.html.upgrade_check import check_page
from catalog.engine.builtins.store_metrics import StoreMetric
from catalog.engine.log.place import StorePlace
from catalog.engine.migrate.violations import RowRule, Violation
from catalog.tools.fsck.findings import FsckCode, FsckFinding, Severity
from catalog.tools.generator.shape import CollectionShape, StoreShape
from catalog.tools.upgrade_check.check import check_upgrade
from catalog.tools.upgrade_check.report import (
    BuiltinsReport,
    CollectionReport,
    ErrorSummary,
    FsckSummary,
    StepOutcome,
    StepReport,
    UpgradeReport,
)
from catalog.upgrade import PROJECT
from tests.tools.upgrade_check.checks import UNKNOWN, Row, insert, row

MADE_AT = datetime(2026, 11, 17, 3, 4, 5, tzinfo=UTC)
STAMP = Stamp("0.2.0", MADE_AT)
HOSTILE = "\"'><script>window.hurt=1</script><img src=https://example.com/x onerror=window.hurt=1>\u202e{{ 7*7 }}`"
"""Breaks out of an attribute and out of an element, asks another machine, turns text around, is a template."""
v21: Any = PROJECT.types(21)


def bad_rows() -> list[Row]:
    """Of version 21: an item in no schema, roles of one name, and a setting that is hostile and no message."""
    owner = v21.RoleId(system=2)
    return [
        row("item", v21.ItemKey(id=9000), v21.ItemValue(name="lost", schema_id=404, owner_id=owner)),
        row("role", v21.RoleKey(id=v21.RoleId(user=7001)), v21.RoleValue(name="twice")),
        row("role", v21.RoleKey(id=v21.RoleId(user=7002)), v21.RoleValue(name="twice")),
        row("setting", v21.SettingKey(name=HOSTILE), v21.SettingValue(value="x").SerializeToString() + UNKNOWN),
        *(
            row("setting", v21.SettingKey(name=f"odd {number}"), v21.SettingValue().SerializeToString() + UNKNOWN)
            for number in range(20)
        ),
    ]


def real_verdict(store: Path, *, bad: bool = False) -> UpgradeReport:
    """Of a store of version 21, whose one step needs no Spark."""
    if bad:
        insert(store, bad_rows())
    return check_upgrade(StorePlace.at(PROJECT, store))


def failed_verdict(text: str = "text") -> UpgradeReport:
    """Everything that can be said of an upgrade, from version 18 on; each text is this one."""
    steps = (
        StepReport(
            "v18_to_v19",
            18,
            19,
            f"why: {text}",
            StepOutcome.FAILED,
            12.5,
            10.0,
            collections=(
                CollectionReport("item", "per row", 2_000, 1_880, 120_000, 100_000, 1_500, 0, 0, 100, 20),
                CollectionReport(text, "", 0, 300, 0, 9_000, 0, 300, 0, 0, 0),
            ),
            violations=tuple(Violation(RowRule.CHANGE, text, f"id: {number} {text}", text) for number in range(100)),
            counts={RowRule.CHANGE: 1_120, RowRule.REFERENCE: 1},
            left_out=20,
            bytes_written=109_000,
        ),
        StepReport("v19_to_v20", 19, 20, "", StepOutcome.FAILED, 0.02, error=ErrorSummary(text, text, text)),
        StepReport("v20_to_v21", 20, 21, text, StepOutcome.NOT_RUN),
        StepReport("v21_to_v22", 21, 22, "", StepOutcome.NOT_RUN),
    )
    findings = tuple(
        FsckFinding(code, severity, text, f"{text} {number}", text)
        for code, severity in ((FsckCode.DANGLING, Severity.ERROR), (FsckCode.UNCHECKED, Severity.NOTE))
        for number in range(12)
    )
    look = FsckSummary(18, findings, {FsckCode.DANGLING: 2_000}, 3, 4)
    return UpgradeReport(
        store=text,
        id=text,
        version=18,
        target=22,
        ts=9,
        ok=False,
        steps=steps,
        before=look,
        after=look,
        builtins=BuiltinsReport(
            StepOutcome.FAILED, ErrorSummary(*[text] * 3), (text,), (text,), (text, "events"), (text,)
        ),
        mismatches=(text, "v17_to_v18"),
        needs_reapply=True,
        startup_s=3_700.0,
        extra_bytes=2**40,
        seconds=95.0,
    )


def checks(*verdicts: UpgradeReport, unchecked: tuple[UncheckedStore, ...] = ()) -> str:
    return check_page(PROJECT, UpgradeCheckResult(verdicts, unchecked), STAMP, str)


def hostile_check() -> str:
    return checks(failed_verdict(HOSTILE), failed_verdict(), unchecked=(UncheckedStore(*[HOSTILE] * 4),))


def stats_of(text: str = "item", *, shape: bool = True, collections: int = 15, measurements: int = 30) -> Stats:
    lines = tuple(
        CollectionLine(
            text if number == 0 else f"collection_{number}", 10**number % 99_991, 1, number % 3, 2, 7**number
        )
        for number in range(collections)
    )
    own = CollectionShape(10, 1.5, 2, 170.25, 900, {text: 0.99999, "value.oid": 0.5, "key.x": 0.0})
    statistics = StoreShape(22, {text: own, "role": own}) if shape else None
    return Stats(text, 22, 9, 2, lines, statistics, tuple(history(text, count=measurements)))


def history(text: str = "item", *, count: int = 30) -> list[StoreMetric]:
    """Of three collections, one of which came later and one of which went."""
    found = []
    for number in range(count):
        at = MADE_AT - timedelta(days=count - number)
        found.append(StoreMetric(at, text, 1_000 + 40 * number, 90_000 + 3_000 * number))
        if number >= count // 2:
            found.append(StoreMetric(at, "came", number, 800 * number))
        if number < count // 2:
            found.append(StoreMetric(at, "went", 50, 4_000))
    return found


def statistics(text: str = "item", *, count: int = 30, shape: bool = True, collections: int = 15) -> str:
    return stats_page(stats_of(text, shape=shape, collections=collections, measurements=count), STAMP, str)


def up_to_date() -> UpgradeReport:
    sound = failed_verdict()
    return replace(
        sound, version=22, ok=True, steps=(), before=FsckSummary(22, (), {}), after=None, builtins=None, mismatches=()
    )
