"""Errors of shards, and of the builtins whose data are in shards."""

from __future__ import annotations

from catalog.errors.base import CatalogError


class ReaderFencedError(CatalogError):
    uri: str
    schema_id: int
    field: str
    reason: str
    what = "a reader of {uri} is fenced by schema {schema_id}: {reason}"
    why = "the schema of the shard changed in a field that the reader's schema has"
    next = "read with a schema that follows from the shard's, or leave {field} out"


class WriterSchemaError(CatalogError):
    uri: str
    schema_id: int | None
    what = "nothing was written to {uri}: its latest schema, {schema_id}, is not the writer's"
    why = "the writer's schema was never registered, or the shard's has evolved since; only the latest is written"
    next = "register the writer's schema by compare_and_evolve_schema, or write with the latest"


class ShardFinalizedError(CatalogError):
    uri: str
    what = "{uri} was finalised"
    why = "its owner has given it up, and its rows are deleted"
    next = "find the shard that is used in its place; this one never returns"


class UnfitSchemaError(CatalogError):
    column: str
    reason: str
    what = "a schema with the column {column} cannot be used: {reason}"
    why = "its rows could not be compared, ordered or read again later"
    next = "correct the declaration of the schema"


class TableTooLargeError(CatalogError):
    uri: str
    ts: int
    what = "the rows of {uri} at ts {ts} do not fit into one table"
    why = "a column of texts, bytes or lists has room for 2 GiB at most"
    next = "read them batch by batch, as a DataFrame, or without that column"


class UnfitShardIdError(CatalogError):
    shard: str
    what = "{shard!r} is no id of a shard"
    why = "a shard is a folder inside its store, and no row may name a place outside"
    next = "correct the row that names it, in storage_metadata or unfinalized_shard"


class UnfitBuiltinsError(CatalogError):
    name: str
    reason: str
    what = "the builtin {name} cannot be declared like this: {reason}"
    why = "it would not be certain what happens to its data in a store"
    next = "correct the list of builtins or the list of instructions"


class UninstructedSchemaError(CatalogError):
    name: str
    stored: str
    own: str
    after: str
    build: str
    what = (
        "the schema of {name} is not that of the store, and no instruction says how to migrate it: "
        "fingerprint {own} in build {build}, {stored} in the store, which was migrated to {after}"
    )
    why = (
        "data are never evolved or discarded by accident, so each change has an instruction for a build after {after} "
        "and up to {build}"
    )
    next = (
        "add ({build}, {name}, EVOLUTION) to the instructions, or REPLACEMENT to discard its data; if the build is "
        "released, use a later one that has it"
    )


class UnfitEvolutionError(CatalogError):
    name: str
    field: str
    reason: str
    what = "{name} cannot evolve: {reason}"
    why = "its instruction is EVOLUTION, and rows of its old schema could not be read with the new one"
    next = "change {field} in a way that the rules for shards allow, or make the instruction a REPLACEMENT"


class BuiltinsTooNewError(CatalogError):
    build: str
    newest: str
    names: tuple[str, ...]
    what = "build {build} cannot use {names} of this store"
    why = "build {newest} has migrated them, or has begun to"
    next = "run build {newest} or later"


class BuiltinOvertakenError(CatalogError):
    name: str
    shard: str
    reason: str
    what = "the migration of {name} was overtaken: in shard {shard}, {reason}"
    why = "another build has registered a schema there, and this build's schema cannot follow it"
    next = "stop this process, and run the newer build"


class UnmigratedBuiltinsError(CatalogError):
    uri: str
    build: str
    after: str
    what = "the builtins of {uri} are not yet those of build {build}"
    why = "{last_migration}"
    next = "open the store as leader with build {build} first"

    @property
    def last_migration(self) -> str:
        return f"build {self.after} migrated them last" if self.after else "no leader has created them yet"
