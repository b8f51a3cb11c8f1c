"""Checks of the bytes of rows against their types, and the text of a key in findings."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import DecodeError, Message

from catalog.engine.base.descriptors import descriptor_of, holds_enum
from catalog.engine.codec import codec_for, first_difference
from catalog.engine.codec.enum_values import UndeclaredValues
from catalog.engine.stash import registry
from catalog.engine.stash.constraints import Constraints
from catalog.engine.stash.declared_enums import undeclared_values
from catalog.engine.stash.registry import Collection, Registry, encode
from catalog.errors import CatalogError, UndecodableRowError
from catalog.tools.fsck.findings import FsckCode


class LegacyRowCodec(Protocol):
    """Decoder of rows of before protobuf."""

    def decode(self, key: bytes, value: bytes) -> object:
        """Decode a row; raise ValueError unless the bytes are its one encoding."""


@dataclass(frozen=True, slots=True)
class VersionTypes:
    """Types and constraints that the rows of a version are checked with."""

    registry: Registry
    constraints: Constraints
    others: Mapping[str, LegacyRowCodec] = field(default_factory=dict)
    """Collections whose rows are of before protobuf."""
    known: bool = True
    """False if there may be collections beside these."""


def invalid_messages(message: type[Message], column: pa.BinaryArray) -> dict[int, tuple[FsckCode, str]]:
    """Return by position the rows that cannot be decoded or encode to other bytes, by the codec and protobuf."""
    if _codec_differs(message, column) == {}:
        return {}
    found: dict[int, tuple[FsckCode, str]] = {}
    for row, raw in enumerate(column.to_pylist()):
        try:
            same = encode(message.FromString(raw)) == raw
        except DecodeError as error:
            found[row] = FsckCode.UNDECODABLE, f"it is not a {message.DESCRIPTOR.full_name}: {error}"
        else:
            if not same:
                found[row] = FsckCode.UNFAITHFUL, "it encodes to other bytes"
    rest = pa.array([row for row in range(len(column)) if row not in found], pa.int64())
    differs = _codec_differs(message, column.take(rest))
    return found | {rest[row].as_py(): reason for row, reason in (differs or {}).items()}


def undeclared_enums(message: type[Message], side: str, column: pa.BinaryArray) -> dict[int, tuple[FsckCode, str]]:
    """Return by position the rows with an enum value that the types do not declare; unreadable rows are left out."""
    descriptor, found = descriptor_of(message), dict[int, tuple[FsckCode, str]]()
    if not holds_enum(descriptor):
        return found
    try:
        values = UndeclaredValues()
        values.add(side, descriptor, codec_for(descriptor).decode(column), column)
        if not values:
            return found
    except CatalogError:
        pass  # row by row, protobuf reads what it can
    for row, raw in enumerate(column.to_pylist()):
        with suppress(DecodeError):
            for path, value, enum in undeclared_values(message.FromString(raw), f"{side}."):
                found[row] = FsckCode.UNDECLARED, f"{path} is {value}, which {enum.name} does not declare"
    return found


def invalid_legacy_rows(rows: LegacyRowCodec, batch: pa.RecordBatch) -> dict[int, tuple[FsckCode, str]]:
    """Return by position the rows of before protobuf that cannot be decoded."""
    found: dict[int, tuple[FsckCode, str]] = {}
    for row, (key, value) in enumerate(zip(batch["key"].to_pylist(), batch["value"].to_pylist(), strict=True)):
        try:
            rows.decode(key, value)
        except ValueError as error:
            found[row] = FsckCode.UNDECODABLE, str(error)
    return found


def key_text(collection: Collection | None, key: bytes) -> str:
    try:
        return key.hex() if collection is None else registry.key_text(collection.key_type.FromString(key))
    except DecodeError:
        return key.hex()


def _codec_differs(message: type[Message], column: pa.BinaryArray) -> dict[int, tuple[FsckCode, str]] | None:
    """Return the rows whose bytes the codec does not reproduce, only the first if it cannot decode one.

    Return None if the codec does not support the message.
    """
    try:
        codec = codec_for(message.DESCRIPTOR)
        encoded = codec.encode(codec.decode(column))
    except UndecodableRowError as error:
        return {error.row: (FsckCode.UNDECODABLE, f"it is not a {error.message}: {error.reason}")}
    except CatalogError:
        return None
    if first_difference(column, encoded) is None:
        return {}
    rows = pc.indices_nonzero(pc.not_equal(column, encoded)).to_pylist()
    return dict.fromkeys(rows, (FsckCode.UNFAITHFUL, "it holds fields that this version does not know"))
