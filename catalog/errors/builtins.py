"""The builtins of a build and those of a store do not go together."""

from __future__ import annotations

from catalog.errors.root import CatalogError


class UnfitBuiltinsError(CatalogError):
    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason
        super().__init__(
            f"the builtin {name} cannot be declared so: {reason}",
            "what is to become of its data in a store would not be certain",
            "correct the list of builtins or the list of instructions",
            name,
            reason,
        )


class UninstructedSchemaError(CatalogError):
    def __init__(self, name: str, stored: str, own: str, after: str, build: str) -> None:
        self.name, self.stored, self.own, self.after, self.build = name, stored, own, after, build
        super().__init__(
            f"the schema of {name} is not that of the store, and no instruction says how to migrate it: "
            f"fingerprint {own} in build {build}, {stored} in the store, which was migrated to {after}",
            f"data are never evolved or given up by accident, so each change has an instruction for a build after "
            f"{after} and up to {build}",
            f"add ({build}, {name}, EVOLUTION) to the instructions, or REPLACEMENT to give its data up; if the build "
            "is released, use a later one that has it",
            name,
            stored,
            own,
            after,
            build,
        )


class UnfitEvolutionError(CatalogError):
    def __init__(self, name: str, field: str, reason: str) -> None:
        self.name, self.field, self.reason = name, field, reason
        super().__init__(
            f"{name} cannot evolve: {reason}",
            "its instruction is EVOLUTION, and rows of its old schema could not be read with the new one",
            f"change {field} in a way that the rules of shards allow, or make the instruction a REPLACEMENT",
            name,
            field,
            reason,
        )


class BuiltinsTooNewError(CatalogError):
    def __init__(self, build: str, newest: str, names: tuple[str, ...]) -> None:
        self.build, self.newest, self.names = build, newest, names
        super().__init__(
            f"build {build} cannot use {', '.join(names)} of this store",
            f"build {newest} has migrated them, or has begun to",
            f"run build {newest} or later",
            build,
            newest,
            names,
        )


class BuiltinOvertakenError(CatalogError):
    def __init__(self, name: str, shard: str, reason: str) -> None:
        self.name, self.shard, self.reason = name, shard, reason
        super().__init__(
            f"the migration of {name} was overtaken: in shard {shard}, {reason}",
            "another build has registered a schema there that this build's cannot follow",
            "stop this process, and run the newer build",
            name,
            shard,
            reason,
        )


class UnmigratedBuiltinsError(CatalogError):
    def __init__(self, uri: str, build: str, after: str) -> None:
        self.uri, self.build, self.after = uri, build, after
        super().__init__(
            f"the builtins of {uri} are not yet those of build {build}",
            f"build {after} has migrated them last" if after else "no leader has made them yet",
            f"open the store as leader with build {build} first",
            uri,
            build,
            after,
        )
