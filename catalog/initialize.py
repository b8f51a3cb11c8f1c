"""The rows of a new store of this repository's catalog, written at the current version and never migrated there."""

from __future__ import annotations

from catalog.authoring import Transaction
from catalog.objects import (
    OBJECT_TYPE_SCHEMA,
    AclItem,
    ClusterKey,
    ClusterReplicaKey,
    ClusterReplicaValue,
    ClusterValue,
    DatabaseKey,
    DatabaseValue,
    DefaultPrivilegeKey,
    DefaultPrivilegeValue,
    Empty,
    IdAllocKey,
    IdAllocValue,
    ReplicaSize,
    RoleId,
    RoleKey,
    RoleValue,
    SchemaKey,
    SchemaValue,
    SettingKey,
    SettingValue,
    SystemPrivilegeKey,
    SystemPrivilegeValue,
)

PUBLIC = RoleId(public=Empty())
SYSTEM = RoleId(system=2)
_USAGE, _CREATE, _ENVIRONMENT = 16, 32, 64 + 128 + 256
_CREATE_ANYTHING = 1 + 2 + 4


def initialize(tx: Transaction) -> None:
    """Roles, a database with its schemas, a cluster, their privileges, settings and allocators."""
    tx.insert(RoleKey(id=PUBLIC), RoleValue(name="public"))
    tx.insert(RoleKey(id=SYSTEM), RoleValue(name="catalog_system", permissions=_CREATE_ANYTHING))
    owned = [AclItem(grantee=SYSTEM, grantor=SYSTEM, acl_mode=_USAGE | _CREATE)]
    tx.insert(DatabaseKey(id=1), DatabaseValue(name="default", owner_id=SYSTEM, privileges=owned))
    for number, (name, database) in enumerate(
        (("catalog", None), ("information_schema", None), ("public", 1)), start=1
    ):
        schema = SchemaValue(name=name, owner_id=SYSTEM, privileges=owned)
        if database is not None:
            schema.database_id = database
        tx.insert(SchemaKey(id=number), schema)
    tx.insert(ClusterKey(id=1), ClusterValue(name="default", owner_id=SYSTEM))
    size = ReplicaSize(executors=1, cores=1, memory_mib=1024)
    tx.insert(ClusterReplicaKey(id=1), ClusterReplicaValue(cluster_id=1, name="r1", owner_id=SYSTEM, size=size))
    for_schemas = DefaultPrivilegeKey(role_id=PUBLIC, object_type=OBJECT_TYPE_SCHEMA, grantee_id=PUBLIC)
    tx.insert(for_schemas, DefaultPrivilegeValue(acl_mode=_USAGE))
    tx.insert(SystemPrivilegeKey(grantee_id=SYSTEM, grantor_id=SYSTEM), SystemPrivilegeValue(acl_mode=_ENVIRONMENT))
    tx.insert(SettingKey(name="default_cluster"), SettingValue(value="default"))
    tx.insert(SettingKey(name="default_database"), SettingValue(value="default"))
    allocators = {
        "role": 1000,
        "database": 2,
        "schema": 4,
        "item": 1,
        "cluster": 2,
        "cluster_replica": 2,
        "audit_log": 1,
    }
    for name, following in allocators.items():
        tx.insert(IdAllocKey(name=name), IdAllocValue(next_id=following))
