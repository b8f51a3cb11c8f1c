"""Every error a caller can meet, split by what the caller can do about it.

    CatalogError
    ├── StoreTooOldError        upgrade the store with an earlier release first
    ├── StoreTooNewError        upgrade this program
    └── GeneratedCodeError      generate the code again

An error says in its own text what happened, why, and what to do next, and carries its facts as attributes. Each is
built from its facts alone, so that it survives pickling between Spark's processes.
"""

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


class StoreTooOldError(CatalogError):
    def __init__(self, version: int, minimum: int) -> None:
        self.version = version
        self.minimum = minimum
        super().__init__(
            f"the store is at version {version}, the oldest this build can upgrade is {minimum}",
            "older versions were retired, with their types and migrations",
            f"open the store once with a release that supports version {version}, then with this one",
            version,
            minimum,
        )


class StoreTooNewError(CatalogError):
    def __init__(self, version: int, current: int) -> None:
        self.version = version
        self.current = current
        super().__init__(
            f"the store is at version {version}, the newest this build knows is {current}",
            "a newer build has upgraded it, and its rows have types that this build does not know",
            f"run a build that knows version {version}",
            version,
            current,
        )


class GeneratedCodeError(CatalogError):
    def __init__(self, module: str, proto: str) -> None:
        self.module = module
        self.proto = proto
        super().__init__(
            f"{module} is missing or was not generated from {proto} as it is now",
            "rows would be read with other types than the proto says",
            "python -m build_tools codegen",
            module,
            proto,
        )
