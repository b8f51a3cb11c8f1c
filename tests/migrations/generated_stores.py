"""Stores of every version, generated: each member from the values at which something might change its meaning.

Rows are well formed and nothing more: they refer to rows that may not be there, and names may come twice.
"""

from __future__ import annotations

import json
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from hypothesis import strategies as st

from catalog.migrations import legacy_json_objects as legacy
from tests.migrations.plain import OLDEST, Plain, Row, Store, key_text, store_of, types
from tests.migrations.test_legacy_json_objects import rows as legacy_messages

UINT64_MAX, UINT32_MAX, INT32_MAX = 2**64 - 1, 2**32 - 1, 2**31 - 1
FIRST_ROLE_IDS = 17
ROWS_MAX = 5

ROLES = st.sampled_from([1, 2, 999, 1000, UINT64_MAX]) | st.integers(1, UINT64_MAX)
ROLE_MEMBERS = {"RoleKey.id", "RoleValue.member_of"}
ROLE_NAMES = {"owner_id", "role_id", "grantee_id", "grantor_id"}
ALLOCATORS = st.sampled_from(["role", "database", "item", "cluster_replica", "audit_log"])
NEXT_IDS = st.integers(1, 2**63)
NUMBERS = st.sampled_from([0, 1, 2, 3, 127, 128, 129, 255, 256, 2**63, UINT64_MAX]) | st.integers(0, UINT64_MAX)
TEXTS = st.sampled_from(["", "a", "\x00", "träume \U0001f600"]) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=5
)
SCALARS: dict[int, st.SearchStrategy[Any]] = {
    FieldDescriptor.TYPE_BOOL: st.booleans(),
    FieldDescriptor.TYPE_STRING: TEXTS,
    FieldDescriptor.TYPE_UINT64: NUMBERS,
    FieldDescriptor.TYPE_UINT32: st.sampled_from([0, 1, 2, UINT32_MAX]) | st.integers(0, UINT32_MAX),
}


def stores(version: int, *collections: str) -> st.SearchStrategy[Store]:
    """Stores with rows in these collections."""
    rows = st.fixed_dictionaries({name: _rows(version, name) for name in collections})
    return rows.map(lambda rows: store_of(version, rows))


def _rows(version: int, name: str) -> st.SearchStrategy[list[Row]]:
    key_type, value_type = types(version)[name]
    if version == OLDEST:
        row = st.tuples(legacy_messages(key_type), legacy_messages(value_type)).map(
            lambda pair: (json.loads(legacy.encode(pair[0])), json.loads(legacy.encode(pair[1])))
        )
    else:
        row = st.tuples(_messages(version, key_type.DESCRIPTOR), _messages(version, value_type.DESCRIPTOR))
    return st.lists(row, max_size=ROWS_MAX, unique_by=lambda found: key_text(found[0]))


def _messages(version: int, message: Descriptor) -> st.SearchStrategy[Plain]:
    always, maybe = {}, {}
    choices = []
    for field in message.fields:
        members = _members(version, field)
        if field.containing_oneof is not None and len(field.containing_oneof.fields) > 1:
            choices.append(st.fixed_dictionaries({field.name: members}))
        elif field.has_presence:
            maybe[field.name] = members
        else:
            always[field.name] = members
    plain = st.fixed_dictionaries(always, optional=maybe)
    return st.tuples(plain, st.one_of(st.just({}), *choices)).map(lambda parts: {**parts[0], **parts[1]})


def _members(version: int, field: FieldDescriptor) -> st.SearchStrategy[Any]:
    one = _elements(version, field)
    if field.name == "column_comments":
        return st.lists(one, max_size=3, unique_by=lambda comment: comment["position"])
    return st.lists(one, max_size=3) if field.is_repeated else one


def _elements(version: int, field: FieldDescriptor) -> st.SearchStrategy[Any]:
    place = ".".join(field.full_name.split(".")[-2:])
    if place == "IdAllocKey.name":
        return ALLOCATORS
    if place == "IdAllocValue.next_id":
        return NEXT_IDS
    if version < FIRST_ROLE_IDS and (place in ROLE_MEMBERS or field.name in ROLE_NAMES):
        return ROLES
    if field.message_type is not None:
        return _messages(version, field.message_type)
    if field.enum_type is not None:
        return st.sampled_from([*field.enum_type.values_by_number, len(field.enum_type.values), -1, INT32_MAX])
    return SCALARS[field.type]
