"""A store and this build do not fit each other."""

from __future__ import annotations

from catalog.errors.root import CatalogError
from catalog.gate import gate_name


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


class UpgradeNeededError(CatalogError):
    def __init__(self, uri: str, version: int, current: int) -> None:
        self.uri, self.version, self.current = uri, version, current
        super().__init__(
            f"{uri} is at version {version}, and this build serves version {current}",
            "its rows have older types",
            f"upgrade the store to version {current} first, or open it for debugging at its own version",
            uri,
            version,
            current,
        )


class VersionChangedError(CatalogError):
    def __init__(self, before: int, after: int, ts: int) -> None:
        self.before, self.after, self.ts = before, after, ts
        super().__init__(
            f"the store went from version {before} to {after} at ts {ts}",
            "another process upgraded it or undid an upgrade, and rows have other types since",
            f"open the store again with a build of version {after}; feeds start again from ts {ts}",
            before,
            after,
            ts,
        )


class LegacyRowsError(CatalogError):
    def __init__(self, uri: str, ts: int, version: int, first: int) -> None:
        self.uri, self.ts, self.version, self.first = uri, ts, version, first
        super().__init__(
            f"ts {ts} of {uri} holds rows of version {version}, which are no messages",
            f"rows have been messages since version {first}; those before are read by the migration to it alone",
            f"read at a ts at which the store was at version {first} or later",
            uri,
            ts,
            version,
            first,
        )


class LogTooNewError(CatalogError):
    def __init__(self, uri: str, version: int, found: str) -> None:
        self.uri, self.version, self.found = uri, version, found
        super().__init__(
            f"log entry {version} of {uri} has an unknown {found}",
            "a newer build wrote it",
            "run a build at least as new as the one that wrote it",
            uri,
            version,
            found,
        )


class GeneratedCodeError(CatalogError):
    def __init__(self, module: str, proto: str) -> None:
        self.module = module
        self.proto = proto
        super().__init__(
            f"{module} is missing or was not generated from {proto} as it is now",
            "rows would be read with other types than the proto says",
            f"python -m {gate_name()} codegen; types that are to change are made a version first, by `catalog create`",
            module,
            proto,
        )


class UnfrozenTypesError(CatalogError):
    def __init__(self, project: str, version: int) -> None:
        self.project, self.version = project, version
        super().__init__(
            f"nothing can be written: the types of {project} are not those of version {version}",
            "they were changed after that version was frozen, and no build of it could read what is written now",
            f'make a version of them, `catalog create "why"`, or undo the change: `python -m {gate_name()} codegen`',
            project,
            version,
        )


class UnknownProjectError(CatalogError):
    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason
        super().__init__(
            f"there is no project {name}: {reason}",
            "a project is a package with a module `upgrade` in which PROJECT is, installed on drivers and executors",
            "install it, such as with `pip install -e .` in its folder, or correct `project` under [tool.catalog]",
            name,
            reason,
        )


class UnsupportedMessageError(CatalogError):
    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason
        super().__init__(
            f"{name} cannot be kept in a store: {reason}",
            "its rows could not be rewritten without loss when their type changes",
            "declare it without that in the proto",
            name,
            reason,
        )


class SparkStartError(CatalogError):
    def __init__(self, reason: str, log: str) -> None:
        self.reason, self.log = reason, log
        super().__init__(
            f"Spark did not start: {reason}",
            "it needs Java 17 or 21, found by JAVA_HOME or on the path, and memory for one Java process",
            f"mend the cause; all that Spark said is in {log}",
            reason,
            log,
        )
