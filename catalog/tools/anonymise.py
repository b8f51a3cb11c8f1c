"""Anonymised copies: names, SQL and comments replaced, structure and sizes kept.

The same text becomes the same replacement everywhere, so that references still refer and unique values stay unique.
Replacements come from a secret key that is not kept: a reader of the copy can neither compute them back nor try
guesses. Every text is replaced that a project does not declare harmless. A row that cannot be read stops the copy.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from functools import cached_property
from operator import attrgetter
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from catalog.engine.base.arrow import binary_column
from catalog.engine.base.descriptors import descriptor_of
from catalog.engine.base.descriptors import inner as inner_of
from catalog.engine.base.project import Privacy, Project
from catalog.engine.log.place import StorePlace
from catalog.engine.log.protocol import ROWS
from catalog.engine.migrate.row_types import ENGINE_COLLECTIONS, LegacyRows, RowType, row_types
from catalog.engine.stash.engine_rows import STORAGE
from catalog.engine.stash.registry import Collection, Registry, encode
from catalog.engine.storage.layout import shard_ids
from catalog.engine.store.snapshot import StoreSnapshot
from catalog.errors import UnreadableRowError
from catalog.tools.fsck.rows import invalid_messages, key_text

ENGINE: Final = Privacy(
    private=frozenset({"fence_token.value.holder", "migration_event.value.error"}),
    harmless=frozenset(
        {
            "config.key.name",
            "config.value.text",
            "fence_token.key.scope",
            "migration_event.value.name",
            "migration_event.value.checksum",
            "migration_event.value.build",
            "id_alloc.key.name",
            "builtin_mapping.key.schema_name",
            "builtin_mapping.key.object_name",
            "builtin_mapping.value.fingerprint",
            "storage_metadata.value.shard",
            "unfinalized_shard.key.shard",
        }
    ),
)
"""The texts of engine collections; the harmless ones are keys that the engine must find again."""

_ABOUT_SHARDS: Final = frozenset({STORAGE, "unfinalized_shard"})
_KEY_CHARACTERS_MIN: Final = 16
_BYTES_MIN: Final = 16
"""The least length of a replacement: two shorter ones might be equal."""
_GROUP: Final = 4
_LETTERS: Final = b"bcdfghjklmnpqrstvwxz"
_SYMBOLS: Final = _LETTERS + b"23456789"
_CACHED_BYTES_MAX, _CACHED_MAX = 256, 1 << 17


def _table(symbols: bytes) -> bytes:
    return bytes(symbols[number % len(symbols)] for number in range(256))


_LETTER_OF, _SYMBOL_OF = _table(_LETTERS), _table(_SYMBOLS)


@dataclass(frozen=True, slots=True)
class Replacements:
    """The replacements of texts under a secret key."""

    key: bytes = field(repr=False)
    words: frozenset[str] = frozenset()
    """Texts that the software itself writes; they are kept."""
    _known: dict[bytes, bytes] = field(default_factory=dict, repr=False)

    @classmethod
    def under(cls, key: str | None, words: frozenset[str]) -> Self:
        """Return the replacements under a given key, or under a random one that is not kept."""
        own = secrets.token_bytes(32) if key is None else hashlib.sha256(key.encode()).digest()
        return cls(own, words)

    def text(self, original: str) -> str:
        return original if original in self.words else self.data(original.encode()).decode()

    def data(self, original: bytes) -> bytes:
        """Return a replacement about as long as the original: groups of three characters that form no word."""
        if not original:
            return original
        found = self._known.get(original)
        if found is None:
            found = self._made(original)
            if len(original) <= _CACHED_BYTES_MAX and len(self._known) < _CACHED_MAX:
                self._known[original] = found
        return found

    def _made(self, original: bytes) -> bytes:
        seed = hashlib.blake2b(original, key=self.key).digest()
        drawn = hashlib.shake_256(seed).digest(max(len(original), _BYTES_MIN))
        made = bytearray(drawn.translate(_SYMBOL_OF))
        made[:1] = drawn[:1].translate(_LETTER_OF)
        made[_GROUP - 1 :: _GROUP] = b"_" * len(made[_GROUP - 1 :: _GROUP])
        return bytes(made)


@dataclass(frozen=True)
class Anonymiser:
    """Rewrites the rows of a store of any version, a table at a time."""

    source: StorePlace
    replacements: Replacements
    shards: frozenset[str] = frozenset()
    """The shards of the source before it was read."""

    @classmethod
    def of(cls, source: StorePlace, key: str | None = None) -> Self:
        """Return the rewriter of a store; refuse one whose rows this build reads with other types."""
        StoreSnapshot.of(source).require_types()
        return cls(source, Replacements.under(key, source.project.privacy.words), shard_ids(source.storage))

    @property
    def project(self) -> Project:
        return self.source.project

    @property
    def store(self) -> str:
        return self.source.uri

    def __call__(self, version: int, collection: str, rows: pa.Table) -> pa.Table:
        """Return the rows with replaced texts, in the order of their new keys.

        Shards are not copied. Rows that name the shard of a builtin are left out: the next leader of the copy creates
        the builtins from the other rows.
        """
        if collection in _ABOUT_SHARDS:
            rows = self._without_shards(rows)
        if not rows.num_rows:
            return rows
        rewrite = self._rewriting(version, collection)
        keys, values = rewrite(rows)
        made = pa.Table.from_arrays([binary_column(keys), binary_column(values), rows["ts"], rows["diff"]], schema=ROWS)
        return made.take(pc.sort_indices(made, [("key", "ascending")]))

    def _without_shards(self, rows: pa.Table) -> pa.Table:
        present = [shard.encode() for shard in self.shards | shard_ids(self.source.storage)]
        stored = zip(rows["key"].to_pylist(), rows["value"].to_pylist(), strict=True)
        kept = [not any(shard in key or shard in value for shard in present) for key, value in stored]
        return rows.filter(pa.array(kept, pa.bool_()))

    def _rewriting(self, version: int, collection: str) -> Callable[[pa.Table], tuple[list[bytes], list[bytes]]]:
        if collection in ENGINE_COLLECTIONS:
            return _Messages(self, Registry.of(self.project.current_types).named(collection)).rewrite
        known: Mapping[str, RowType] = row_types(self.project, version)
        match known.get(collection):
            case Collection() as found:
                return _Messages(self, found).rewrite
            case LegacyRows() as found:
                return _Legacy(self, found).rewrite
            case _:
                why = f"version {version} has no such collection"
                raise UnreadableRowError(self.store, collection, "", why)

    @cached_property
    def harmless(self) -> frozenset[str]:
        return ENGINE.harmless | self.project.privacy.harmless

    @cached_property
    def ordered(self) -> Mapping[str, str]:
        return self.project.privacy.ordered


def require_strong(key: str | None) -> None:
    """Raise ValueError for a key that can be guessed: with it, names can be tried against the copy."""
    if key is not None and len(key) < _KEY_CHARACTERS_MIN:
        raise ValueError(f"it has {len(key)} characters")


def text_fields(message: Descriptor, path: str) -> Iterator[str]:
    """Yield the paths of all texts and bytes in a message, such as `role.value.name`."""
    for member in message.fields:
        here = f"{path}.{member.name}"
        if member.message_type is not None:
            yield from text_fields(member.message_type, here)
        elif _is_text(member):
            yield here


@dataclass(frozen=True)
class _Messages:
    anonymiser: Anonymiser
    collection: Collection

    def rewrite(self, rows: pa.Table) -> tuple[list[bytes], list[bytes]]:
        name = self.collection.name
        keys = self._rewritten(self.collection.key_type, f"{name}.key", rows["key"], rows["key"])
        return keys, self._rewritten(self.collection.value_type, f"{name}.value", rows["value"], rows["key"])

    def _rewritten(self, kind: type[Message], path: str, column: pa.ChunkedArray, keys: pa.ChunkedArray) -> list[bytes]:
        parts = tuple(self._parts(descriptor_of(kind), path))
        stored: list[bytes] = []
        for chunk in column.chunks:
            # A field that this version does not know would be copied as it is.
            for row, (_, why) in invalid_messages(kind, chunk).items():
                key = key_text(self.collection, keys[len(stored) + row].as_py())
                raise UnreadableRowError(self.anonymiser.store, self.collection.name, key, why)
            stored += chunk.to_pylist()
        if not parts:
            return stored
        return [self._replaced(kind, parts, raw) for raw in stored]

    def _replaced(self, kind: type[Message], parts: Sequence[_Part], raw: bytes) -> bytes:
        message = kind.FromString(raw)
        for part in parts:
            part.replace(message, self.anonymiser.replacements)
        return encode(message)

    def _parts(self, message: Descriptor, path: str) -> Iterator[_Part]:
        for member in message.fields:
            here = f"{path}.{member.name}"
            if member.message_type is not None:
                inner = tuple(self._parts(member.message_type, here))
                if inner:
                    yield _Part(member, inner, self.anonymiser.ordered.get(here))
            elif _is_text(member) and here not in self.anonymiser.harmless:
                yield _Part(member)


@dataclass(frozen=True, slots=True)
class _Part:
    """A field of a message in which something is replaced."""

    member: FieldDescriptor
    inner: tuple[_Part, ...] = ()
    ordered: str | None = None

    def replace(self, message: Message, by: Replacements) -> None:
        name, is_repeated = self.member.name, self.member.is_repeated
        if self.inner and not is_repeated:
            if message.HasField(name):
                self._inside(getattr(message, name), by)
        elif self.inner and inner_of(self.member).GetOptions().map_entry:
            self._entries(message, by)
        elif self.inner:
            elements = getattr(message, name)
            for element in elements:
                self._inside(element, by)
            if self.ordered is not None:
                elements.sort(key=attrgetter(self.ordered))
        elif is_repeated:
            getattr(message, name)[:] = [self._one(value, by) for value in getattr(message, name)]
        elif value := getattr(message, name):
            setattr(message, name, self._one(value, by))

    def _inside(self, message: Message, by: Replacements) -> None:
        for part in self.inner:
            part.replace(message, by)

    def _entries(self, message: Message, by: Replacements) -> None:
        parts = {part.member.name: part for part in self.inner}
        before = [(key, _detached(value)) for key, value in getattr(message, self.member.name).items()]
        message.ClearField(self.member.name)
        entries = getattr(message, self.member.name)
        for key, value in before:
            name = self._one(key, by) if "key" in parts else key
            if isinstance(value, Message):
                if "value" in parts:
                    parts["value"]._inside(value, by)  # noqa: SLF001 - another of these
                entries[name].CopyFrom(value)
            else:
                entries[name] = self._one(value, by) if "value" in parts else value

    @staticmethod
    def _one(value: Any, by: Replacements) -> Any:  # noqa: ANN401 - a text or bytes
        return by.text(value) if isinstance(value, str) else by.data(value)


@dataclass(frozen=True)
class _Legacy:
    """Rows that are older than messages, read and written by their own module."""

    anonymiser: Anonymiser
    rows: LegacyRows

    def rewrite(self, rows: pa.Table) -> tuple[list[bytes], list[bytes]]:
        keys, values = [], []
        for key, value in zip(rows["key"].to_pylist(), rows["value"].to_pylist(), strict=True):
            try:
                decoded = self.rows.decode(key, value)
            except ValueError as error:
                raise UnreadableRowError(self.anonymiser.store, self.rows.name, key.hex(), str(error)) from error
            keys.append(self.rows.module.encode(self._replaced(decoded[0], f"{self.rows.name}.key")))
            values.append(self.rows.module.encode(self._replaced(decoded[1], f"{self.rows.name}.value")))
        return keys, values

    def _replaced(self, value: Any, path: str) -> Any:  # noqa: ANN401 - a row, or what is in one
        match value:
            case Enum():
                return value
            case str():
                return value if path in self.anonymiser.harmless else self.anonymiser.replacements.text(value)
            case tuple():
                return tuple(self._replaced(element, path) for element in value)
            case Mapping():
                entries = value.items()
                return {
                    self._replaced(name, f"{path}.name"): self._replaced(own, f"{path}.value") for name, own in entries
                }
            case _ if is_dataclass(value) and not isinstance(value, type):
                own = {
                    part.name: self._replaced(getattr(value, part.name), f"{path}.{part.name}")
                    for part in fields(value)
                }
                return replace(value, **own)
            case _:
                return value


def _detached(value: Any) -> Any:  # noqa: ANN401 - a message or a plain value
    if not isinstance(value, Message):
        return value
    copied = type(value)()
    copied.CopyFrom(value)
    return copied


def _is_text(member: FieldDescriptor) -> bool:
    return member.type in {FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES}
