"""The root of all errors, and the kinds that a caller handles alike."""

from __future__ import annotations


class CatalogError(Exception):
    """What happened, why, and what to do next."""

    def __init__(self, what: str, why: str, fix: str, *facts: object) -> None:
        super().__init__(f"{what}\nwhy:  {why}\nnext: {fix}")
        self.what = what
        self.why = why
        self.next = fix
        self._facts = facts

    def __reduce__(self) -> tuple[type[CatalogError], tuple[object, ...]]:
        return type(self), self._facts or (self.what, self.why, self.next)


class RetryableError(CatalogError):
    """Nothing was changed, and the same may succeed when tried again from the start."""


class DamagedError(CatalogError):
    """What is stored is not what was written."""


class ConstraintError(CatalogError):
    """The change does not fit the rows that are there; nothing was changed."""
