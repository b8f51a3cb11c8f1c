"""The schema sequence of a shard: one row of its log for each schema, in the order of ids.

A row holds the type that tracks deleted fields, and the names of the columns that are left.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa

from catalog.errors import CorruptFileError
from catalog.log.protocol import DataFile, Fence, FileKind, Log
from catalog.shard.batches import log_row
from catalog.shard.evolution import Incompatible, MigrationType, backward_compatible, renamed
from catalog.shard.migration import Migration
from catalog.shard.schema import Column, Schema, SchemaId

COLLECTION = "schema"
_ID_BYTES = 8


@dataclass(frozen=True, slots=True, eq=False)
class Registered:
    """A schema in the sequence."""

    id: SchemaId
    schema: Schema
    type: MigrationType

    @classmethod
    def first(cls, schema: Schema) -> Registered:
        return cls(SchemaId(0), schema, MigrationType.of(schema.inner))

    def followed_by(self, schema: Schema) -> Registered | Incompatible:
        evolved = self.type.evolved(schema.inner)
        if isinstance(evolved, Incompatible):
            return self._in_words(evolved, schema)
        return Registered(SchemaId(self.id + 1), schema, evolved)

    def migration_to(self, schema: Schema) -> Migration | Incompatible:
        """How rows of this schema become rows of that one, or why they must not."""
        found = backward_compatible(self.type, schema.inner)
        return self._in_words(found, schema) if isinstance(found, Incompatible) else found

    def _in_words(self, reason: Incompatible, schema: Schema) -> Incompatible:
        column = reason.path[0]
        return renamed(reason, schema.name_of(column) or self.schema.name_of(column))


def write_registered(log: Log, fence: Fence, registered: Registered, ts: int) -> DataFile:
    names = {str(column.id): column.name for column in registered.schema.columns}
    typed = registered.type.schema.with_metadata({"names": json.dumps(names)})
    key = registered.id.to_bytes(_ID_BYTES, "big")
    return log.write(COLLECTION, FileKind.TAIL, fence, log_row(key, typed.serialize(), ts))


def read_registered(log: Log, file: DataFile) -> Registered:
    table = log.read(file)
    try:
        schema = pa.ipc.read_schema(table["value"][0].as_buffer())
        names = json.loads(schema.metadata[b"names"])
        type_ = MigrationType(schema.remove_metadata())
        columns = (Column(int(f.name), names[f.name], f.type, f.nullable) for f in type_.current)
        return Registered(SchemaId(int.from_bytes(table["key"][0].as_py(), "big")), Schema(tuple(columns)), type_)
    except (pa.ArrowInvalid, KeyError, ValueError, TypeError) as error:
        raise CorruptFileError(log.uri, file.path, f"it is no schema of a shard: {error}") from error


def order_changed(sequence: tuple[Registered, ...]) -> bool:
    """Whether any schema of a sequence left rows of the one before it out of order."""
    steps = (before.migration_to(after.schema) for before, after in pairwise(sequence))
    return any(isinstance(step, Migration) and not step.preserves_order for step in steps)
