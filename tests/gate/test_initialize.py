"""Mistakes in `initialize.py`: it fits the current types, or no new store could be made."""

from __future__ import annotations

import pytest

from tests.gate.project_copy import Copy

INITIALIZE = "catalog/initialize.py"


@pytest.mark.parametrize(
    ("old", "new", "what", "fix"),
    [
        ("    SettingKey,\n", "    SetingKey,\n", "the types have no `SetingKey`", "did you mean `SettingKey`?"),
        (
            'RoleValue(name="public")',
            'RoleValue(nam="public")',
            "RoleValue has no field `nam`",
            "did you mean `name`?",
        ),
        (
            "RoleId(system=2)",
            "RoleId(sytem=2)",
            "RoleId has no field `sytem`",
            "did you mean `system`?",
        ),
        (
            "    OBJECT_TYPE_SCHEMA,\n",
            "    OBJECT_TYPE_SCHEMAS,\n",
            "the types have no `OBJECT_TYPE_SCHEMAS`",
            "did you mean `OBJECT_TYPE_SCHEMA`?",
        ),
        (
            "object_type=OBJECT_TYPE_SCHEMA",
            "object_type=99",
            "DefaultPrivilegeKey.object_type is 99, which ObjectType does not declare",
            (
                "there are: OBJECT_TYPE_CLUSTER, OBJECT_TYPE_CLUSTER_REPLICA, OBJECT_TYPE_DATABASE,"
                " OBJECT_TYPE_FUNCTION, OBJECT_TYPE_MATERIALIZED_VIEW, OBJECT_TYPE_ROLE and 6 more"
            ),
        ),
        (
            "object_type=OBJECT_TYPE_SCHEMA",
            'object_type="OBJECT_TYPE_SHEMA"',
            "DefaultPrivilegeKey.object_type is 'OBJECT_TYPE_SHEMA', which ObjectType does not declare",
            "did you mean `OBJECT_TYPE_SCHEMA`?",
        ),
        (
            "schema.database_id = database",
            "schema.databse_id = database",
            "SchemaValue has no field `databse_id`",
            "did you mean `database_id`?",
        ),
        (
            'SettingValue(value="default"))\n    tx.insert(SettingKey(name="default_database")',
            'RoleValue(name="default"))\n    tx.insert(SettingKey(name="default_database")',
            "a row cannot have a SettingKey and a RoleValue",
            "write a SettingValue",
        ),
    ],
)
def test_rows_that_do_not_fit_the_types_are_refused(tree: Copy, old: str, new: str, what: str, fix: str) -> None:
    """Types, fields, enum values and pairs, with what was meant, in the file and line."""
    tree.edit(INITIALIZE, old, new)
    findings = [finding for finding in tree.check().findings if (finding.code, finding.what) == ("C905", what)]
    assert [(finding.path, finding.fix) for finding in findings] == [(INITIALIZE, fix)]
    assert findings[0].line > 0


def test_types_of_a_module_are_compared_too(tree: Copy) -> None:
    """By whatever name the module has."""
    tree.append(
        INITIALIZE,
        "\n\nfrom catalog import objects as o\n\nKIND = o.ItemKind.ITEM_KIND_TABL\nROW = o.ItemValue(nme='x')\n",
    )
    assert {finding.what for finding in tree.check().findings if finding.code == "C905"} == {
        "ItemKind has no value `ITEM_KIND_TABL`",
        "ItemValue has no field `nme`",
    }


def test_a_field_that_the_current_types_no_longer_have_is_told(tree: Copy) -> None:
    """When the types change and the new store was forgotten."""
    tree.edit("proto/objects.proto", "  uint64 permissions = 6;", "  reserved 6;")
    assert "RoleValue has no field `permissions`" in {finding.what for finding in tree.check().findings}
