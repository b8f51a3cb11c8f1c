"""What each step does to a whole store, said a second time: plain Python over plain stores, one row after another.

Written from the docstrings of the migrations and the history of the types, with nothing of the migrations' own code.
An oracle takes the store of its version, which it leaves alone, and gives the store of the next; what stops a step
stops it with a ValueError.

Where a step gives out ids, it always leaves the row of the allocator, also if it gave out none.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from tests.migrations.plain import Plain, Row, Store, store_of

Rows = dict[str, list[Row]]

OBJECT_TYPES = [
    "table",
    "view",
    "materialized_view",
    "source",
    "function",
    "role",
    "database",
    "schema",
    "cluster",
    "cluster_replica",
    "system",
]
EVENT_TYPES = ["create", "alter", "drop", "grant", "revoke", "comment"]


def oracle_v14_to_v15(store: Store) -> Store:
    """Names of enums become numbers, which count from 1; settings become a list in the order of their names."""
    rows = _rows(store)
    for _, value in rows["item"]:
        value["kind"] = OBJECT_TYPES.index(value["kind"]) + 1
    for _, value in rows["cluster"]:
        value["spark_conf"] = [
            {"name": name, "value": value["spark_conf"][name]} for name in sorted(value["spark_conf"])
        ]
    for key in (*(key for key, _ in rows["default_privilege"]), *(key for key, _ in rows["builtin_mapping"])):
        key["object_type"] = OBJECT_TYPES.index(key["object_type"]) + 1
    for _, value in rows["audit_log"]:
        value["object_type"] = OBJECT_TYPES.index(value["object_type"]) + 1
        value["event_type"] = EVENT_TYPES.index(value["event_type"]) + 1
    return store_of(15, rows)


def oracle_v15_to_v16(store: Store) -> Store:
    """Three booleans become three bits."""
    rows = _rows(store)
    for _, value in rows["role"]:
        bits = {"create_db": 1, "create_role": 2, "create_cluster": 4}
        value["permissions"] = sum(bit for name, bit in bits.items() if value.pop(name))
    return store_of(16, rows)


def oracle_v16_to_v17(store: Store) -> Store:
    """Numbers that are roles' ids become choices."""
    rows = _rows(store)
    for key, value in rows["role"]:
        key["id"] = _role_id(key["id"])
        value["member_of"] = [_role_id(number) for number in value["member_of"]]
    for name in ("database", "schema", "item", "cluster"):
        for _, value in rows[name]:
            value["owner_id"] = _role_id(value["owner_id"])
    for name, members in (
        ("default_privilege", ("role_id", "grantee_id")),
        ("system_privilege", ("grantee_id", "grantor_id")),
    ):
        for key, _ in rows[name]:
            for member in members:
                key[member] = _role_id(key[member])
    return store_of(17, rows)


def oracle_v17_to_v18(store: Store) -> Store:
    """Each owner gets every privilege on what it owns."""
    rows = _rows(store)
    kinds = {1: 1 + 2 + 4 + 8, 2: 1, 3: 1, 4: 1, 5: 16}
    for name in ("database", "schema", "item"):
        for _, value in rows[name]:
            mode = kinds.get(value["kind"]) if name == "item" else 16 + 32
            entry: Plain = {} if mode is None else {"acl_mode": mode}
            if "owner_id" in value:
                entry |= {"grantee": copy.deepcopy(value["owner_id"]), "grantor": copy.deepcopy(value["owner_id"])}
            value["privileges"] = [] if mode is None else [entry]
    return store_of(18, rows)


def oracle_v18_to_v19(store: Store) -> Store:
    """Comments become rows; two on one column are one key twice."""
    rows = _rows(store)
    rows["comment"] = []
    for key, value in rows["item"]:
        if "comment" in value:
            rows["comment"].append(({"item_id": key["id"]}, {"comment": value.pop("comment")}))
        for column in value.pop("column_comments"):
            on_column = {"item_id": key["id"], "column": column["position"]}
            rows["comment"].append((on_column, {"comment": column["comment"]}))
    return store_of(19, rows)


def oracle_v19_to_v20(store: Store) -> Store:
    """Replicas become rows, numbered cluster by cluster in the order of the bytes of the clusters' keys."""
    rows = _rows(store)
    rows["cluster_replica"] = []
    following = _next_id(rows, "cluster_replica")
    for key, value in sorted(rows["cluster"], key=lambda row: _varint(row[0]["id"])):
        for replica in value.pop("replicas"):
            moved = {"cluster_id": key["id"], "name": replica["name"]}
            moved |= {"owner_id": copy.deepcopy(value["owner_id"])} if "owner_id" in value else {}
            moved |= {"size": replica["size"]} if "size" in replica else {}
            rows["cluster_replica"].append(({"id": following}, moved))
            following += 1
    _leave_next_id(rows, "cluster_replica", following)
    return store_of(20, rows)


def oracle_v20_to_v21(store: Store) -> Store:
    """Timelines go, and so do items without a schema and what was said about them; each item is audited."""
    rows = _rows(store)
    del rows["timestamp"]
    schemas = {key["id"] for key, _ in rows["schema"]}
    orphans = [(key, value) for key, value in rows["item"] if value["schema_id"] not in schemas]
    gone = {key["id"] for key, _ in orphans}
    rows["item"] = [(key, value) for key, value in rows["item"] if key["id"] not in gone]
    rows["comment"] = [(key, value) for key, value in rows["comment"] if key.get("item_id") not in gone]
    following = _next_id(rows, "audit_log")
    for key, value in sorted(orphans, key=lambda row: int(row[0]["id"])):
        event = {
            "event_type": EVENT_TYPES.index("drop") + 1,
            "object_type": value["kind"],
            "object_id": str(key["id"]),
            "object_name": value["name"],
            "actor": "v20_to_v21",
            "reason": f"schema {value['schema_id']} does not exist",
        }
        rows["audit_log"].append(({"id": following}, event))
        following += 1
    _leave_next_id(rows, "audit_log", following)
    return store_of(21, rows)


def oracle_v21_to_v22(store: Store) -> Store:
    """No row has an oid yet."""
    return store_of(22, _rows(store))


ORACLES: dict[int, Callable[[Store], Store]] = {
    14: oracle_v14_to_v15,
    15: oracle_v15_to_v16,
    16: oracle_v16_to_v17,
    17: oracle_v17_to_v18,
    18: oracle_v18_to_v19,
    19: oracle_v19_to_v20,
    20: oracle_v20_to_v21,
    21: oracle_v21_to_v22,
}
"""By the version that the step leads on from."""


def upgraded(store: Store, since: int, until: int) -> Store:
    """The store after every step between two versions."""
    for version in range(since, until):
        store = ORACLES[version](store)
    return store


def _rows(store: Store) -> Rows:
    return {name: [copy.deepcopy(row) for row in rows.values()] for name, rows in store.items()}


def _role_id(number: int) -> Plain:
    if number == 0:
        raise ValueError("0 is no role's id")
    if number == 1:
        return {"public": {}}
    return {"system": number} if number <= 999 else {"user": number}


def _varint(number: int) -> bytes:
    """A number as protobuf writes it, seven bits at a time, the lowest first; as a key's only member, 0 is nothing."""
    data = bytearray()
    while number:
        number, low = divmod(number, 128)
        data.append(low + 128 * (number > 0))
    return bytes(data)


def _next_id(rows: Rows, allocator: str) -> int:
    found: list[Any] = [value["next_id"] for key, value in rows["id_alloc"] if key["name"] == allocator]
    return int(found[0]) if found else 1


def _leave_next_id(rows: Rows, allocator: str, following: int) -> None:
    rows["id_alloc"] = [row for row in rows["id_alloc"] if row[0]["name"] != allocator]
    rows["id_alloc"].append(({"name": allocator}, {"next_id": following}))
