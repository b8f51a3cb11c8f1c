"""What the comments of the protos say of rows, checked one row at a time and without any of the generator's code."""

from __future__ import annotations

from typing import Any

from tests.tools.generator.plain_rows import Plain, Rows

MODES = {1: 15, 2: 1, 3: 1, 4: 1, 5: 16, 7: 48, 8: 48, 9: 48}
ENVIRONMENT = 64 | 128 | 256
PUBLIC = ("public", None)


def check(version: int, rows: Rows) -> None:
    """Fail at the first row that says what no row of its version may say."""
    roles = {role(key["id"], version) for key, _ in rows["role"]}
    check_ids(version, rows)
    check_roles(version, rows, roles)
    for name, kind in (("database", 7), ("schema", 8), ("item", None), ("cluster", None)):
        for _, value in rows[name]:
            check_owned(version, value, roles, kind if kind is not None else value.get("kind"))
    check_namespaces(version, rows)
    check_clusters(version, rows, roles)
    check_comments(version, rows, roles)
    check_privileges(version, rows, roles)
    check_environment(version, rows)


def role(found: Any, version: int) -> tuple[str, int | None]:  # noqa: ANN401 - a number or a RoleId
    """The kind and number of a role."""
    if version < 17:
        assert found >= 1
        return PUBLIC if found == 1 else ("system" if found < 1000 else "user", found)
    ((kind, number),) = [(name, member) for name, member in found.items() if member is not None]
    if kind == "public":
        return PUBLIC
    assert 2 <= number < 1000 if kind == "system" else number >= 1000
    return kind, number


def check_ids(version: int, rows: Rows) -> None:
    following = {key["name"]: value["next_id"] for key, value in rows["id_alloc"]}
    expected = {"role", "database", "schema", "item", "cluster", "audit_log"}
    assert following.keys() == expected | ({"cluster_replica"} if version >= 20 else set())
    for name in following.keys() - {"role"}:
        ids = [key["id"] for key, _ in rows[name]]
        if name == "item":
            ids += [value["id"] for _, value in rows["builtin_mapping"]]
        assert len(ids) == len(set(ids))
        assert min(ids) >= 1
        assert max(ids) < following[name], name
    numbers = [role(key["id"], version)[1] or 0 for key, _ in rows["role"]]
    assert max(numbers) < following["role"]
    assert all(value["schema_id"] < following["schema"] for _, value in rows["item"])
    assert all(key["id"] < following["item"] for key, _ in rows["storage_metadata"])


def check_roles(version: int, rows: Rows, roles: set[tuple[str, int | None]]) -> None:
    assert PUBLIC in roles
    assert len(roles) == len(rows["role"])
    for _, value in rows["role"]:
        member_of = [role(found, version) for found in value["member_of"]]
        assert len(member_of) == len(set(member_of))
        assert PUBLIC not in member_of
        assert set(member_of) <= roles
        assert value.get("permissions", 0) < 8
    unique([value["name"] for _, value in rows["role"]])


def check_owned(version: int, value: Plain, roles: set[tuple[str, int | None]], kind: int | None) -> None:
    owner = role(value["owner_id"], version)
    assert owner in roles
    assert owner != PUBLIC
    if version < 18 or kind is None:
        assert "privileges" not in value
        return
    pairs = [(role(p["grantee"], version), role(p["grantor"], version)) for p in value["privileges"]]
    unique(pairs)
    assert (owner, owner) in pairs
    for grantee, grantor in pairs:
        assert {grantee, grantor} <= roles
        assert grantor != PUBLIC
    for privilege in value["privileges"]:
        assert privilege["acl_mode"]
        assert not privilege["acl_mode"] & ~MODES[kind]


def check_namespaces(version: int, rows: Rows) -> None:
    databases = {key["id"] for key, _ in rows["database"]}
    schemas = {key["id"] for key, _ in rows["schema"]}
    unique([value["name"] for _, value in rows["database"]])
    unique([(value["database_id"], value["name"]) for _, value in rows["schema"]])
    unique([(value["schema_id"], value["name"]) for _, value in rows["item"]])
    for _, value in rows["schema"]:
        assert value["database_id"] is None or value["database_id"] in databases
    assert {value["kind"] for _, value in rows["item"]} == {1, 2, 3, 4, 5}
    orphans = [value for _, value in rows["item"] if value["schema_id"] not in schemas]
    assert bool(orphans) == (version < 21)
    assert len(orphans) < len(rows["item"]) / 10
    for _, value in rows["item"]:
        assert value["schema_id"] >= 1
        positions = [comment["position"] for comment in value.get("column_comments", [])]
        unique(positions)
        assert all(position >= 1 for position in positions)
    for name in ("role", "database", "schema", "item"):
        oids = [value["oid"] for _, value in rows[name] if version >= 22 and value["oid"] is not None]
        unique(oids)
        assert all(oid >= 1 for oid in oids)
    if version >= 22:
        assert 0 < sum(value["oid"] is None for _, value in rows["item"]) < len(rows["item"])


def check_clusters(version: int, rows: Rows, roles: set[tuple[str, int | None]]) -> None:
    clusters = {key["id"] for key, _ in rows["cluster"]}
    unique([value["name"] for _, value in rows["cluster"]])
    for _, value in rows["cluster"]:
        settings = [setting["name"] for setting in value["spark_conf"]]
        assert settings == sorted(set(settings))
        unique([replica["name"] for replica in value.get("replicas", [])])
        assert ("replicas" in value) == (version < 20)
    replicas = [replica for _, value in rows["cluster"] for replica in value.get("replicas", [])]
    for _, value in rows.get("cluster_replica", []):
        assert value["cluster_id"] in clusters
        assert role(value["owner_id"], version) in roles - {PUBLIC}
        replicas.append(value)
    unique([(value["cluster_id"], value["name"]) for _, value in rows.get("cluster_replica", [])])
    assert replicas
    assert all(min(replica["size"].values()) >= 1 for replica in replicas)


def check_comments(version: int, rows: Rows, roles: set[tuple[str, int | None]]) -> None:
    assert ("comment" in rows) == (version >= 19)
    if version < 19:
        assert 0 < sum(value["comment"] is None for _, value in rows["item"]) < len(rows["item"])
        assert any(value["column_comments"] for _, value in rows["item"])
        return
    targets = {f"{name}_id": {key["id"] for key, _ in rows[name]} for name in ("database", "schema", "item", "cluster")}
    seen = set()
    for key, _ in rows["comment"]:
        ((kind, found),) = [(k, v) for k, v in key.items() if k != "column" and v is not None]
        seen.add((kind, key["column"] is not None))
        assert role(found, version) in roles if kind == "role_id" else found in targets[kind]
        assert key["column"] is None or (kind == "item_id" and key["column"] >= 1)
    assert {("item_id", True), ("item_id", False), ("role_id", False), ("schema_id", False)} <= seen
    schemas = {key["id"] for key, _ in rows["schema"]}
    orphans = {key["id"] for key, value in rows["item"] if value["schema_id"] not in schemas}
    assert bool(orphans & {key["item_id"] for key, _ in rows["comment"]}) == (version < 21)


def check_privileges(version: int, rows: Rows, roles: set[tuple[str, int | None]]) -> None:
    databases, schemas = ({key["id"] for key, _ in rows[name]} for name in ("database", "schema"))
    for key, value in rows["default_privilege"]:
        assert {role(key["role_id"], version), role(key["grantee_id"], version)} <= roles
        assert key["database_id"] is None or key["database_id"] in databases
        assert key["schema_id"] is None or key["schema_id"] in schemas
        assert value["acl_mode"]
        assert not value["acl_mode"] & ~MODES[key["object_type"]]
    for key, value in rows["system_privilege"]:
        assert role(key["grantee_id"], version) in roles
        assert role(key["grantor_id"], version) in roles - {PUBLIC}
        assert value["acl_mode"]
        assert not value["acl_mode"] & ~ENVIRONMENT


def check_environment(version: int, rows: Rows) -> None:
    assert ("timestamp" in rows) == (version < 21)
    shards = {value["shard"] for _, value in rows["storage_metadata"]}
    assert len(shards) == len(rows["storage_metadata"])
    assert not shards & {key["shard"] for key, _ in rows["unfinalized_shard"]}
    assert all(not shard.startswith("/") for shard in shards)
    assert {key["object_type"] for key, _ in rows["builtin_mapping"]} <= {1, 2, 3, 4, 5}
    known = {key["id"] for key, _ in rows["item"]} | {value["id"] for _, value in rows["builtin_mapping"]}
    outlived = [key["id"] for key, _ in rows["storage_metadata"] if key["id"] not in known]
    assert 0 < len(outlived) < len(rows["storage_metadata"]) / 4
    for _, value in rows["audit_log"]:
        assert 1 <= value["event_type"] <= 6
        assert 1 <= value["object_type"] <= 11
        assert (value["occurred_at_ms"] is None) == (value["actor"].startswith("v") and "_to_v" in value["actor"])
        if value["object_type"] != 6 or version < 17:
            assert value["object_id"].isdecimal()
        else:
            assert value["object_id"].lstrip("su").isdecimal() or value["object_id"] == "p"
    config = {key["name"]: value for key, value in rows["config"]}
    assert config["stash_version"]["number"] == version
    ((scope, token),) = rows["fence_token"]
    assert scope["scope"] == "store"
    assert token["epoch"] == 1


def unique(values: list[Any]) -> None:
    assert len(values) == len(set(values)), values
