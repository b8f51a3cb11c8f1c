"""A shard is no longer, or not yet, what its reader or writer takes it for."""

from __future__ import annotations

from catalog.errors.root import CatalogError


class ReaderFencedError(CatalogError):
    def __init__(self, uri: str, schema_id: int, field: str, reason: str) -> None:
        self.uri, self.schema_id, self.field, self.reason = uri, schema_id, field, reason
        super().__init__(
            f"a reader of {uri} is fenced by schema {schema_id}: {reason}",
            "the schema of the shard changed in something that the reader's own schema has",
            f"read with a schema that follows from the shard's, or leave {field} out",
            uri,
            schema_id,
            field,
            reason,
        )


class WriterSchemaError(CatalogError):
    def __init__(self, uri: str, schema_id: int | None) -> None:
        self.uri, self.schema_id = uri, schema_id
        super().__init__(
            f"nothing was written to {uri}: its latest schema, {schema_id}, is not the writer's",
            "the schema was never registered, or has evolved since; a batch is written with the latest alone",
            "register the writer's schema by compare_and_evolve_schema, or write with the latest",
            uri,
            schema_id,
        )


class ShardFinalizedError(CatalogError):
    def __init__(self, uri: str) -> None:
        self.uri = uri
        super().__init__(
            f"{uri} was finalised",
            "whoever it belonged to has given it up, and its rows are deleted",
            "find out which shard is used in its place; this one never comes back",
            uri,
        )


class UnfitSchemaError(CatalogError):
    def __init__(self, column: str, reason: str) -> None:
        self.column, self.reason = column, reason
        super().__init__(
            f"a schema with the column {column} cannot be used: {reason}",
            "its rows could not be told apart, put in order or read again later",
            "correct the declaration of the schema",
            column,
            reason,
        )


class TableTooLargeError(CatalogError):
    def __init__(self, uri: str, ts: int) -> None:
        self.uri, self.ts = uri, ts
        super().__init__(
            f"the rows of ts {ts} of {uri} do not fit a table",
            "a column of texts, bytes or lists has room for 2 GiB at most",
            "read them batch by batch, as a DataFrame, or without that column",
            uri,
            ts,
        )


class UnfitShardIdError(CatalogError):
    def __init__(self, shard: str) -> None:
        self.shard = shard
        super().__init__(
            f"{shard!r} is no id of a shard",
            "a shard is a folder of its store, and no row may lead anywhere else",
            "correct the row that names it, in storage_metadata or unfinalized_shard",
            shard,
        )
