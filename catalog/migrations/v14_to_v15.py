"""Version 14 to 15: every row changes from JSON to protobuf, and nothing else about it changes.

For whom: every store that a build with JSON rows made. Why: protobuf types can be frozen version by
version, so that every later step has a type for what it reads and another for what it writes, and the build
can tell that one changed. After this step people read a store with the catalog's own commands instead of
any JSON tool.

Every collection that is not the engine's is rewritten, key and value: a message of `legacy_json_objects`
becomes the message of the same name with the same members. Rows map one to one; none is added, dropped or
merged. The engine collections are protobuf already and stay as they are.

- An absent optional member (a system schema's database, an item's comment, a default privilege's database
  or schema, the time of an audit event) stays absent. One that is there stays, even with the value 0 or "".
- An enum's name in lower case becomes the value of that name; the unspecified value is never written.
- Lists keep their order. The Spark settings of a cluster become a list in the order of their names, by code
  point.
- Role ids stay plain numbers: 1 is public, 2 to 999 are system roles, those from 1000 on are user roles.
- Integers always fit: the JSON types have the same bounds. Bytes that are not the canonical JSON of their
  type stop the step, for it could not tell what would be lost.
"""

from catalog.actions import Action, per_row
from catalog.generated import objects_v15_pb2 as v15
from catalog.migrations import legacy_json_objects as legacy


def upgrade() -> list[Action]:
    """Declare the step: every collection there is, row by row."""
    return [
        per_row("setting", convert_setting),
        per_row("id_alloc", convert_id_alloc),
        per_row("role", convert_role),
        per_row("database", convert_database),
        per_row("schema", convert_schema),
        per_row("item", convert_item),
        per_row("cluster", convert_cluster),
        per_row("default_privilege", convert_default_privilege),
        per_row("system_privilege", convert_system_privilege),
        per_row("server_configuration", convert_server_configuration),
        per_row("builtin_mapping", convert_builtin_mapping),
        per_row("storage_metadata", convert_storage_metadata),
        per_row("unfinalized_shard", convert_unfinalized_shard),
        per_row("audit_log", convert_audit_log),
        per_row("timestamp", convert_timestamp),
    ]


def convert_setting(key: legacy.SettingKey, value: legacy.SettingValue) -> tuple[v15.SettingKey, v15.SettingValue]:
    """Copy the name and the value."""
    return v15.SettingKey(name=key.name), v15.SettingValue(value=value.value)


def convert_id_alloc(key: legacy.IdAllocKey, value: legacy.IdAllocValue) -> tuple[v15.IdAllocKey, v15.IdAllocValue]:
    """Copy the allocator's name and its next id."""
    return v15.IdAllocKey(name=key.name), v15.IdAllocValue(next_id=value.next_id)


def convert_role(key: legacy.RoleKey, value: legacy.RoleValue) -> tuple[v15.RoleKey, v15.RoleValue]:
    """Copy the number, the name, the three booleans and the memberships in their order."""
    return v15.RoleKey(id=key.id), v15.RoleValue(
        name=value.name,
        create_db=value.create_db,
        create_role=value.create_role,
        create_cluster=value.create_cluster,
        member_of=value.member_of,
    )


def convert_database(key: legacy.DatabaseKey, value: legacy.DatabaseValue) -> tuple[v15.DatabaseKey, v15.DatabaseValue]:
    """Copy the number, the name and the owner."""
    return v15.DatabaseKey(id=key.id), v15.DatabaseValue(name=value.name, owner_id=value.owner_id)


def convert_schema(key: legacy.SchemaKey, value: legacy.SchemaValue) -> tuple[v15.SchemaKey, v15.SchemaValue]:
    """Copy the number, the name and the owner, and the database unless it is absent."""
    # Protobuf takes None for absent, here and below.
    converted = v15.SchemaValue(database_id=value.database_id, name=value.name, owner_id=value.owner_id)
    return v15.SchemaKey(id=key.id), converted


def convert_item(key: legacy.ItemKey, value: legacy.ItemValue) -> tuple[v15.ItemKey, v15.ItemValue]:
    """Copy every member; set the kind by its name, the comment unless it is absent."""
    return v15.ItemKey(id=key.id), v15.ItemValue(
        schema_id=value.schema_id,
        name=value.name,
        kind=f"ITEM_KIND_{value.kind.name}",
        create_sql=value.create_sql,
        owner_id=value.owner_id,
        comment=value.comment,
        column_comments=[
            v15.ColumnComment(position=column.position, comment=column.comment) for column in value.column_comments
        ],
    )


def convert_cluster(key: legacy.ClusterKey, value: legacy.ClusterValue) -> tuple[v15.ClusterKey, v15.ClusterValue]:
    """Copy every member; sort the Spark settings by name, keep the replicas in their order."""
    return v15.ClusterKey(id=key.id), v15.ClusterValue(
        name=value.name,
        owner_id=value.owner_id,
        master=value.master,
        spark_conf=[v15.SparkSetting(name=name, value=text) for name, text in sorted(value.spark_conf.items())],
        replicas=[v15.Replica(name=replica.name, size=_size(replica.size)) for replica in value.replicas],
    )


def convert_default_privilege(
    key: legacy.DefaultPrivilegeKey, value: legacy.DefaultPrivilegeValue
) -> tuple[v15.DefaultPrivilegeKey, v15.DefaultPrivilegeValue]:
    """Copy the roles and the bits, set the object type by its name, database and schema unless absent."""
    converted = v15.DefaultPrivilegeKey(
        role_id=key.role_id,
        database_id=key.database_id,
        schema_id=key.schema_id,
        object_type=_object_type(key.object_type),
        grantee_id=key.grantee_id,
    )
    return converted, v15.DefaultPrivilegeValue(acl_mode=value.acl_mode)


def convert_system_privilege(
    key: legacy.SystemPrivilegeKey, value: legacy.SystemPrivilegeValue
) -> tuple[v15.SystemPrivilegeKey, v15.SystemPrivilegeValue]:
    """Copy the two roles and the bits."""
    converted = v15.SystemPrivilegeKey(grantee_id=key.grantee_id, grantor_id=key.grantor_id)
    return converted, v15.SystemPrivilegeValue(acl_mode=value.acl_mode)


def convert_server_configuration(
    key: legacy.ServerConfigurationKey, value: legacy.ServerConfigurationValue
) -> tuple[v15.ServerConfigurationKey, v15.ServerConfigurationValue]:
    """Copy the name and the value."""
    return v15.ServerConfigurationKey(name=key.name), v15.ServerConfigurationValue(value=value.value)


def convert_builtin_mapping(
    key: legacy.BuiltinMappingKey, value: legacy.BuiltinMappingValue
) -> tuple[v15.BuiltinMappingKey, v15.BuiltinMappingValue]:
    """Copy the names, the number and the fingerprint; set the object type by its name."""
    converted = v15.BuiltinMappingKey(
        schema_name=key.schema_name, object_type=_object_type(key.object_type), object_name=key.object_name
    )
    return converted, v15.BuiltinMappingValue(id=value.id, fingerprint=value.fingerprint)


def convert_storage_metadata(
    key: legacy.StorageMetadataKey, value: legacy.StorageMetadataValue
) -> tuple[v15.StorageMetadataKey, v15.StorageMetadataValue]:
    """Copy the number and the shard."""
    return v15.StorageMetadataKey(id=key.id), v15.StorageMetadataValue(shard=value.shard)


def convert_unfinalized_shard(
    key: legacy.UnfinalizedShardKey, value: legacy.UnfinalizedShardValue
) -> tuple[v15.UnfinalizedShardKey, v15.UnfinalizedShardValue]:
    """Copy the shard and the reason."""
    return v15.UnfinalizedShardKey(shard=key.shard), v15.UnfinalizedShardValue(reason=value.reason)


def convert_audit_log(
    key: legacy.AuditLogKey, value: legacy.AuditLogValue
) -> tuple[v15.AuditLogKey, v15.AuditLogValue]:
    """Copy every member; set both types by their names, the time unless it is absent."""
    return v15.AuditLogKey(id=key.id), v15.AuditLogValue(
        event_type=f"AUDIT_EVENT_TYPE_{value.event_type.name}",
        object_type=_object_type(value.object_type),
        object_id=value.object_id,
        object_name=value.object_name,
        actor=value.actor,
        occurred_at_ms=value.occurred_at_ms,
        reason=value.reason,
    )


def convert_timestamp(
    key: legacy.TimestampKey, value: legacy.TimestampValue
) -> tuple[v15.TimestampKey, v15.TimestampValue]:
    """Copy the timeline and its greatest time."""
    return v15.TimestampKey(timeline=key.timeline), v15.TimestampValue(ts=value.ts)


def _object_type(kind: legacy.ObjectType) -> str:
    return f"OBJECT_TYPE_{kind.name}"


def _size(size: legacy.ReplicaSize) -> v15.ReplicaSize:
    return v15.ReplicaSize(executors=size.executors, cores=size.cores, memory_mib=size.memory_mib)
