r"""The types of version 14, the last one whose rows are JSON, and the encoding of those rows.

Why JSON. Up to version 14 the key and the value of every row were JSON, so that people could read a store
with any tool they had. It did not last: one type had to read the old rows and write the new ones, nothing at
build time noticed when it changed, and there was no way to turn a number into a choice. Version 15 holds the
same information as protobuf, with a frozen copy of the types for each version.

Why the module stays. Stores of version 14 exist, and they are upgraded one version at a time like all others,
so something has to read their rows. Version 14 has no proto that could be frozen; this is its snapshot. Like
every snapshot it does not change as long as version 14 can be upgraded from, and it goes when that ends.

Who may use it. The migration `v14_to_v15`, and the generator of old stores that tests it. Nothing else: code
that wants a role wants the current one. To outlive every refactoring, it imports the standard library only.

What is not here. The engine collections `config`, `fence_token` and `migration_event` are protobuf at every
version, 14 included. What messages and members mean is said once, in `proto/old/objects_v15.proto`, which has
the same messages with the same members; None here is an absent member there. Role ids are plain numbers: 1 is
public, 2 to 999 are system roles, those from 1000 on are user roles.

What canonical means. A key is found by its bytes and a row is retracted by its bytes, so every message has
one encoding only:

- UTF-8, no byte order mark, no space between tokens, nothing after the value;
- a message is an object with its members sorted by name (by code point), each of them once;
- every member is there, whatever its value (an empty text is `""`, an empty list `[]`), except an optional
  one that is absent: it is left out and never `null`;
- an integer is a JSON number written in full, without sign, fraction or exponent, of 32 or 64 unsigned bits;
- an enum is the name of its value in lower case; a map is an object, sorted like a message;
- a text has no surrogates, and only what JSON requires is escaped in it: `"`, `\` and the characters below
  U+0020, by their short form where JSON has one (`\n`), else as four lower-case hex digits (`\u001f`).

`decode` refuses everything else with a ValueError that names the type and the member. It never repairs: bytes
that this module would not have written come from something else, and guessing what that meant would lose it.
"""

# ruff: noqa: ANN401 - annotations are data here; the docstring above says where messages are described

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from typing import Annotated, Any, Final, NamedTuple, NoReturn, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")

U32 = Annotated[int, 32]
U64 = Annotated[int, 64]


def encode(row: object) -> bytes:
    """Give the canonical bytes of a key or a value; a ValueError names a member that is not of its type."""
    document = _document(row)
    _read_row(type(row), document)
    return _dump(type(row).__name__, document)


def decode(kind: type[T], data: bytes) -> T:
    """Read a key or a value back; a ValueError names what keeps the bytes from being the encoding of one."""
    name = kind.__name__
    try:
        document = json.loads(data.decode(), object_pairs_hook=_members)
    except UnicodeDecodeError as error:
        _refuse(name, f"not UTF-8 at byte {error.start}", error)
    except (ValueError, RecursionError) as error:
        _refuse(name, f"unreadable: {error}", error)
    row = _read_row(kind, document)
    canonical = _dump(name, document)
    if canonical != data:
        pairs = enumerate(zip(canonical, data, strict=False))
        same = next((i for i, (a, b) in pairs if a != b), min(len(canonical), len(data)))
        _refuse(name, f"not canonical: the one encoding of this row differs from byte {same} on")
    return row


# The text of each value is its name in lower case.
ItemKind = StrEnum("ItemKind", "TABLE VIEW MATERIALIZED_VIEW SOURCE FUNCTION")
ObjectType = StrEnum(
    "ObjectType",
    "TABLE VIEW MATERIALIZED_VIEW SOURCE FUNCTION ROLE DATABASE SCHEMA CLUSTER CLUSTER_REPLICA SYSTEM",
)
AuditEventType = StrEnum("AuditEventType", "CREATE ALTER DROP GRANT REVOKE COMMENT")


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingKey:
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingValue:
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IdAllocKey:
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IdAllocValue:
    next_id: U64


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleKey:
    id: U64


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleValue:
    name: str
    create_db: bool
    create_role: bool
    create_cluster: bool
    member_of: tuple[U64, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseKey:
    id: U64


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseValue:
    name: str
    owner_id: U64


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaKey:
    id: U64


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaValue:
    database_id: U64 | None = None
    name: str
    owner_id: U64


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnComment:
    position: U32
    comment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemKey:
    id: U64


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemValue:
    schema_id: U64
    name: str
    kind: ItemKind
    create_sql: str
    owner_id: U64
    comment: str | None = None
    column_comments: tuple[ColumnComment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSize:
    executors: U32
    cores: U32
    memory_mib: U64


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    name: str
    size: ReplicaSize


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterKey:
    id: U64


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterValue:
    name: str
    owner_id: U64
    master: str
    spark_conf: Mapping[str, str]
    replicas: tuple[Replica, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultPrivilegeKey:
    role_id: U64
    database_id: U64 | None = None
    schema_id: U64 | None = None
    object_type: ObjectType
    grantee_id: U64


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultPrivilegeValue:
    acl_mode: U64


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemPrivilegeKey:
    grantee_id: U64
    grantor_id: U64


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemPrivilegeValue:
    acl_mode: U64


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfigurationKey:
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfigurationValue:
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltinMappingKey:
    schema_name: str
    object_type: ObjectType
    object_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltinMappingValue:
    id: U64
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageMetadataKey:
    id: U64


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageMetadataValue:
    shard: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinalizedShardKey:
    shard: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinalizedShardValue:
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditLogKey:
    id: U64


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditLogValue:
    event_type: AuditEventType
    object_type: ObjectType
    object_id: str
    object_name: str
    actor: str
    occurred_at_ms: U64 | None = None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimestampKey:
    timeline: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimestampValue:
    ts: U64


class Collection(NamedTuple):
    key: type
    value: type


COLLECTIONS: Final[Mapping[str, Collection]] = {
    "setting": Collection(SettingKey, SettingValue),
    "id_alloc": Collection(IdAllocKey, IdAllocValue),
    "role": Collection(RoleKey, RoleValue),
    "database": Collection(DatabaseKey, DatabaseValue),
    "schema": Collection(SchemaKey, SchemaValue),
    "item": Collection(ItemKey, ItemValue),
    "cluster": Collection(ClusterKey, ClusterValue),
    "default_privilege": Collection(DefaultPrivilegeKey, DefaultPrivilegeValue),
    "system_privilege": Collection(SystemPrivilegeKey, SystemPrivilegeValue),
    "server_configuration": Collection(ServerConfigurationKey, ServerConfigurationValue),
    "builtin_mapping": Collection(BuiltinMappingKey, BuiltinMappingValue),
    "storage_metadata": Collection(StorageMetadataKey, StorageMetadataValue),
    "unfinalized_shard": Collection(UnfinalizedShardKey, UnfinalizedShardValue),
    "audit_log": Collection(AuditLogKey, AuditLogValue),
    "timestamp": Collection(TimestampKey, TimestampValue),
}

_ROW_TYPES: Final = frozenset(kind for collection in COLLECTIONS.values() for kind in collection)


def _refuse(at: str, what: str, cause: Exception | None = None) -> NoReturn:
    message = f"{at}: {what}"
    raise ValueError(message) from cause


def _members(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    members: dict[str, object] = {}
    for name, value in pairs:
        if name in members:
            message = f"member {name!r} occurs twice"
            raise ValueError(message)
        members[name] = value
    return members


def _dump(at: str, document: object) -> bytes:
    text = json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        _refuse(at, "a text has a surrogate, which UTF-8 cannot hold", error)


def _document(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        members = ((field.name, getattr(value, field.name)) for field in fields(value))
        return {name: _document(member) for name, member in members if member is not None}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple):
        return [_document(element) for element in value]
    return value.value if isinstance(value, StrEnum) else value


def _read_row(kind: type[T], document: object) -> T:
    if kind not in _ROW_TYPES:
        message = f"{kind.__name__} is not a key or a value of version 14"
        raise TypeError(message)
    row: T = _read_message(kind, document, kind.__name__)
    return row


@functools.cache
def _members_of(kind: Any) -> tuple[dict[str, Any], frozenset[str]]:
    """Give the type of each member and the names of the optional ones."""
    optional = frozenset(field.name for field in fields(kind) if field.default is not MISSING)
    hints = get_type_hints(kind, include_extras=True)
    return {name: get_args(hint)[0] if name in optional else hint for name, hint in hints.items()}, optional


def _read_message(kind: Any, value: object, at: str) -> Any:
    members = _expect(dict, value, at)
    hints, optional = _members_of(kind)
    if unknown := members.keys() - hints.keys():
        _refuse(at, f"unknown member {min(unknown)!r}")
    if missing := hints.keys() - members.keys() - optional:
        _refuse(at, f"missing member {min(missing)!r}")
    return kind(**{name: _read(hints[name], member, f"{at}.{name}") for name, member in members.items()})


def _read(hint: Any, value: object, at: str) -> object:
    if hint is str or hint is bool:
        return _expect(hint, value, at)
    if hint is U32 or hint is U64:
        number, bits = _expect(int, value, at), 32 if hint is U32 else 64
        if not 0 <= number < 1 << bits:
            _refuse(at, f"{number} is not an unsigned integer of {bits} bits")
        return number
    if get_origin(hint) is tuple:
        elements, kind = _expect(list, value, at), get_args(hint)[0]
        return tuple(_read(kind, element, f"{at}[{i}]") for i, element in enumerate(elements))
    if get_origin(hint) is Mapping:
        texts = _expect(dict, value, at).items()
        return {_expect(str, name, at): _expect(str, text, f"{at}[{name!r}]") for name, text in texts}
    if is_dataclass(hint):
        return _read_message(hint, value, at)
    try:
        return hint(_expect(str, value, at))
    except ValueError as error:
        _refuse(at, f"{value!r} is not one of {', '.join(hint)}", error)


def _expect(kind: type[T], value: object, at: str) -> T:
    if type(value) is not kind:
        _refuse(at, f"expected {kind.__name__}, found {type(value).__name__}")
    return value
