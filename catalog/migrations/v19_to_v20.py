"""Version 19 to 20: the replicas of a cluster become rows of their own, with ids.

For whom: every store whose clusters have replicas. Why: a replica had no identity but its place in a list,
so nothing could refer to one, rename it or own it, and adding one rewrote the cluster.

`cluster_replica` is created. `cluster` is rewritten without `replicas`, everything else in it unchanged.
For each replica there comes a row with the id of its cluster, its name and its size, whose owner is the
owner of the cluster. A cluster without replicas makes none. A replica whose size is not set has none
afterwards.

Ids come from the allocator "cluster_replica", dense, in the order of the clusters' keys and then of the
list, so that every run of the step gives the same ones. Keys are in the order of their stored bytes, which
is not that of the numbers: as bytes, 256 comes before 129. Up to version 19 there need not be an allocator of
that name: without its row in `id_alloc` ids start at 1. The step leaves the row with the next free id.
"""

from collections.abc import Iterator

from catalog.actions import Action, create, per_row
from catalog.generated import objects_v19_pb2 as v19
from catalog.generated import objects_v20_pb2 as v20


def upgrade() -> list[Action]:
    """Declare the step: clusters, row by row, into themselves and their replicas."""
    return [
        create("cluster_replica"),
        per_row("cluster", move_replicas, into=("cluster_replica",), ids="cluster_replica"),
    ]


def move_replicas(
    key: v19.ClusterKey, value: v19.ClusterValue, ids: Iterator[int]
) -> Iterator[tuple[v20.ClusterKey, v20.ClusterValue] | tuple[v20.ClusterReplicaKey, v20.ClusterReplicaValue]]:
    """Yield the cluster without its replicas, then each replica in order, with the next id and the owner."""
    cluster = v20.ClusterValue.FromString(value.SerializeToString())
    cluster.DiscardUnknownFields()  # the replicas; nothing else has a number that v20 does not know
    yield v20.ClusterKey(id=key.id), cluster
    for replica in value.replicas:
        moved = v20.ClusterReplicaValue(cluster_id=key.id, name=replica.name)
        if cluster.HasField("owner_id"):
            moved.owner_id.CopyFrom(cluster.owner_id)
        if replica.HasField("size"):
            moved.size.CopyFrom(v20.ReplicaSize.FromString(replica.size.SerializeToString()))
        yield v20.ClusterReplicaKey(id=next(ids)), moved
