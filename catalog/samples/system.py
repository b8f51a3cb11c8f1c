"""Columns of clusters, of default and system privileges, and of settings, shards and the audit log."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from catalog.authoring import Draw, SampleColumn
from catalog.authoring import random_columns as rc
from catalog.samples.ids import FIRST_ROLE_ID, RUN, known, own_id, own_name, owner, role_parts
from catalog.samples.objects import ENVIRONMENT, FUNCTION, KINDS, MODE_BY_TYPE, STORED, SYSTEM_SCHEMAS, TABLE

_FIRST_AUDITED_ORPHANS = 21
"""The version whose migration writes an audit event for each orphan that it drops."""
_EXECUTORS_MAX, _CORES_MAX, _MEMORY_GIB_MAX = 64, 32, 512
_SETTINGS = pa.array(["spark.driver.memory", "spark.executor.cores", "spark.sql.ansi.enabled"], pa.string())
_NOW_MS = 1_700_000_000_000
_ROLE_TYPE, _LAST_TYPE = 6, 11
_GRANTABLE = pa.array([1, 2, 3, 4, 5, 7, 8, 9], pa.uint64())
"""The types of objects that a default privilege can apply to."""
_PLACES = 3
TYPES_AND_PLACES = len(_GRANTABLE) * _PLACES
TIMELINES = pa.array(["epoch", "user", "replay"], pa.string())
_DROP, _EVENTS = 3, 6


def _master(draw: Draw) -> pa.Array:
    spark = rc.joined("spark://", draw.words("host"), ":7077")
    connect = rc.joined("sc://", draw.words("host"), ":15002")
    own = pc.if_else(draw.chance("connect", 0.5), connect, spark)
    return pc.if_else(draw.chance("own master", 0.5), own, pa.scalar(""))


def _spark_conf(draw: Draw) -> pa.Array:
    settings = [
        pa.StructArray.from_arrays(
            [pa.repeat(name, len(draw)), draw.below(f"setting {name}", 16).cast(pa.string())], names=["name", "value"]
        )
        for name in _SETTINGS
    ]
    return rc.lists(settings, [draw.chance(f"setting {name}", 0.5) for name in _SETTINGS])


def _size(draw: Draw, label: str = "size") -> pa.Array:
    columns = [
        rc.plus(draw.below(f"{label} executors", _EXECUTORS_MAX), 1),
        rc.plus(draw.below(f"{label} cores", _CORES_MAX), 1),
        pc.multiply(rc.plus(draw.below(f"{label} memory", _MEMORY_GIB_MAX), 1), rc.unsigned(1024)),
    ]
    return pa.StructArray.from_arrays(columns, names=["executors", "cores", "memory_mib"])


def _replicas(draw: Draw) -> pa.Array:
    replicas = [
        pa.StructArray.from_arrays(
            [pa.repeat(pa.scalar(name), len(draw)), _size(draw, f"size {name}")], names=["name", "size"]
        )
        for name in ("r1", "r2", "r3")
    ]
    always = pa.repeat(pa.scalar(value=True), len(draw))
    first = pc.invert(pc.equal(rc.modulo(draw.numbers, 7), rc.unsigned(6)))
    return rc.lists(replicas, [pc.and_(always, first), draw.chance("r2", 0.5), draw.chance("r3", 0.25)])


def _grantable_type(draw: Draw) -> pa.Array:
    return _GRANTABLE.take(rc.modulo(draw.numbers, len(_GRANTABLE)))


def _mixed_radix(draw: Draw, *sizes: int) -> pa.Array:
    """Return the digit of the row's number in the last of these sizes, after the digits of the others."""
    rest = draw.numbers
    for size in sizes[:-1]:
        rest = rc.quotient(rest, size)
    return rc.modulo(rest, sizes[-1])


def _privileged_place(draw: Draw, collection: str, turn: int) -> pa.Array:
    """Return a database, a schema or neither, in turn."""
    place = _mixed_radix(draw, len(_GRANTABLE), _PLACES)
    return rc.only(pc.equal(place, rc.unsigned(turn)), draw.refer(collection, "place"))


def _privileged_role(draw: Draw, digit: int) -> pa.Array:
    roles = draw.extent("role").lasting
    return draw.ids("role", _mixed_radix(draw, len(_GRANTABLE), _PLACES, *([roles] * digit)))


def _some_bits(draw: Draw, allowed: pa.Array) -> pa.Array:
    """Return at least one of the allowed bits."""
    bits = pc.bit_wise_and(allowed, draw.below("bits", 1 << 9))
    return pc.if_else(pc.equal(bits, rc.unsigned(0)), allowed, bits)


def _grantor(draw: Draw) -> pa.Array:
    """Return another grantor in each row of the same grantee, never public."""
    roles = draw.extent("role").lasting
    return draw.ids("role", rc.plus(rc.modulo(rc.quotient(draw.numbers, roles), roles - 1), 1))


def _stored_id(draw: Draw) -> pa.Array:
    """Return ids of items that have data; the items of some rows no longer exist."""
    width = len(STORED)
    item = pc.add(
        pc.multiply(rc.quotient(draw.numbers, width), rc.unsigned(len(KINDS))),
        STORED.take(rc.modulo(draw.numbers, width)),
    )
    found = draw.ids("item", item)
    outlived = pc.equal(rc.modulo(draw.numbers, RUN), rc.unsigned(RUN - 1))
    run = rc.plus(rc.quotient(draw.numbers, RUN), 1)
    return pc.if_else(outlived, pc.multiply(run, rc.unsigned(RUN + 1)), found)


def _shard(draw: Draw, prefix: str) -> pa.Array:
    return rc.joined(f"shards/{prefix}", draw.numbers, "-", draw.below("shard", 1 << 31))


def _by_migration(draw: Draw) -> pa.Array:
    return pc.equal(rc.modulo(draw.numbers, 101), rc.unsigned(50))


def _event_type(draw: Draw) -> pa.Array:
    return pc.if_else(_by_migration(draw), rc.unsigned(_DROP), rc.plus(draw.below("event", _EVENTS), 1))


def _audited_type(draw: Draw) -> pa.Array:
    return pc.if_else(_by_migration(draw), rc.unsigned(TABLE), rc.plus(draw.below("type", _LAST_TYPE), 1))


def _audited_id(draw: Draw) -> pa.Array:
    """Return the id of the audited object: a role's in the recent form, in some rows in the older one."""
    public, system, number = role_parts(draw.rows_of("role", "object"))
    form = number.cast(pa.string())
    if draw.version >= FIRST_ROLE_ID:
        recent = pc.if_else(public, "p", rc.joined(pc.if_else(system, "s", "u"), number))
        form = pc.if_else(draw.chance("recent", 0.7), recent, form)
    is_role = pc.equal(draw["value.object_type"], pa.scalar(_ROLE_TYPE, pa.int32()))
    return pc.if_else(is_role, form, rc.plus(draw.below("object", 1 << 20), 1).cast(pa.string()))


def _actor(draw: Draw) -> pa.Array:
    step = min(draw.version, _FIRST_AUDITED_ORPHANS)
    by_role = draw.look_up("role", "value.name", draw.rows_of("role", "actor", first=1))
    return pc.if_else(_by_migration(draw), pa.scalar(f"v{step - 1}_to_v{step}"), by_role)


def _occurred(draw: Draw) -> pa.Array:
    time = pc.add(rc.plus(pc.multiply(draw.numbers, rc.unsigned(1000)), _NOW_MS), draw.below("time", 1000))
    return rc.only(pc.invert(_by_migration(draw)), time)


def _reason(draw: Draw) -> pa.Array:
    written = pc.if_else(draw.chance("reason", 0.5), draw.text("reason"), pa.scalar(""))
    dropped = rc.joined("schema ", rc.plus(draw.below("gone", 1000), 1), " does not exist")
    return pc.if_else(_by_migration(draw), dropped, written)


def _timeline(draw: Draw) -> pa.Array:
    return TIMELINES.take(draw.numbers)


def _latest_ms(draw: Draw) -> pa.Array:
    return rc.plus(draw.steady.below("ts", 1 << 30), _NOW_MS + draw.revision * 60_000)


CLUSTER: dict[str, SampleColumn] = {
    "key.id": own_id,
    "value.name": own_name,
    "value.owner_id": owner,
    "value.master": _master,
    "value.spark_conf": _spark_conf,
    "value.replicas": _replicas,
}
CLUSTER_REPLICA: dict[str, SampleColumn] = {
    "key.id": own_id,
    "value.cluster_id": lambda draw: draw.steady.refer("cluster", "cluster"),
    "value.name": own_name,
    "value.owner_id": owner,
    "value.size": _size,
}
DEFAULT_PRIVILEGE: dict[str, SampleColumn] = {
    "key.role_id": partial(_privileged_role, digit=1),
    "key.database_id": partial(_privileged_place, collection="database", turn=1),
    "key.schema_id": partial(_privileged_place, collection="schema", turn=2),
    "key.object_type": _grantable_type,
    "key.grantee_id": partial(_privileged_role, digit=2),
    "value.acl_mode": lambda draw: _some_bits(draw, MODE_BY_TYPE.take(draw["key.object_type"])),
}
SYSTEM_PRIVILEGE: dict[str, SampleColumn] = {
    "key.grantee_id": lambda draw: draw.ids("role", rc.modulo(draw.numbers, draw.extent("role").lasting)),
    "key.grantor_id": _grantor,
    "value.acl_mode": lambda draw: _some_bits(draw, pa.repeat(rc.unsigned(ENVIRONMENT), len(draw))),
}
SERVER_CONFIGURATION: dict[str, SampleColumn] = {"key.name": own_name, "value.value": lambda draw: draw.text("value")}
SETTING: dict[str, SampleColumn] = {
    "key.name": lambda draw: known(
        draw, pa.array(["default_cluster", "default_database"], pa.string()), own_name(draw)
    ),
    "value.value": lambda draw: draw.text("value"),
}
BUILTIN_MAPPING: dict[str, SampleColumn] = {
    "key.schema_name": lambda draw: draw.pick("schema", SYSTEM_SCHEMAS),
    "key.object_type": lambda draw: rc.plus(draw.below("type", FUNCTION), 1),
    "key.object_name": own_name,
    "value.id": own_id,
    "value.fingerprint": lambda draw: draw.hashes("fingerprint").cast(pa.string()),
}
STORAGE_METADATA: dict[str, SampleColumn] = {"key.id": _stored_id, "value.shard": partial(_shard, prefix="s")}
UNFINALIZED_SHARD: dict[str, SampleColumn] = {
    "key.shard": partial(_shard, prefix="u"),
    "value.reason": lambda draw: draw.text("reason"),
}
AUDIT_LOG: dict[str, SampleColumn] = {
    "key.id": own_id,
    "value.event_type": _event_type,
    "value.object_type": _audited_type,
    "value.object_id": _audited_id,
    "value.object_name": lambda draw: rc.joined(draw.words("object"), "_", draw.below("object", 1 << 20)),
    "value.actor": _actor,
    "value.occurred_at_ms": _occurred,
    "value.reason": _reason,
}
TIMESTAMP: dict[str, SampleColumn] = {"key.timeline": _timeline, "value.ts": _latest_ms}
