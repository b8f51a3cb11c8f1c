"""Samples: rules for synthetic rows of this repository's catalog, which follow the comments of its protos.

The number of a row decides what it is (which role, of which kind, with or without a schema), so that other rows can
compute it. A column for a field that a version does not have is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from catalog.authoring import Sample
from catalog.samples.ids import allocators
from catalog.samples.objects import COLUMNS, COMMENT, DATABASE, ITEM, KINDS, ROLE, SCHEMA, STORED
from catalog.samples.system import (
    AUDIT_LOG,
    BUILTIN_MAPPING,
    CLUSTER,
    CLUSTER_REPLICA,
    DEFAULT_PRIVILEGE,
    SERVER_CONFIGURATION,
    SETTING,
    STORAGE_METADATA,
    SYSTEM_PRIVILEGE,
    TIMELINES,
    TIMESTAMP,
    TYPES_AND_PLACES,
    UNFINALIZED_SHARD,
)

_FIRST_REPLICAS = 20
"""The first version whose replicas are rows with ids of their own."""


def samples(version: int) -> Mapping[str, Sample]:
    names = ["role", "database", "schema", "item", "cluster", "audit_log"]
    if version >= _FIRST_REPLICAS:
        names.append("cluster_replica")
    fixed = partial(Sample, share=0, inserts=False, deletes=False)
    count = len(names)
    return {
        "audit_log": Sample(AUDIT_LOG, share=0.32, updates=False, deletes=False),
        "builtin_mapping": Sample(BUILTIN_MAPPING, share=0.01, rows_min=20, rows_max=2_000),
        "cluster": Sample(CLUSTER, share=0.002, rows_min=4, rows_max=1_000),
        "cluster_replica": Sample(CLUSTER_REPLICA, share=0.004, rows_min=8, rows_max=3_000),
        "comment": Sample(COMMENT, share=0.06, rows_min=40, room=lambda lasting: lasting("item") * COLUMNS),
        "database": Sample(DATABASE, share=0.001, rows_min=3, rows_max=500),
        "default_privilege": Sample(
            DEFAULT_PRIVILEGE,
            share=0.002,
            rows_min=12,
            rows_max=2_000,
            room=lambda lasting: TYPES_AND_PLACES * lasting("role") ** 2,
        ),
        "id_alloc": fixed(allocators(names), room=lambda _: count, rows_min=count),
        "item": Sample(ITEM, share=0.4, rows_min=40, large=True),
        "role": Sample(ROLE, share=0.004, rows_min=12, rows_max=5_000),
        "schema": Sample(SCHEMA, share=0.005, rows_min=8, rows_max=10_000),
        "server_configuration": Sample(SERVER_CONFIGURATION, share=0.001, rows_min=4, rows_max=200),
        "setting": Sample(SETTING, share=0.001, rows_min=4, rows_max=100, deletes=False),
        "storage_metadata": Sample(
            STORAGE_METADATA, share=0.18, rows_min=20, room=lambda lasting: lasting("item") // len(KINDS) * len(STORED)
        ),
        "system_privilege": Sample(
            SYSTEM_PRIVILEGE,
            share=0.001,
            rows_min=4,
            rows_max=500,
            room=lambda lasting: lasting("role") * (lasting("role") - 1),
        ),
        "timestamp": fixed(TIMESTAMP, room=lambda _: len(TIMELINES), rows_min=len(TIMELINES)),
        "unfinalized_shard": Sample(UNFINALIZED_SHARD, share=0.004, rows_min=4, rows_max=5_000),
    }
