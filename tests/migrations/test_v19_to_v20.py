"""v19_to_v20: the replicas of a cluster become rows of their own, with ids."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.migrations.generated_stores import stores
from tests.migrations.oracles import oracle_v19_to_v20
from tests.migrations.plain import Plain, Row, Store, store_of
from tests.migrations.steps import run

OLD, NEW = 19, 20
SIZE = {"executors": 1, "cores": 2**32 - 1, "memory_mib": 2**64 - 1}
NO_SIZE = {"executors": 0, "cores": 0, "memory_mib": 0}


@given(stores(OLD, "cluster", "id_alloc"))
@settings(deadline=None)
def test_every_collection_becomes_what_the_oracle_says(store: Store) -> None:
    """Through the stored bytes of both versions."""
    assert run(OLD, store) == oracle_v19_to_v20(store)


def cluster(**members: object) -> Plain:
    return {"name": "c", "master": "m", "spark_conf": [{"name": "a", "value": ""}], **members}


def test_replicas_become_rows_with_the_owner_of_their_cluster() -> None:
    """A size that is all zeros is a size; one that is absent stays absent, and so does an owner."""
    owner = {"system": 2}
    replicas: list[Plain] = [{"name": "r1", "size": SIZE}, {"name": "", "size": NO_SIZE}, {"name": "r1"}]
    old = [
        ({"id": 1}, cluster(owner_id=owner, replicas=replicas)),
        ({"id": 2}, cluster(owner_id=owner, replicas=[])),
        ({"id": 3}, cluster(replicas=replicas[:1])),
    ]
    moved = [{**replica, "cluster_id": 1, "owner_id": owner} for replica in replicas]
    moved.append({"name": "r1", "cluster_id": 3, "size": SIZE})
    assert run(OLD, store_of(OLD, {"cluster": old})) == store_of(
        NEW,
        {
            "cluster": [
                ({"id": 1}, cluster(owner_id=owner)),
                ({"id": 2}, cluster(owner_id=owner)),
                ({"id": 3}, cluster()),
            ],
            "cluster_replica": [({"id": number}, value) for number, value in enumerate(moved, start=1)],
            "id_alloc": [({"name": "cluster_replica"}, {"next_id": 5})],
        },
    )


@pytest.mark.parametrize(("allocator", "first"), [(None, 1), (1, 1), (41, 41), (2**63, 2**63)])
def test_ids_go_on_from_the_allocator_in_the_order_of_the_stored_keys(allocator: int | None, first: int) -> None:
    """By the bytes of the key, 256 comes before 129; the allocator is left with the next free id."""
    numbers = [129, 2**64 - 1, 256, 2, 1]
    rows: dict[str, list[Row]] = {
        "cluster": [({"id": n}, cluster(replicas=[{"name": "a"}, {"name": "b"}])) for n in numbers],
        "id_alloc": [({"name": "cluster"}, {"next_id": 3})],
    }
    if allocator is not None:
        rows["id_alloc"].append(({"name": "cluster_replica"}, {"next_id": allocator}))
    new = run(OLD, store_of(OLD, rows))
    given = {key["id"]: (value["cluster_id"], value["name"]) for key, value in new["cluster_replica"].values()}
    ordered = [(n, name) for n in (1, 2, 256, 129, 2**64 - 1) for name in ("a", "b")]
    assert given == dict(enumerate(ordered, start=first))
    assert {key["name"]: value["next_id"] for key, value in new["id_alloc"].values()} == {
        "cluster": 3,
        "cluster_replica": first + 10,
    }
