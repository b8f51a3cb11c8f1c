"""Whether stored bytes are what their types encode to, and what a check calls a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import DecodeError, Message
from google.protobuf.text_format import MessageToString

from catalog.codec import codec_for, first_difference
from catalog.errors import CatalogError, UndecodableRowError
from catalog.stash.collections import Collection, Registry, encode
from catalog.stash.constraints import Constraints
from catalog.stash.findings import Code


class OtherRows(Protocol):
    """Rows that are no messages."""

    def decode(self, key: bytes, value: bytes) -> object:
        """Raises ValueError unless the bytes are the one encoding of a row."""


@dataclass(frozen=True, slots=True)
class Types:
    """What the rows of a version are checked by."""

    registry: Registry
    constraints: Constraints
    others: Mapping[str, OtherRows] = field(default_factory=dict)
    """Collections whose rows are no messages."""
    known: bool = True
    """Else there are more collections than these, of which nothing is known."""


def strange_messages(message: type[Message], column: pa.BinaryArray) -> dict[int, tuple[Code, str]]:
    """The rows that are no such message, or encode to other bytes: by the codec, and by protobuf if it balks."""
    if _codec_differs(message, column) == {}:
        return {}
    found: dict[int, tuple[Code, str]] = {}
    for row, raw in enumerate(column.to_pylist()):
        try:
            same = encode(message.FromString(raw)) == raw
        except DecodeError as error:
            found[row] = Code.UNDECODABLE, f"it is no {message.DESCRIPTOR.full_name}: {error}"
        else:
            if not same:
                found[row] = Code.UNFAITHFUL, "it does not encode to the same bytes again"
    rest = pa.array([row for row in range(len(column)) if row not in found], pa.int64())
    differs = _codec_differs(message, column.take(rest))
    return found | {rest[row].as_py(): strange for row, strange in (differs or {}).items()}


def strange_rows(rows: OtherRows, batch: pa.RecordBatch) -> dict[int, tuple[Code, str]]:
    """The rows that are no messages, and not what their own types encode to either."""
    found: dict[int, tuple[Code, str]] = {}
    for row, (key, value) in enumerate(zip(batch["key"].to_pylist(), batch["value"].to_pylist(), strict=True)):
        try:
            rows.decode(key, value)
        except ValueError as error:
            found[row] = Code.UNDECODABLE, str(error)
    return found


def named(collection: Collection | None, key: bytes) -> str:
    try:
        return key.hex() if collection is None else text(collection.key_type.FromString(key))
    except DecodeError:
        return key.hex()


def text(message: Message) -> str:
    return MessageToString(message, as_one_line=True, as_utf8=True)


def _codec_differs(message: type[Message], column: pa.BinaryArray) -> dict[int, tuple[Code, str]] | None:
    """The rows that the codec does not repeat, the first only if it cannot read one; none if it cannot tell."""
    try:
        codec = codec_for(message.DESCRIPTOR)
        encoded = codec.encode(codec.decode(column))
    except UndecodableRowError as error:
        return {error.row: (Code.UNDECODABLE, f"it is no {error.message}: {error.reason}")}
    except CatalogError:
        return None
    if first_difference(column, encoded) is None:
        return {}
    rows = pc.indices_nonzero(pc.not_equal(column, encoded)).to_pylist()
    return dict.fromkeys(rows, (Code.UNFAITHFUL, "it holds fields that this version does not know"))
