"""Mistakes in `constraints.py`: each constraint fits the types of every version that it holds for."""

from __future__ import annotations

import pytest

from tests.gate.project_copy import Copy

CONSTRAINTS = "catalog/constraints.py"


@pytest.mark.parametrize(
    ("old", "new", "code", "what", "fix"),
    [
        (
            'Unique("role", ("value.name",))',
            'Unique("rol", ("value.name",))',
            "C901",
            'Unique("rol", …): there is no collection `rol` (in v15 to v22)',
            "did you mean `role`?",
        ),
        (
            'Unique("role", ("value.name",))',
            'Unique("role", ("value.nam",))',
            "C902",
            'Unique("role", …): `value.nam`: RoleValue has no field `nam` (in v15 to v22)',
            "did you mean `name`?",
        ),
        (
            'Unique("role", ("value.name",))',
            'Unique("role", ("value.name.first",))',
            "C902",
            (
                'Unique("role", …): `value.name.first` goes on to `first`, and the field before it has no members'
                " (in v15 to v22)"
            ),
            "end it before that",
        ),
        (
            'Unique("role", ("value.name",))',
            'Unique("role", ("name",))',
            "C902",
            'Unique("role", …): `name` does not lead from the key or the value to a field (in v15 to v22)',
            "write it as `value.name`",
        ),
        (
            'Unique("role", ("value.name",))',
            'Unique("role", ("value.name"))',
            "C902",
            "the paths of a Unique are one text, and each of its letters would be a path",
            'write a tuple, with its comma: ("value.name",)',
        ),
        (
            '"value.cluster_id", "cluster", since=20)',
            '"value.cluster_id", "clusters", since=20)',
            "C901",
            'Reference("cluster_replica", …): there is no collection `clusters` (in v20 to v22)',
            "did you mean `cluster`?",
        ),
        (
            '"value.cluster_id", "cluster", since=20)',
            '"value.cluster_id", "role", since=20)',
            "C903",
            (
                'Reference("cluster_replica", …): `value.cluster_id` is uint64, and the key of `role` is RoleId'
                " (in v20 to v22)"
            ),
            "refer by a field of the type that the key has",
        ),
        (
            '"value.cluster_id", "cluster", since=20)',
            '"value.cluster_id", "setting", since=20)',
            "C903",
            'Reference("cluster_replica", …): the key of `setting` is not one field `id` (in v20 to v22)',
            "refer to a collection whose key is one `id`",
        ),
        (
            '"value.cluster_id", "cluster", since=20)',
            '"value.cluster_id", "cluster", since=19)',
            "C901",
            'Reference("cluster_replica", …): there is no collection `cluster_replica` (in v19)',
            "if it holds from then on: since=20",
        ),
        (
            '"value.cluster_id", "cluster", since=20)',
            '"value.cluster_id", "cluster", since=23)',
            "C903",
            'Reference("cluster_replica", …) holds since version 23, and the newest is 22',
            "write since=22, or a version before it",
        ),
    ],
)
def test_a_constraint_that_does_not_fit_the_types_is_refused(
    tree: Copy, old: str, new: str, code: str, what: str, fix: str
) -> None:
    """The first write would fail otherwise."""
    tree.edit(CONSTRAINTS, old, new)
    finding = tree.only(code, CONSTRAINTS)
    assert (finding.what, finding.fix) == (what, fix)


def test_constraints_that_are_not_python_are_told_once(tree: Copy) -> None:
    """They are named, not run."""
    tree.write(CONSTRAINTS, "CONSTRAINTS = (\n")
    assert tree.only("C900", CONSTRAINTS).what.startswith("it is not Python: ")


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (
            'Unique("role", ("value.name",))',
            '*(Unique(name, ("value.name",)) for name in ("rol",))',
            "Unique",
        ),
        ('Unique("role", ("value.name",))', 'Unique("role", ("value" + ".nam",))', "Unique"),
        ('Reference("role", "value.member_of", "role")', 'Reference(*("role", "value.member_of", "rol"))', "Reference"),
    ],
    ids=["in a loop", "by an expression", "by a star"],
)
def test_a_constraint_that_is_computed_is_told(tree: Copy, old: str, new: str, kind: str) -> None:
    """It cannot be compared with the types, so it must not look as if it was."""
    tree.edit(CONSTRAINTS, old, new)
    finding = tree.only("C900", CONSTRAINTS)
    assert finding.what == f"a {kind} is computed, and the gate reads what is written"
    assert finding.fix == "write its collection, paths, target and version as literals"


@pytest.mark.parametrize("form", ["authoring.Unique", "One"])
def test_a_constraint_is_read_by_whatever_name_it_is_imported(tree: Copy, form: str) -> None:
    """As a member of the module, or under another name."""
    tree.edit(CONSTRAINTS, 'Unique("role", ("value.name",))', f'{form}("rol", ("value.name",))')
    tree.edit(
        CONSTRAINTS, "import Constraints, Reference, Unique", "import Constraints, Reference, Unique, Unique as One"
    )
    assert "there is no collection `rol`" in tree.only("C901", CONSTRAINTS).what
