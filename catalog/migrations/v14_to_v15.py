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
- Lists keep their order. The Spark settings of a cluster become a list in the order of their names.
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
    raise NotImplementedError


def convert_id_alloc(key: legacy.IdAllocKey, value: legacy.IdAllocValue) -> tuple[v15.IdAllocKey, v15.IdAllocValue]:
    """Copy the allocator's name and its next id."""
    raise NotImplementedError


def convert_role(key: legacy.RoleKey, value: legacy.RoleValue) -> tuple[v15.RoleKey, v15.RoleValue]:
    """Copy the number, the name, the three booleans and the memberships in their order."""
    raise NotImplementedError


def convert_database(key: legacy.DatabaseKey, value: legacy.DatabaseValue) -> tuple[v15.DatabaseKey, v15.DatabaseValue]:
    """Copy the number, the name and the owner."""
    raise NotImplementedError


def convert_schema(key: legacy.SchemaKey, value: legacy.SchemaValue) -> tuple[v15.SchemaKey, v15.SchemaValue]:
    """Copy the number, the name and the owner, and the database unless it is absent."""
    raise NotImplementedError


def convert_item(key: legacy.ItemKey, value: legacy.ItemValue) -> tuple[v15.ItemKey, v15.ItemValue]:
    """Copy every member; set the kind by its name, the comment unless it is absent."""
    raise NotImplementedError


def convert_cluster(key: legacy.ClusterKey, value: legacy.ClusterValue) -> tuple[v15.ClusterKey, v15.ClusterValue]:
    """Copy every member; sort the Spark settings by name, keep the replicas in their order."""
    raise NotImplementedError


def convert_default_privilege(
    key: legacy.DefaultPrivilegeKey, value: legacy.DefaultPrivilegeValue
) -> tuple[v15.DefaultPrivilegeKey, v15.DefaultPrivilegeValue]:
    """Copy the roles and the bits, set the object type by its name, database and schema unless absent."""
    raise NotImplementedError


def convert_system_privilege(
    key: legacy.SystemPrivilegeKey, value: legacy.SystemPrivilegeValue
) -> tuple[v15.SystemPrivilegeKey, v15.SystemPrivilegeValue]:
    """Copy the two roles and the bits."""
    raise NotImplementedError


def convert_server_configuration(
    key: legacy.ServerConfigurationKey, value: legacy.ServerConfigurationValue
) -> tuple[v15.ServerConfigurationKey, v15.ServerConfigurationValue]:
    """Copy the name and the value."""
    raise NotImplementedError


def convert_builtin_mapping(
    key: legacy.BuiltinMappingKey, value: legacy.BuiltinMappingValue
) -> tuple[v15.BuiltinMappingKey, v15.BuiltinMappingValue]:
    """Copy the names, the number and the fingerprint; set the object type by its name."""
    raise NotImplementedError


def convert_storage_metadata(
    key: legacy.StorageMetadataKey, value: legacy.StorageMetadataValue
) -> tuple[v15.StorageMetadataKey, v15.StorageMetadataValue]:
    """Copy the number and the shard."""
    raise NotImplementedError


def convert_unfinalized_shard(
    key: legacy.UnfinalizedShardKey, value: legacy.UnfinalizedShardValue
) -> tuple[v15.UnfinalizedShardKey, v15.UnfinalizedShardValue]:
    """Copy the shard and the reason."""
    raise NotImplementedError


def convert_audit_log(
    key: legacy.AuditLogKey, value: legacy.AuditLogValue
) -> tuple[v15.AuditLogKey, v15.AuditLogValue]:
    """Copy every member; set both types by their names, the time unless it is absent."""
    raise NotImplementedError


def convert_timestamp(
    key: legacy.TimestampKey, value: legacy.TimestampValue
) -> tuple[v15.TimestampKey, v15.TimestampValue]:
    """Copy the timeline and its greatest time."""
    raise NotImplementedError
