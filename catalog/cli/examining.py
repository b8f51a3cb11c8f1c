"""The verb that examines a machine and a store: doctor. It prints nothing, and mends nothing."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from catalog.cli.answers import Examinations, ExaminedLine
from catalog.cli.results import Answer, Exit, exit_of
from catalog.cli.settings import Settings, known_variables
from catalog.doctor.examination import Examined, Grade, Subject, examine, from_error
from catalog.doctor.plan import plan
from catalog.errors import CatalogError, ExaminationError, UnknownProjectError
from catalog.project import load_project


def doctor(
    settings: Settings,
    *,
    deep: bool = False,
    probe: bool = False,
    scratch: str | None = None,
    variables: Mapping[str, str] | None = None,
) -> Answer:
    """Everything about this machine and the store that is named, as far as it can be looked at."""
    told = os.environ if variables is None else variables
    found, store = list(_settings(settings, told)), settings["store"]
    try:
        project = load_project(settings["project"])
    except UnknownProjectError as error:
        found.append(from_error("project", error))
        project, store = load_project("catalog"), None  # what a store of another project holds, nobody here can tell
    subject = Subject(
        project,
        store,
        settings.storage_options,
        settings["spark"],
        settings["deploy_generation"],
        scratch=Path(scratch or tempfile.gettempdir()),
        variables=told,
        is_deep=deep,
        starts_spark=deep or settings.all["spark"].source == "--spark",
        probes=probe,
    )
    found += examine(subject, plan(subject))
    lines = tuple(ExaminedLine(own.name, own.grade, own.found, own.next) for own in found)
    problems = [own for own in found if own.grade is Grade.PROBLEM]
    return Answer(Examinations(store, lines), _wrong(problems))


def _settings(settings: Settings, variables: Mapping[str, str]) -> Iterator[Examined]:
    """What settings there are, what is wrong with them, and variables that look like settings and are none."""
    for error in settings.troubles:
        yield from_error("settings", error)
    known = known_variables()
    for name in sorted(name for name in variables if name.startswith("CATALOG_") and name not in known):
        close = get_close_matches(name, known, 1)
        fix = f"did you mean {close[0]}?" if close else "unset it; `catalog config show` tells what there is"
        yield Examined("settings", Grade.WARNING, f"{name} is set, and there is no such variable", fix)
    if not settings.troubles:
        sources = sorted({own.source for own in settings.all.values()} - {"default"})
        found = f"taken from {', '.join(sources)}" if sources else "none is given: all are the defaults"
        yield Examined("settings", Grade.OK, found)


def _wrong(problems: Sequence[Examined]) -> CatalogError | None:
    """What a command would fail with, if all problems come to the same exit code; else that there are several."""
    if not problems:
        return None
    exits = {Exit.FAILED if own.error is None else exit_of(own.error) for own in problems}
    error = problems[0].error
    if error is not None and len(exits) == 1 and exits != {Exit.FAILED}:
        return error
    return ExaminationError(tuple(dict.fromkeys(own.name for own in problems)))
