"""Mistakes in `privacy.py`: each path leads to a text or a list of some version."""

from __future__ import annotations

import pytest

from tests.gate.project_copy import Copy

PRIVACY = "catalog/privacy.py"


@pytest.mark.parametrize(
    ("old", "new", "what", "fix"),
    [
        (
            '"database.value.name"',
            '"databse.value.name"',
            "`databse.value.name`: no version has a collection `databse`",
            "did you mean `database`?",
        ),
        (
            '"item.value.create_sql"',
            '"item.value.create_sqll"',
            "`item.value.create_sqll`: no version of ItemValue has a field `create_sqll`",
            "did you mean `create_sql`?",
        ),
        (
            '"role.value.name"',
            '"role.name"',
            "`role.name`: it does not lead from the key or the value to a field",
            "write it as `role.value.name`",
        ),
        (
            '"role.value.name"',
            '"role.value.permissions"',
            "`role.value.permissions`: it is no text and no bytes, so nothing of it is replaced",
            "name the fields that hold texts",
        ),
        (
            '"role.value.name"',
            '"role.value.name.first"',
            "`role.value.name.first`: it goes on to `first`, and the field before it has no members",
            "end it before that",
        ),
        (
            '{"cluster.value.spark_conf": "name"}',
            '{"cluster.value.spark_conf": "nam"}',
            "`cluster.value.spark_conf`: no version of SparkSetting has a field `nam`",
            "did you mean `name`?",
        ),
        (
            '{"cluster.value.spark_conf": "name"}',
            '{"cluster.value.name": "name"}',
            "`cluster.value.name`: it is no list of messages, and has no order",
            "remove it from `ordered`",
        ),
    ],
)
def test_a_path_that_leads_to_nothing_is_refused(tree: Copy, old: str, new: str, what: str, fix: str) -> None:
    """With what was meant, in the file and line."""
    tree.edit(PRIVACY, old, new)
    finding = tree.only("C904", PRIVACY)
    assert (finding.what, finding.fix) == (what, fix)
    assert new.strip("{}").partition(":")[0] in tree.read(PRIVACY).splitlines()[finding.line - 1]


def test_a_path_of_an_earlier_version_is_right(tree: Copy) -> None:
    """Copies of older stores are made, too."""
    assert '"item.value.comment"' in tree.read(PRIVACY)
    tree.assert_clean()


def test_a_project_needs_no_private_texts(tree: Copy) -> None:
    """Nothing is kept then."""
    tree.remove(PRIVACY)
    assert not [finding for finding in tree.check().findings if finding.code == "C904"]


def test_private_texts_that_cannot_be_read_are_refused_once(tree: Copy) -> None:
    """As any module of the package."""
    tree.append(PRIVACY, "\n)")
    tree.only("I701", PRIVACY)


@pytest.mark.parametrize(
    "paths", ['frozenset(f"{name}.value.nam" for name in ("role",))', "PATHS | {*()}", "paths_of('role')"]
)
def test_paths_that_are_computed_are_told(tree: Copy, paths: str) -> None:
    """They cannot be compared with the types, so they must not look as if they were."""
    tree.append(PRIVACY, f"\nMORE = Privacy(harmless={paths})\n")
    finding = tree.only("C904", PRIVACY)
    assert finding.what == "`harmless` is computed, and the gate reads what is written"
    assert finding.fix == "write its paths as literals"


def test_paths_that_a_name_holds_are_read(tree: Copy) -> None:
    """Written once, at the top of the module."""
    tree.append(PRIVACY, '\nPATHS = ("role.value.nam",)\nMORE = Privacy(harmless=PATHS)\n')
    assert "has a field `nam`" in tree.only("C904", PRIVACY).what
