"""Stores with rows that no upgrade could take: one check tells of all of them, and goes on with the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog.engine.migrate.violations import LISTED_MAX, RowRule
from catalog.migrations import legacy_json_objects as legacy
from catalog.tools.fsck.findings import FsckCode
from catalog.tools.upgrade_check.report import StepOutcome
from catalog.upgrade import PROJECT
from tests.tools.upgrade_check.checks import UNKNOWN, Row, checked, checked_directly, insert, of, row

Stores = Callable[[int], Path]
MANY = LISTED_MAX + 20
v18: Any = PROJECT.types(18)


def role_id(number: int) -> Any:  # noqa: ANN401
    return v18.RoleId(user=number)


def role(number: int, value: Any) -> Row:  # noqa: ANN401
    return row("role", v18.RoleKey(id=role_id(number)), value)


def database(number: int, owner: int) -> Row:
    return row("database", v18.DatabaseKey(id=number), v18.DatabaseValue(name=f"d{number}", owner_id=role_id(owner)))


def schema(number: int, within: int, owner: int) -> Row:
    value = v18.SchemaValue(name=f"s{number}", database_id=within, owner_id=role_id(owner))
    return row("schema", v18.SchemaKey(id=number), value)


def item(number: int, within: int, owner: int, *columns: int) -> Row:
    comments = [v18.ColumnComment(position=position, comment="?") for position in columns]
    value = v18.ItemValue(name=f"i{number}", schema_id=within, owner_id=role_id(owner), column_comments=comments)
    return row("item", v18.ItemKey(id=number), value)


SOUND = [
    role(77_000, v18.RoleValue(name="sound")),
    database(7_000, 77_000),
    schema(7_000, 7_000, 77_000),
    item(70_000, 7_000, 77_000, 1, 2),
]
BAD = [
    role(77_001, b"\xff\xff"),
    role(77_002, v18.RoleValue(name="sound")),
    role(77_003, v18.RoleValue(name="sound")),
    database(7_003, 99_999),
    *(row("setting", v18.SettingKey(name=f"odd {n}"), v18.SettingValue(value="x").SerializeToString() + UNKNOWN)
      for n in range(MANY)),
    *(item(71_000 + n, 7_000, 77_000, 1, 1) for n in range(MANY)),
]  # fmt: skip
WITH_THEM = [
    role(77_004, v18.RoleValue(name="member of one that cannot be read", member_of=[role_id(77_001)])),
    role(77_005, v18.RoleValue(name="member of a member", member_of=[role_id(77_004)])),
    database(7_001, 77_001),
    schema(7_001, 7_001, 77_000),
    item(70_001, 7_001, 77_000),
    database(7_002, 77_005),
    schema(7_003, 7_003, 77_000),
]


@pytest.mark.spark
def test_bad_rows_of_every_kind_are_told_at_once_and_the_rest_goes_on(
    copy_of: Stores, scratch: Path, spark: SparkSession
) -> None:
    """With true counts; what refers to them is left out and no fault; and when they are mended, the store passes."""
    store = copy_of(18)
    insert(store, [*SOUND, *BAD, *WITH_THEM])
    verdict = checked(store, scratch, spark)
    assert not verdict.ok
    assert verdict.before is not None
    assert {code: verdict.before.counts.get(code, 0) for code in FsckCode if code in verdict.before.counts} == {
        FsckCode.UNDECODABLE: 1,
        FsckCode.UNFAITHFUL: MANY,
        FsckCode.DUPLICATE: 1,
        FsckCode.DANGLING: 1,
    }
    assert verdict.before.set_aside == MANY + 4
    assert verdict.before.left_out == len(WITH_THEM)
    first, *later = verdict.steps
    assert (first.name, first.outcome, first.error) == ("v18_to_v19", StepOutcome.FAILED, None)
    assert first.counts == {RowRule.CHANGE: MANY}
    assert len(first.violations) == LISTED_MAX
    assert {(found.rule, found.collection) for found in first.violations} == {(RowRule.CHANGE, "item")}
    assert "two comments on column 1" in first.violations[0].found
    assert of(first, "item") == (MANY, 0)
    assert {(step.outcome, step.left_out, len(step.counts)) for step in later} == {(StepOutcome.OK, 0, 0)}
    assert verdict.after is not None
    assert verdict.after.findings == ()
    insert(store, [*BAD, *WITH_THEM], diff=-1)
    assert checked(store, scratch, spark).ok


def legacy_row(collection: str, key: Any, value: Any) -> Row:  # noqa: ANN401
    return collection, legacy.encode(key), value if isinstance(value, bytes) else legacy.encode(value)


def legacy_role(number: int, name: str, *member_of: int) -> Row:
    value = legacy.RoleValue(
        name=name, create_db=False, create_role=False, create_cluster=False, member_of=tuple(member_of)
    )
    return legacy_row("role", legacy.RoleKey(id=number), value)


def legacy_database(number: int, owner: int) -> Row:
    return legacy_row(
        "database", legacy.DatabaseKey(id=number), legacy.DatabaseValue(name=f"d{number}", owner_id=owner)
    )


@pytest.mark.spark
def test_bad_rows_of_before_protobuf_are_told_by_the_first_step(
    copy_of: Stores, scratch: Path, spark: SparkSession
) -> None:
    """It reads every one; what refers to those that cannot be read is left out there too."""
    store = copy_of(14)
    unread = [
        legacy_row("role", legacy.RoleKey(id=77_001), b"{"),
        legacy_row("setting", legacy.SettingKey(name="a"), b"!"),
    ]
    alike = [legacy_role(77_002, "alike"), legacy_role(77_003, "alike"), legacy_role(77_004, "alike")]
    dangling = [legacy_database(7_000 + number, 99_999) for number in range(MANY)]
    with_them = [
        legacy_role(77_010, "member", 77_001),
        legacy_role(77_011, "member of a member", 77_010),
        legacy_database(8_001, 77_011),
    ]
    insert(store, [*unread, *alike, *dangling, *with_them])
    verdict = checked(store, scratch, spark)
    first, *later = verdict.steps
    assert (verdict.ok, first.outcome) == (False, StepOutcome.FAILED)
    assert first.counts == {RowRule.DECODE: 2, RowRule.UNIQUE: 2, RowRule.REFERENCE: MANY}
    assert len(first.violations) == 4 + LISTED_MAX
    assert (of(first, "role"), of(first, "setting"), of(first, "database")) == ((3, 2), (1, 0), (MANY, 1))
    assert first.left_out == len(with_them)
    assert {(step.outcome, step.left_out, len(step.counts)) for step in later} == {(StepOutcome.OK, 0, 0)}
    assert verdict.after is not None
    assert verdict.after.findings == ()
    insert(store, [*unread, *alike, *dangling, *with_them], diff=-1)
    assert checked(store, scratch, spark).ok


def test_a_chain_of_rows_is_left_out_to_its_end(copy_of: Stores, scratch: Path) -> None:
    """However long it is, and also where it is a circle."""
    store, length = copy_of(21), 3_000
    chain = [
        role(80_000 + number, v18.RoleValue(name=f"link {number}", member_of=[role_id(80_000 + number - 1)]))
        for number in range(1, length)
    ]
    circle = role(79_999, v18.RoleValue(name="end", member_of=[role_id(80_000 + length - 1)]))
    lost = role(80_000, v18.RoleValue(name="start", member_of=[role_id(79_999), role_id(99_999)]))
    insert(store, [circle, lost, *chain])
    verdict = checked_directly(store, scratch)
    assert verdict.before is not None
    assert verdict.before.counts == {FsckCode.DANGLING: 1}
    assert (verdict.before.set_aside, verdict.before.left_out) == (1, length)
    assert verdict.after is not None
    assert verdict.after.findings == ()


def test_a_collection_that_nobody_knows_is_told_and_left_behind(copy_of: Stores, scratch: Path) -> None:
    """Before the first step, which would have refused it."""
    store = copy_of(21)
    insert(store, [("stray", b"a", b"b"), ("stray", b"c", b"d")])
    verdict = checked_directly(store, scratch)
    assert verdict.before is not None
    assert (verdict.before.counts, verdict.before.set_aside) == ({FsckCode.COLLECTION: 1}, 2)
    assert verdict.steps[0].outcome is StepOutcome.OK
    assert not verdict.ok
