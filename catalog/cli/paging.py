"""The verbs whose answer is also written as a page. They print nothing.

The place of the page is tried before anything else, because a check may take hours; what the verb answers is told
whatever becomes of the page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from catalog.cli.answers import Checked, Stats
from catalog.cli.debugging import upgrade_check
from catalog.cli.environment import Environment
from catalog.cli.pages.checks import check_page
from catalog.cli.pages.page import Redact, Stamp
from catalog.cli.pages.place import PagePlace, page_place
from catalog.cli.pages.stats import stats_page
from catalog.cli.reading import stats
from catalog.cli.results import Answer
from catalog.errors import CatalogError
from catalog.notices import Observer, ignore


def upgrade_check_with_page(
    environments: Sequence[Environment],
    html: str,
    redact: Redact,
    *,
    scratch: str | None = None,
    observer: Observer = ignore,
) -> Answer:
    """A check of upgrades; where nothing can be said of the only store there is no page."""
    project = environments[0].project
    with page_place(html) as place:
        answer = upgrade_check(environments, scratch=scratch, observer=observer)
        checked: Checked = answer.data
        return _filled(place, answer, lambda: check_page(project, checked, _stamp(environments[0]), redact))


def stats_with_page(
    environment: Environment, html: str, redact: Redact, *, shape: bool = False, as_of: int | None = None
) -> Answer:
    with page_place(html) as place:
        answer = stats(environment, shape=shape, as_of=as_of)
        measured: Stats = answer.data
        return _filled(place, answer, lambda: stats_page(measured, _stamp(environment), redact))


def _filled(place: PagePlace, answer: Answer, make: Callable[[], str]) -> Answer:
    try:
        place.fill(make())
    except CatalogError as error:
        return replace(answer, error=error)
    return replace(answer, data=replace(answer.data, page=str(place.path)))


def _stamp(environment: Environment) -> Stamp:
    return Stamp(str(environment.project.build), datetime.now(UTC))
