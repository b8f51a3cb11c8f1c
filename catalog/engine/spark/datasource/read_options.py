"""The options of a read: a store, a collection, a ts or the changes since one.

The driver, the planner and every executor build the same options, so they hold names and numbers only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from catalog.engine.base.project import Project, load_project
from catalog.errors import ReadOptionError, UnknownProjectError
from catalog.errors.redaction import redact_addresses, redact_option

STORAGE_PREFIX = "storage."
_HIDDEN = "secret."
"""Before the name of an option whose value Spark must not show in a plan: it hides what is named so."""
PARTITION_BYTES = 16 * 2**20
COMMITS_PER_BATCH = 1_000
NOW: Final = "now"
_COMMITS = "max_commits_per_batch"
_NAMES = ("path", "collection", "as_of", "feed", "since", _COMMITS, "project", "partition_bytes")
_YES_OR_NO = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class ReadOptions:
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
    def of_options(cls, options: Mapping[str, str]) -> ReadOptions:
        """Parse Spark's options, whose names are in lower case; the path is the argument of `load`."""
        options = {n: v for n, v in options.items() if f"{_HIDDEN}{n}" not in options}
        options = {n.removeprefix(_HIDDEN): v for n, v in options.items()}
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
        """Return Spark's options, the reverse of `of_options` but for a path that anybody may see."""
        named = {"collection": self.collection, "project": self.project, "partition_bytes": str(self.partition_bytes)}
        if self.as_of is not None:
            named["as_of"] = str(self.as_of)
        if self.feed:
            named |= {"feed": "true", _COMMITS: str(self.max_commits_per_batch)}
        if self.since is not None:
            named["since"] = str(self.since)
        if self.shown_store != self.store:
            named[f"{_HIDDEN}path"] = self.store
        hidden = {name: _HIDDEN if redact_option(name, value) != value else "" for name, value in self.storage.items()}
        return named | {f"{hidden[name]}{STORAGE_PREFIX}{name}": value for name, value in self.storage.items()}

    @property
    def shown_store(self) -> str:
        """The address of the store as a plan may show it."""
        return redact_addresses(self.store)

    def load_project(self) -> Project:
        try:
            return load_project(self.project)
        except UnknownProjectError as error:
            needed = "the name of a project that is installed on the driver and on every executor"
            raise ReadOptionError("project", f"{self.project} cannot be loaded: {error.reason}", needed) from error


def _is_feed(options: Mapping[str, str]) -> bool:
    """Tell if the options ask for a change feed; `since` alone does."""
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
