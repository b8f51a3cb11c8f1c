"""The texts of this repository's catalog that an anonymised copy replaces, and those it keeps, of every version."""

from catalog.authoring import Privacy
from catalog.version import MIN_STASH_VERSION, STASH_VERSION

PRIVACY = Privacy(
    private=frozenset(
        {
            "audit_log.value.actor",
            "audit_log.value.object_name",
            "audit_log.value.reason",
            "cluster.value.master",
            "cluster.value.name",
            "cluster.value.replicas.name",
            "cluster.value.spark_conf.name",
            "cluster.value.spark_conf.value",
            "cluster_replica.value.name",
            "comment.value.comment",
            "database.value.name",
            "item.value.column_comments.comment",
            "item.value.comment",
            "item.value.create_sql",
            "item.value.name",
            "role.value.name",
            "schema.value.name",
            "server_configuration.key.name",
            "server_configuration.value.value",
            "setting.key.name",
            "setting.value.value",
            "timestamp.key.timeline",
            "unfinalized_shard.value.reason",
        }
    ),
    harmless=frozenset(
        {
            "audit_log.value.object_id",  # "u1000": an id, whatever its form
        }
    ),
    words=frozenset(
        {
            # What a new store holds, and who writes to the audit log by itself.
            *("public", "catalog_system", "default", "catalog", "information_schema", "r1"),
            *("default_cluster", "default_database"),
            *(f"v{version}_to_v{version + 1}" for version in range(MIN_STASH_VERSION, STASH_VERSION)),
        }
    ),
    ordered={"cluster.value.spark_conf": "name"},
)
