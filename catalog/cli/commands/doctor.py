"""`catalog doctor`: examine this machine and, if one is named, a store."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult, ExitCode, exit_of
from catalog.cli.settings import Settings, known_variables
from catalog.engine.base.project import load_project
from catalog.errors import CatalogError, ExaminationError, UnknownProjectError
from catalog.tools.doctor.check_list import plan
from catalog.tools.doctor.runner import CheckResult, DoctorContext, Status, examine, from_error

if TYPE_CHECKING:
    from catalog.cli.app import Invocation


@dataclass(frozen=True, slots=True)
class CheckLine:
    name: str
    grade: str
    """`ok`, `warning`, `problem`, or `skipped`."""
    found: str
    next: str
    """The remedy; empty if none is needed."""


@dataclass(frozen=True, slots=True)
class DoctorResult:
    store: str | None
    """None if only the machine was examined."""
    lines: tuple[CheckLine, ...]


def doctor(run: Invocation, *, deep: bool, probe: bool, scratch: str | None) -> CommandResult:
    """Run every check that applies to this machine and the store."""
    settings = run.settings
    found, store = list(_check_settings(settings, os.environ)), settings["store"]
    try:
        project = load_project(settings["project"])
    except UnknownProjectError as error:
        found.append(from_error("project", error))
        project, store = load_project("catalog"), None  # without its project a store cannot be read
    subject = DoctorContext(
        project,
        store,
        settings.storage_options,
        settings["spark"],
        settings["class_archive"],
        settings["deploy_generation"],
        scratch=Path(scratch or tempfile.gettempdir()),
        variables=os.environ,
        is_deep=deep,
        starts_spark=deep or settings.all["spark"].source == "--spark",
        probes=probe,
    )
    found += examine(subject, plan(subject))
    lines = tuple(CheckLine(own.name, own.grade, own.found, own.next) for own in found)
    problems = [own for own in found if own.grade is Status.PROBLEM]
    return CommandResult(DoctorResult(store, lines), _problem(problems))


def _check_settings(settings: Settings, variables: Mapping[str, str]) -> Iterator[CheckResult]:
    """Check the settings, and variables that have the prefix of settings but are none."""
    for error in settings.troubles:
        yield from_error("settings", error)
    known = known_variables()
    for name in sorted(name for name in variables if name.startswith("CATALOG_") and name not in known):
        close = get_close_matches(name, known, 1)
        fix = f"did you mean {close[0]}?" if close else "unset it; `catalog config show` lists all settings"
        yield CheckResult("settings", Status.WARNING, f"{name} is set, but there is no such setting", fix)
    if not settings.troubles:
        sources = sorted({own.source for own in settings.all.values()} - {"default"})
        found = f"taken from {', '.join(sources)}" if sources else "all are the defaults"
        yield CheckResult("settings", Status.OK, found)


def _problem(problems: Sequence[CheckResult]) -> CatalogError | None:
    """Return the error of the first problem if all lead to the same special exit code; else one for all of them."""
    if not problems:
        return None
    exits = {ExitCode.FAILED if own.error is None else exit_of(own.error) for own in problems}
    error = problems[0].error
    if error is not None and len(exits) == 1 and exits != {ExitCode.FAILED}:
        return error
    return ExaminationError(tuple(dict.fromkeys(own.name for own in problems)))
