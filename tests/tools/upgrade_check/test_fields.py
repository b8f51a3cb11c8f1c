"""Migrations that forget fields or make values that nobody declared: the check tells, though every rule is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from google.protobuf.message import Message

from catalog.actions import Action, delete, per_row
from catalog.cli.commands.debug_upgrade_check import UpgradeCheckResult
from catalog.cli.text.debug_upgrade_check import render
from catalog.engine.migrate.violations import RowRule
from catalog.tools.upgrade_check.report import FieldReport, StepReport, UpgradeReport
from catalog.upgrade import PROJECT
from tests.cli.html.made_pages import checks
from tests.engine.migrate.stores import project_with, rows_of
from tests.engine.migrate.test_wrong_migrations import same
from tests.tools.upgrade_check.checks import checked_directly

Stores = Callable[[int], Path]
v21: Any = PROJECT.types(21)
v22: Any = PROJECT.types(22)


def forget(key: Any, value: Any) -> tuple[Message, Message]:  # noqa: ANN401
    """Keep a database without its owner and its privileges."""
    return v22.DatabaseKey(id=key.id), v22.DatabaseValue(name=value.name)


def forget_grantors(key: Any, value: Any) -> tuple[Message, Message]:  # noqa: ANN401
    for privilege in value.privileges:
        privilege.ClearField("grantor")
    return same("Database", key, value)


def keep(key: Any, value: Any) -> tuple[Message, Message]:  # noqa: ANN401
    return same("Database", key, value)


def of_no_kind(key: Any, value: Any) -> tuple[Message, Message]:  # noqa: ANN401
    value.kind = 99
    return same("Item", key, value)


def tried(store: Path, scratch: Path, *actions: Action) -> tuple[UpgradeReport, StepReport]:
    verdict = checked_directly(store, scratch, project_with(21, *actions))
    (step,) = verdict.steps
    return verdict, step


def field_of(step: StepReport, path: str) -> FieldReport:
    return next(own for own in step.collections[0].fields if own.path == path)


def text(verdict: UpgradeReport) -> str:
    return "\n".join(str(line) for line in render(UpgradeCheckResult((verdict,))))


def test_a_field_that_empties_is_warned_of_by_collection_and_field(copy_of: Stores, scratch: Path) -> None:
    """With the rows that had it before and after, in text, JSON and page; the check passes all the same."""
    store = copy_of(21)
    rows = len(rows_of(store)["database"])
    verdict, step = tried(store, scratch, per_row("database", forget))
    assert verdict.ok
    assert field_of(step, "value.name") == FieldReport("value.name", rows, rows)
    assert field_of(step, "value.owner_id") == FieldReport("value.owner_id", rows, 0, lost=rows)
    assert [own.partition(" is set")[0] for own in step.warnings] == [
        "database: value.owner_id",
        "database: value.privileges",
    ]
    assert f"set in {rows} rows before the step and in 0 after it" in step.warnings[0]
    assert text(verdict).startswith("PASS with 2 warnings: ")
    assert "v21_to_v22: warning: database: value.owner_id is set in" in text(verdict)
    assert "database: value.owner_id is set in" in checks(verdict)


def test_a_field_that_a_migration_says_it_empties_is_accepted(copy_of: Stores, scratch: Path) -> None:
    """By a word of the action; what the word does not name is still warned of."""
    accepting = per_row("database", forget, empties=("value.owner_id",))
    verdict, step = tried(copy_of(21), scratch, accepting)
    assert field_of(step, "value.owner_id").is_accepted
    assert [own.partition(" is set")[0] for own in step.warnings] == ["database: value.privileges"]
    assert verdict.warning_count == 1


def test_a_field_inside_a_list_that_empties_is_warned_of_once(copy_of: Stores, scratch: Path) -> None:
    """By the outermost field that is lost, not by each one within."""
    _, step = tried(copy_of(21), scratch, per_row("database", forget_grantors))
    assert [own.partition(" is set")[0] for own in step.warnings] == ["database: value.privileges.grantor"]


def test_a_step_that_keeps_every_field_is_not_warned_of(copy_of: Stores, scratch: Path) -> None:
    """Rows that are rewritten as they are, and rows that are deleted with all their fields."""
    verdict, step = tried(
        copy_of(21), scratch, per_row("database", keep), delete("comment", lambda key, _value: key.HasField("column"))
    )
    assert (verdict.ok, step.warnings) == (True, ())


def test_the_steps_of_this_project_are_not_warned_of(copy_of: Stores, scratch: Path) -> None:
    """They lose nothing that they do not mean to."""
    verdict = checked_directly(copy_of(15), scratch, replace(PROJECT, current=20))
    assert (verdict.ok, verdict.warning_count, len(verdict.steps)) == (True, 0, 5)


def test_rows_that_will_be_deleted_are_told_beside_the_verdict(copy_of: Stores, scratch: Path) -> None:
    """By collection, in text, JSON and page."""
    store = copy_of(21)
    gone = sum(v21.CommentKey.FromString(key).HasField("column") for key, _ in rows_of(store)["comment"])
    verdict, _ = tried(store, scratch, delete("comment", lambda key, _value: key.HasField("column")))
    assert verdict.deleted == {"comment": gone}
    told = f"{gone} rows will be deleted: comment {gone}"
    assert text(verdict).splitlines()[0].endswith(told)
    assert told in checks(verdict)


def test_an_enum_value_that_the_types_do_not_declare_is_a_finding(copy_of: Stores, scratch: Path) -> None:
    """With collection, key, field and value."""
    store = copy_of(21)
    rows = len(rows_of(store)["item"])
    verdict, step = tried(store, scratch, per_row("item", of_no_kind))
    assert (verdict.ok, step.counts) == (False, {RowRule.ENUM: 1})
    (found,) = step.violations
    assert (found.collection, found.key[:6]) == ("item", '{"id":')
    assert found.found == f"value.kind is 99, which ItemKind does not declare ({rows} rows)"
