"""v15_to_v16: what a role may create becomes one set of bits."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings

from tests.migrations.generated_stores import stores
from tests.migrations.oracles import oracle_v15_to_v16
from tests.migrations.plain import Store, store_of
from tests.migrations.steps import run

OLD, NEW = 15, 16


@given(stores(OLD, "role"))
@settings(deadline=None)
def test_roles_become_what_the_oracle_says(store: Store) -> None:
    """Through the stored bytes of both versions."""
    assert run(OLD, store) == oracle_v15_to_v16(store)


def test_the_bits_are_1_for_databases_2_for_roles_and_4_for_clusters() -> None:
    """Every combination, for public, system and user roles alike."""
    old, new = [], []
    for id_, (db, role, cluster) in enumerate(product([False, True], repeat=3), start=1):
        value = {"name": f"r{id_}", "member_of": [1000, 2] if db else []}
        old.append(({"id": id_ * 500}, value | {"create_db": db, "create_role": role, "create_cluster": cluster}))
        new.append(({"id": id_ * 500}, value | {"permissions": [0, 4, 2, 6, 1, 5, 3, 7][id_ - 1]}))
    assert run(OLD, store_of(OLD, {"role": old})) == store_of(NEW, {"role": new})
