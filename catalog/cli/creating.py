"""The verb that makes a new version: create. It runs the gate that the wheel carries, and prints nothing."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from catalog.cli.answers import Created
from catalog.cli.results import Answer
from catalog.errors import UsageError


def create(
    why: str | None = None,
    *,
    amend: bool = False,
    renumber: bool = False,
    same_types: bool = False,
    base: str | None = None,
    root: str | None = None,
) -> Answer:
    """Freeze the edited types as a new version, or make an unreleased one again."""
    if amend + renumber + same_types > 1:
        raise UsageError(
            "--amend, --renumber and --same-types exclude each other",
            "each makes a version in another way",
            "give one of them",
        )
    tree_of, recipe = _gate("tree"), _gate("snapshot")
    try:
        tree = tree_of.find_tree(Path.cwd()) if root is None else tree_of.find_tree(Path(root), search=False)
        if amend:
            made = recipe.amend(tree)
        elif renumber:
            made = recipe.renumber(tree, base)
        else:
            made = recipe.create(tree, why or "", same_types=same_types)
        report = _gate("check").check(tree)
    except tree_of.GateError as error:
        raise UsageError(error.what, error.why, error.fix) from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError("a file cannot be read or written", str(error), "mend that first") from error
    findings = _gate("findings")
    left = findings.render(report, findings.Format.TEXT)
    return Answer(Created(made.version, made.summary, made.written, made.removed, left, report.ok, tree_of.AMEND))


def _gate(module: str) -> Any:  # noqa: ANN401 - a module of the gate, which has two names
    name = "catalog._gate" if find_spec("catalog._gate") else "build_tools"
    return import_module(f"{name}.{module}")
