"""`catalog new`: create a project in an empty folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult
from catalog.errors import UsageError
from catalog.tools.new_project.scaffold import check_folder, check_name, make_project, suggest_name

if TYPE_CHECKING:
    from catalog.cli.app import Invocation

NEXT = ("pip install --editable . --group dev", "pytest", "catalog start")
"""The first commands to run in a new project."""


@dataclass(frozen=True, slots=True)
class ProjectCreated:
    folder: str
    name: str
    written: tuple[str, ...]
    """Relative to the folder; generated code is not among them."""
    left: str
    """The report of the gate about the new project."""
    then: tuple[str, ...]
    """The commands to run next, in the folder."""


def new(run: Invocation, *, path: str, name: str | None) -> CommandResult:
    """Create the project; without a name, ask for one on a terminal."""
    folder = Path(path)
    if name is None:
        check_folder(folder)
        suggested = suggest_name(folder)
        name = run.screen.ask("Name of the package", suggested, offers=_is_valid(suggested, folder))
    made = make_project(folder, name)
    return CommandResult(ProjectCreated(str(made.folder.absolute()), made.name, made.files, made.findings, NEXT))


def _is_valid(name: str, folder: Path) -> bool:
    try:
        check_name(name, folder)
    except UsageError:
        return False
    return True
