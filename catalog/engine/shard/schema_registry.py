"""The schema sequence of a shard: one row of its log for each schema, in the order of ids.

A row holds the type that tracks deleted fields, and the names of the columns that are left.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa

from catalog.engine.base.fence import Fence
from catalog.engine.log.protocol import DataFile, FileKind, Log
from catalog.engine.shard.array_migration import ArrayMigration
from catalog.engine.shard.batches import log_row
from catalog.engine.shard.schema import Column, Schema, SchemaId
from catalog.engine.shard.schema_rules import Incompatible, TrackedSchema, backward_compatible, renamed
from catalog.errors import CorruptFileError

COLLECTION = "schema"
_ID_BYTES = 8


@dataclass(frozen=True, slots=True, eq=False)
class RegisteredSchema:
    """A schema in the sequence."""

    id: SchemaId
    schema: Schema
    type: TrackedSchema

    @classmethod
    def first(cls, schema: Schema) -> RegisteredSchema:
        return cls(SchemaId(0), schema, TrackedSchema(schema.inner))

    def followed_by(self, schema: Schema) -> RegisteredSchema | Incompatible:
        evolved = self.type.evolved(schema.inner)
        if isinstance(evolved, Incompatible):
            return self._in_words(evolved, schema)
        return RegisteredSchema(SchemaId(self.id + 1), schema, evolved)

    def migration_to(self, schema: Schema) -> ArrayMigration | Incompatible:
        """Return how rows of this schema become rows of that one, or why they must not."""
        found = backward_compatible(self.type, schema.inner)
        return self._in_words(found, schema) if isinstance(found, Incompatible) else found

    def _in_words(self, reason: Incompatible, schema: Schema) -> Incompatible:
        column = reason.path[0]
        return renamed(reason, schema.name_of(column) or self.schema.name_of(column))


def write_registered(log: Log, fence: Fence, registered: RegisteredSchema, ts: int) -> DataFile:
    names = {str(column.id): column.name for column in registered.schema.columns}
    typed = registered.type.schema.with_metadata({"names": json.dumps(names)})
    key = registered.id.to_bytes(_ID_BYTES, "big")
    return log.write(COLLECTION, FileKind.TAIL, fence, log_row(key, typed.serialize(), ts))


def read_registered(log: Log, file: DataFile) -> RegisteredSchema:
    table = log.read(file)
    try:
        schema = pa.ipc.read_schema(table["value"][0].as_buffer())
        names = json.loads(schema.metadata[b"names"])
        type_ = TrackedSchema(schema.remove_metadata())
        columns = (Column(int(f.name), names[f.name], f.type, f.nullable) for f in type_.current)
        return RegisteredSchema(SchemaId(int.from_bytes(table["key"][0].as_py(), "big")), Schema(tuple(columns)), type_)
    except (pa.ArrowInvalid, KeyError, ValueError, TypeError) as error:
        raise CorruptFileError(log.uri, file.path, f"it is no schema of a shard: {error}") from error


def order_changed(sequence: tuple[RegisteredSchema, ...]) -> bool:
    """Tell if any schema of a sequence left rows of the one before it out of order."""
    steps = (before.migration_to(after.schema) for before, after in pairwise(sequence))
    return any(isinstance(step, ArrayMigration) and not step.preserves_order for step in steps)
