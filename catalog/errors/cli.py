"""Errors of the command line: a wrong call, a wrong statement, or a command that found something."""

from __future__ import annotations

from catalog.errors.base import CatalogError


class UsageError(CatalogError):
    what: str
    why: str
    fix: str


class SettingError(CatalogError):
    where: str
    found: str
    fix: str
    what = "{where}: {found}"
    why = "a setting that is not understood is never ignored"


class StoppedError(CatalogError):
    by: str
    ts: int | None = None

    def templates(self) -> tuple[str, str, str]:
        if self.ts is None:
            return (
                "stopped by {by}",
                "everything that was committed before stays, and nothing is left half done",
                "run the command again; `catalog info` shows the state of the store",
            )
        return (
            "stopped by {by}, after everything up to ts {ts} was shown",
            "a feed runs until it is stopped",
            "`--since {ts}` continues from there",
        )


class UnfinishedStepError(CatalogError):
    uri: str
    step: str
    state: str
    reason: str
    what = "{step} is not finished in {uri}: its last run is {state}"

    def templates(self) -> tuple[str, str, str]:
        again = "`catalog start` runs it again"
        wait = f"wait if its process is still alive; {again}, `catalog abort` gives it up"
        why = "{reason}" if self.reason else "its process did not record how it ended"
        return self.what, why, again if self.state == "ERROR" else wait


class FindingsError(CatalogError):
    uri: str
    count: int
    fix: str
    what = "{uri} is not in order: findings: {count}"
    why = "each finding is listed above"


class ExaminationError(CatalogError):
    names: tuple[str, ...]
    what = "problems were found: {names}"
    why = "each is described above"
    next = "solve them in that order, then check again: `catalog doctor`"


class UpgradeCheckError(CatalogError):
    stores: tuple[str, ...]
    checked: int
    what = "these stores cannot be upgraded as they are ({checked} checked): {stores}"
    why = "the reasons are listed above; the stores themselves were not changed"
    next = "correct the migrations or the rows, then check again"


class PageError(CatalogError):
    path: str
    reason: str
    what = "the page was not written to {path}: {reason}"
    why = "an earlier file of that name is unchanged, and the results are printed all the same"
    next = "make room there, or choose another file with --html, and run the command again"


class StatementError(CatalogError):
    found: str
    position: str
    excerpt: str
    fix: str
    what = "{place}{found}"
    why = "{excerpt}"

    @property
    def place(self) -> str:
        return f"{self.position}: " if self.position else ""


class StatementRefusedError(CatalogError):
    word: str
    meant: str | None
    reason: str = (
        "only statements that read are answered: SELECT, WITH, FROM, VALUES, TABLE, SHOW, DESCRIBE and EXPLAIN"
    )
    fix: str = ""
    what = "{word} is refused"
    why = "{reason}"
    next = "{suggestion}"

    @property
    def suggestion(self) -> str:
        if self.meant:
            return f"did you mean {self.meant}?"
        return self.fix or "to write, use `open_catalog` in a program, or `catalog debug edit` by hand"
