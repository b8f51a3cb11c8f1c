"""What a query asks for: a store, a collection, a time or the changes since one; and the options that say so.

The same request is made by a driver, a planner and every executor, so it holds names and numbers only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from catalog.errors import ReadOptionError, UnknownProjectError
from catalog.project import Project, load_project

STORAGE_PREFIX = "storage."
PARTITION_BYTES = 16 * 2**20
COMMITS_PER_BATCH = 1_000
NOW: Final = "now"
_COMMITS = "max_commits_per_batch"
_NAMES = ("path", "collection", "as_of", "feed", "since", _COMMITS, "project", "partition_bytes")
_YES_OR_NO = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Request:
    store: str
    collection: str
    as_of: int | None = None
    """None for the newest rows."""
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)
    """May hold credentials."""
    project: str = "catalog"
    partition_bytes: int = PARTITION_BYTES
    feed: bool = False
    """Not rows alone, but how they came and went."""
    since: int | Literal["now"] | None = None
    """Of a feed: the ts after which it begins; none for the rows at its start, and then the changes."""
    max_commits_per_batch: int = COMMITS_PER_BATCH

    @classmethod
    def of_options(cls, options: Mapping[str, str]) -> Request:
        """Spark's options, whose names are in lower case; the path is what `load` was given."""
        storage = {n.removeprefix(STORAGE_PREFIX): v for n, v in options.items() if n.startswith(STORAGE_PREFIX)}
        for name in options:
            if name not in _NAMES and not name.startswith(STORAGE_PREFIX):
                raise ReadOptionError(name, "there is no such option", f"{', '.join(_NAMES)} or {STORAGE_PREFIX}…")
        if not options.get("path"):
            raise ReadOptionError("path", "it is missing", "the store, as in load(store)")
        if not options.get("collection"):
            raise ReadOptionError("collection", "it is missing", "the name of a collection, such as role")
        return cls(
            options["path"],
            options["collection"],
            _whole(options, "as_of", 0) if "as_of" in options else None,
            storage,
            options.get("project", "catalog"),
            _whole(options, "partition_bytes", 1) if "partition_bytes" in options else PARTITION_BYTES,
            _is_feed(options),
            _since(options),
            _whole(options, _COMMITS, 1) if _COMMITS in options else COMMITS_PER_BATCH,
        )

    def options(self) -> dict[str, str]:
        """The reverse of `of_options`, but for the path."""
        named = {"collection": self.collection, "project": self.project, "partition_bytes": str(self.partition_bytes)}
        if self.as_of is not None:
            named["as_of"] = str(self.as_of)
        if self.feed:
            named |= {"feed": "true", _COMMITS: str(self.max_commits_per_batch)}
        if self.since is not None:
            named["since"] = str(self.since)
        return named | {f"{STORAGE_PREFIX}{name}": value for name, value in self.storage.items()}

    def load_project(self) -> Project:
        try:
            return load_project(self.project)
        except UnknownProjectError as error:
            needed = "the name of a project that is installed on the driver and on every executor"
            raise ReadOptionError("project", f"{self.project} cannot be loaded: {error.reason}", needed) from error


def _is_feed(options: Mapping[str, str]) -> bool:
    """Whoever says since when asks for changes."""
    asked = options.get("feed", "true" if "since" in options else "false").lower()
    if asked not in _YES_OR_NO:
        raise ReadOptionError("feed", f"it is {asked!r}", "true or false")
    if "since" in options and not _YES_OR_NO[asked]:
        raise ReadOptionError("feed", "it is false, and since is given", "true, or no since")
    return _YES_OR_NO[asked]


def _since(options: Mapping[str, str]) -> int | Literal["now"] | None:
    if "since" not in options:
        return None
    return NOW if options["since"].lower() == NOW else _whole(options, "since", 0, f"or {NOW}")


def _whole(options: Mapping[str, str], name: str, least: int, other: str = "") -> int:
    try:
        number = int(options[name])
    except ValueError:
        number = least - 1
    if number < least:
        raise ReadOptionError(name, f"it is {options[name]!r}", f"a whole number from {least} {other}".rstrip())
    return number
