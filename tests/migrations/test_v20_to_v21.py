"""v20_to_v21: the collection `timestamp` goes, and so do items whose schema is gone."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from pyspark.sql import SparkSession

from catalog.migrations import v20_to_v21
from tests.migrations.generated_stores import stores
from tests.migrations.oracles import oracle_v20_to_v21
from tests.migrations.plain import Plain, Row, Store, golden, store_of, stored
from tests.migrations.steps import framed, run

OLD, NEW = 20, 21
LARGEST = 2**64 - 1

pytestmark = pytest.mark.spark


def item(schema: int, name: str = "i", kind: int = 1) -> Plain:
    granted = [{"grantee": {"public": {}}, "grantor": {"user": LARGEST}, "acl_mode": LARGEST}, {"acl_mode": 0}]
    return {"schema_id": schema, "name": name, "kind": kind, "create_sql": "", "privileges": granted}


def dropped(id_: int, schema: int, kind: int = 1) -> Plain:
    return {
        "event_type": 3,
        "object_type": kind,
        "object_id": str(id_),
        "object_name": "i",
        "actor": "v20_to_v21",
        "reason": f"schema {schema} does not exist",
    }


SCHEMAS: list[Row] = [
    ({"id": 1}, {"name": "system", "privileges": []}),
    ({"id": LARGEST}, {"database_id": 7, "name": "s", "owner_id": {"public": {}}, "privileges": []}),
]


def test_orphans_go_with_their_comments_and_leave_an_audit_row_each(spark: SparkSession) -> None:
    """Ids go on from the allocator in the order of the items as numbers; everything else stays."""
    kept_items = [({"id": 3}, item(1)), ({"id": LARGEST - 1}, item(LARGEST, kind=99))]
    orphans = [({"id": n}, item(n + 2)) for n in (256, 129, 2, LARGEST - 5)]
    orphans.append(({"id": 0}, item(0, kind=-1)))
    kept_comments: list[Row] = [
        ({"item_id": 3}, {"comment": "kept"}),
        ({"item_id": 3, "column": 0}, {"comment": ""}),
        ({"item_id": 77}, {"comment": "on nothing before this step"}),
        ({"schema_id": 2}, {"comment": "on the schema of that number"}),
        ({"role_id": {"public": {}}}, {"comment": ""}),
        ({}, {"comment": "on nothing at all"}),
    ]
    gone: list[Row] = [({"item_id": 2}, {"comment": "gone"}), ({"item_id": 256, "column": 1}, {"comment": ""})]
    log: list[Row] = [({"id": 4}, dropped(1, 1) | {"occurred_at_ms": 0})]
    rest: dict[str, list[Row]] = {
        "schema": SCHEMAS,
        "storage_metadata": [({"id": 2}, {"shard": "a"})],
    }
    store = store_of(
        OLD,
        {
            "timestamp": [({"timeline": "t"}, {"ts": LARGEST})],
            "item": kept_items + orphans,
            "comment": kept_comments + gone,
            "audit_log": log,
            "id_alloc": [({"name": "audit_log"}, {"next_id": 10})],
            **rest,
        },
    )
    assert run(OLD, store, spark) == store_of(
        NEW,
        {
            "item": kept_items,
            "comment": kept_comments,
            "audit_log": [
                *log,
                ({"id": 10}, dropped(0, 0, kind=-1)),
                ({"id": 11}, dropped(2, 4)),
                ({"id": 12}, dropped(129, 131)),
                ({"id": 13}, dropped(256, 258)),
                ({"id": 14}, dropped(LARGEST - 5, LARGEST - 3)),
            ],
            "id_alloc": [({"name": "audit_log"}, {"next_id": 15})],
            **rest,
        },
    )


def test_a_store_without_orphans_keeps_every_row(spark: SparkSession) -> None:
    """No item goes and no audit row comes."""
    rows: dict[str, list[Row]] = {
        "schema": SCHEMAS,
        "item": [({"id": 1}, item(LARGEST))],
        "comment": [({"item_id": 1}, {"comment": ""})],
        "id_alloc": [({"name": "audit_log"}, {"next_id": 1})],
    }
    assert run(OLD, store_of(OLD, rows), spark) == store_of(NEW, rows)


def test_an_initial_store_loses_its_timelines_and_nothing_else(spark: SparkSession) -> None:
    """It leads to what the next version began with."""
    assert run(OLD, golden(OLD), spark) == golden(NEW)


def test_an_empty_store_stays_empty(spark: SparkSession) -> None:
    """There is nothing to join, and nothing fails."""
    assert run(OLD, store_of(OLD, {}), spark) == oracle_v20_to_v21(store_of(OLD, {}))


@pytest.mark.parametrize("first", [1, 2**63, LARGEST])
def test_ids_reach_as_far_as_64_bits(spark: SparkSession, first: int) -> None:
    """The largest numbers are no literals of Spark, and are ids all the same."""
    rows = stored(OLD, store_of(OLD, {"item": [({"id": LARGEST}, item(LARGEST))]}))
    frames = framed(spark, OLD, rows, ("item", "schema", "comment"))
    made = v20_to_v21.delete_orphaned_items(frames, first)["audit_log"].toArrow().to_pylist()
    assert [(int(row["key"]["id"]), row["value"]["object_id"]) for row in made] == [(first, str(LARGEST))]


@given(store=stores(OLD, "item", "schema", "comment", "id_alloc", "timestamp"))
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_store_becomes_what_the_oracle_says(spark: SparkSession, store: Store) -> None:
    """Through the stored bytes of both versions."""
    assert run(OLD, store, spark) == oracle_v20_to_v21(store)
