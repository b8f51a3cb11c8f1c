"""The constraints on rows of this repository's catalog: unique fields and references, each with its first version."""

from catalog.authoring import Constraints, Reference, Unique

CONSTRAINTS = Constraints(
    uniques=(
        Unique("role", ("value.name",)),
        Unique("database", ("value.name",)),
        Unique("schema", ("value.database_id", "value.name")),
        Unique("item", ("value.schema_id", "value.name")),
        Unique("cluster", ("value.name",)),
        Unique("cluster_replica", ("value.cluster_id", "value.name"), since=20),
    ),
    references=(
        Reference("role", "value.member_of", "role"),
        Reference("database", "value.owner_id", "role"),
        Reference("database", "value.privileges.grantee", "role", since=18),
        Reference("database", "value.privileges.grantor", "role", since=18),
        Reference("schema", "value.database_id", "database"),
        Reference("schema", "value.owner_id", "role"),
        Reference("schema", "value.privileges.grantee", "role", since=18),
        Reference("schema", "value.privileges.grantor", "role", since=18),
        Reference("item", "value.schema_id", "schema", since=21),
        Reference("item", "value.owner_id", "role"),
        Reference("item", "value.privileges.grantee", "role", since=18),
        Reference("item", "value.privileges.grantor", "role", since=18),
        Reference("cluster", "value.owner_id", "role"),
        Reference("cluster_replica", "value.cluster_id", "cluster", since=20),
        Reference("cluster_replica", "value.owner_id", "role", since=20),
        Reference("comment", "key.database_id", "database", since=19),
        Reference("comment", "key.schema_id", "schema", since=19),
        Reference("comment", "key.item_id", "item", since=19),
        Reference("comment", "key.cluster_id", "cluster", since=19),
        Reference("comment", "key.role_id", "role", since=19),
        Reference("default_privilege", "key.role_id", "role"),
        Reference("default_privilege", "key.database_id", "database"),
        Reference("default_privilege", "key.schema_id", "schema"),
        Reference("default_privilege", "key.grantee_id", "role"),
        Reference("system_privilege", "key.grantee_id", "role"),
        Reference("system_privilege", "key.grantor_id", "role"),
    ),
)
