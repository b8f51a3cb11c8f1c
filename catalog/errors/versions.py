"""Errors of versions and types: a store and a build that do not fit each other."""

from __future__ import annotations

from catalog.errors.base import CatalogError


class StoreTooOldError(CatalogError):
    version: int
    minimum: int
    what = "the store is at version {version}, the oldest this build can upgrade is {minimum}"
    why = "older versions were retired, with their types and migrations"
    next = "open the store once with a release that supports version {version}, then with this one"


class StoreTooNewError(CatalogError):
    version: int
    current: int
    what = "the store is at version {version}, the newest this build knows is {current}"
    why = "a newer build has upgraded it, and its rows have types that this build does not know"
    next = "run a build that knows version {version}"


class OtherTypesError(CatalogError):
    uri: str
    version: int
    recorded: str
    build: str
    own: str
    own_build: str
    what = "the rows of version {version} in {uri} have other types than version {version} of this build"
    why = (
        "build {build} wrote them with the types {theirs}, and this is build {own_build} with {ours}: "
        "two branches took one number, or the version was amended since"
    )
    next = (
        "run the build with the types {theirs}, as its proto/hashes.json has them; to use this one, "
        "undo version {version} with that build first, or move the version of this one: `catalog create --renumber`"
    )

    @property
    def theirs(self) -> str:
        return _short(self.recorded)

    @property
    def ours(self) -> str:
        return _short(self.own)


def _short(types_hash: str) -> str:
    return types_hash[: len("sha256:") + 12]


class UpgradeNeededError(CatalogError):
    uri: str
    version: int
    current: int
    what = "{uri} is at version {version}, and this build serves version {current}"
    why = "its rows have older types"
    next = "upgrade the store first, with `catalog apply` or `catalog start`; debug mode opens it at its own version"


class VersionChangedError(CatalogError):
    before: int
    after: int
    ts: int
    what = "the store went from version {before} to {after} at ts {ts}"
    why = "it was upgraded there, or an upgrade was undone: its rows have other types since, and a feed has rows of one"
    next = (
        "feeds start again from ts {ts}, by `--since {ts}` or since={ts}; "
        "a process that was open before opens the store again, with a build of version {after}"
    )


class LegacyRowsError(CatalogError):
    uri: str
    ts: int
    version: int
    first: int
    what = "ts {ts} of {uri} holds rows of version {version}, which are no messages"
    why = "rows are messages since version {first}; only the migration to that version reads the rows before it"
    next = "read at a ts at which the store was at version {first} or later"


class LogTooNewError(CatalogError):
    uri: str
    version: int
    found: str
    what = "log entry {version} of {uri} has an unknown {found}"
    why = "a newer build wrote it"
    next = "run a build at least as new as the one that wrote it"


class GeneratedCodeError(CatalogError):
    module: str
    proto: str
    gate: str
    what = "{module} is missing or was not generated from {proto} as it is now"
    why = "rows would be read with other types than those of the proto"
    next = "python -m {gate} codegen; to change the types, first make a version of them with `catalog create`"


class UnfrozenTypesError(CatalogError):
    project: str
    version: int
    gate: str
    what = "nothing can be written: the types of {project} are not those of version {version}"
    why = "they were changed after that version was frozen, and no build of it could read what is written now"
    next = 'make a version of them, `catalog create "why"`, or undo the change: `python -m {gate} codegen`'


class UnfitConstraintError(CatalogError):
    constraint: str
    found: str
    gate: str
    what = "the constraint {constraint} does not fit the types: {found}"
    why = "no row could be compared by it, so every write of such a row would fail"
    next = "correct `constraints.py` of the project; `python -m {gate} check` tells what was meant"


class UnknownProjectError(CatalogError):
    name: str
    reason: str
    what = "there is no project {name}: {reason}"
    why = "a project is a package whose module `upgrade` defines PROJECT, installed on drivers and executors"
    next = "install it, such as with `pip install -e .` in its folder, or correct `project` under [tool.catalog]"


class BrokenProjectError(UnknownProjectError):
    gate: str
    what = "the project {name} does not load: {reason}"
    why = "one of its files does not fit the others, such as an `initialize.py` from before its types were changed"
    next = "correct that file; `python -m {gate} check` tells what was meant"


class InitializationFailedError(CatalogError):
    uri: str
    reason: str
    gate: str
    what = "{uri} was not initialised: {reason}"
    why = "`initialize.py` writes the first rows of a store, and does not fit the types or the constraints of now"
    next = "correct it, `python -m {gate} check` tells what was meant, and start again; no row was written"


class OutdatedProjectError(UnknownProjectError):
    gate: str
    what = "the project {name} does not load: {reason}"
    why = "its files were written for an earlier build of stash-catalog, whose modules have moved"
    next = (
        "import the engine through `catalog.authoring` alone; the changelog lists the names that moved; "
        "then generate the types again: `python -m {gate} codegen`"
    )


class UnsupportedMessageError(CatalogError):
    name: str
    reason: str
    what = "{name} cannot be stored: {reason}"
    why = "its rows could not be rewritten without loss when their type changes"
    next = "declare it without that in the proto"
