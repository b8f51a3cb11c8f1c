"""The verbs that make projects and versions of them: new, create. They run the gate, and print nothing."""

from __future__ import annotations

from pathlib import Path

from catalog.cli.answers import Created, Founded
from catalog.cli.results import Answer
from catalog.errors import UsageError
from catalog.gate import load_gate
from catalog.template import check_folder, check_name, make_project, suggest_name

NEXT = ("pip install --editable . --group dev", "pytest", "catalog start")
"""What to do in a new project."""


def new(path: str, name: str) -> Answer:
    """Make a project of one's own in an empty folder."""
    made = make_project(Path(path), name)
    return Answer(Founded(str(made.folder.absolute()), made.name, made.files, made.findings, NEXT))


def offer_name(path: str) -> tuple[str, bool]:
    """The name that goes with a folder, and whether it will do; refuses a folder in which nothing can be made."""
    folder = Path(path)
    check_folder(folder)
    name = suggest_name(folder)
    try:
        check_name(name, folder)
    except UsageError:
        return name, False
    return name, True


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
    tree_of, recipe = load_gate("tree"), load_gate("snapshot")
    try:
        tree = tree_of.find_tree(Path.cwd()) if root is None else tree_of.find_tree(Path(root), search=False)
        if amend:
            made = recipe.amend(tree)
        elif renumber:
            made = recipe.renumber(tree, base)
        else:
            made = recipe.create(tree, why or "", same_types=same_types)
        report = load_gate("check").check(tree)
    except tree_of.GateError as error:
        raise UsageError(error.what, error.why, error.fix) from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError("a file cannot be read or written", str(error), "mend that first") from error
    findings = load_gate("findings")
    left = findings.render(report, findings.Format.TEXT)
    return Answer(Created(made.version, made.summary, made.written, made.removed, left, report.ok, tree_of.AMEND))
