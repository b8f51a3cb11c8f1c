"""`catalog debug upgrade-check`: the upgrade of a scratch copy of each store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult
from catalog.errors import CatalogError, UpgradeCheckError
from catalog.tools.upgrade_check.check import check_upgrade

if TYPE_CHECKING:
    from catalog.cli.app import Invocation
    from catalog.cli.context import StoreTarget
    from catalog.tools.upgrade_check.report import UpgradeReport


@dataclass(frozen=True, slots=True)
class UncheckedStore:
    """A store that could not be checked, and why."""

    store: str
    what: str
    why: str
    next: str


@dataclass(frozen=True, slots=True)
class UpgradeCheckResult:
    verdicts: tuple[UpgradeReport, ...]
    unchecked: tuple[UncheckedStore, ...] = ()
    page: str | None = None
    """With `--html`: the path of the page."""


def upgrade_check(run: Invocation, *, stores: tuple[str, ...], scratch: str | None, html: str | None) -> CommandResult:
    """Check the upgrade of each store; with `html`, also write a page."""
    targets = [run.target_at(store) for store in stores] or [run.target]
    if html is None:
        return _check(run, targets, scratch)
    from catalog.cli.html.output_file import page_place  # noqa: PLC0415 - only a page needs its templates
    from catalog.cli.html.page import Stamp  # noqa: PLC0415
    from catalog.cli.html.upgrade_check import check_page  # noqa: PLC0415

    project = targets[0].project
    with page_place(html) as place:
        result = _check(run, targets, scratch)
        return place.answer(result, lambda: check_page(project, result.data, Stamp.now(project), run.screen.redact))


def _check(run: Invocation, targets: Sequence[StoreTarget], scratch: str | None) -> CommandResult:
    reports: list[UpgradeReport] = []
    unchecked: list[UncheckedStore] = []
    folder = None if scratch is None else Path(scratch)
    with run.screen.progress() as observer:
        for own in targets:
            try:
                report = check_upgrade(
                    own.place, spark=own.spark, class_archive=own.class_archive, scratch=folder, observer=observer
                )
            except CatalogError as error:
                if len(targets) == 1:
                    raise
                unchecked.append(UncheckedStore(own.store, error.what, error.why, error.next))
            else:
                reports.append(report)
    failed = [*(report.store for report in reports if not report.ok), *(own.store for own in unchecked)]
    return CommandResult(
        UpgradeCheckResult(tuple(reports), tuple(unchecked)),
        UpgradeCheckError(tuple(failed), len(targets)) if failed else None,
    )
