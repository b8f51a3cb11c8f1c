"""A command was called wrongly, or ends with something to be looked at."""

from __future__ import annotations

from catalog.errors.root import CatalogError


class UsageError(CatalogError):
    def __init__(self, what: str, why: str, fix: str) -> None:
        super().__init__(what, why, fix)


class SettingError(CatalogError):
    def __init__(self, where: str, found: str, fix: str) -> None:
        self.where, self.found, self.fix = where, found, fix
        super().__init__(
            f"{where}: {found}", "a setting that is not understood is never passed over", fix, where, found, fix
        )


class StoppedError(CatalogError):
    def __init__(self, by: str, ts: int | None = None) -> None:
        self.by, self.ts = by, ts
        if ts is None:
            what = f"stopped by {by}"
            why = "what was committed until then stays, and nothing is there by halves"
            fix = "run it again when you like; `catalog info` says where the store stands"
        else:
            what = f"stopped by {by}, after all up to ts {ts} was shown"
            why = "a feed goes on until it is stopped"
            fix = f"--since {ts} goes on from there"
        super().__init__(what, why, fix, by, ts)


class UnfinishedStepError(CatalogError):
    def __init__(self, uri: str, step: str, state: str, reason: str) -> None:
        self.uri, self.step, self.state, self.reason = uri, step, state, reason
        super().__init__(
            f"{step} is not finished in {uri}: its last run is {state}",
            reason or "its process has not said how it ended",
            "`catalog start` runs it again"
            if state == "ERROR"
            else "wait for it if its process lives; `catalog start` runs it again, `catalog abort` gives it up",
            uri,
            step,
            state,
            reason,
        )


class FindingsError(CatalogError):
    def __init__(self, uri: str, count: int, fix: str) -> None:
        self.uri, self.count, self.fix = uri, count, fix
        super().__init__(f"{uri} is not in order: findings: {count}", "each is listed above", fix, uri, count, fix)


class ExaminationError(CatalogError):
    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        super().__init__(
            f"problems were found: {', '.join(names)}",
            "each is listed above, with what it is",
            "mend them in that order, and examine again: `catalog doctor`",
            names,
        )


class UpgradeCheckError(CatalogError):
    def __init__(self, stores: tuple[str, ...], checked: int) -> None:
        self.stores, self.checked = stores, checked
        super().__init__(
            f"these cannot be upgraded as they are, of {checked}: {', '.join(stores)}",
            "what is wrong with each is listed above; the stores themselves were not touched",
            "mend the migrations or the rows, and check again",
            stores,
            checked,
        )


class PageError(CatalogError):
    def __init__(self, path: str, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(
            f"the page was not written to {path}: {reason}",
            "what was there is as it was, and what the command found is told all the same",
            "make room there, or name another file with --html, and run it again",
            path,
            reason,
        )
