"""Ids: none is given out twice, none beyond their range, and none by a name that nobody meant."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from catalog import open_catalog
from catalog.engine.builtins.declaration import BuiltinName
from catalog.engine.builtins.mapping_rows import MappingRows
from catalog.engine.stash.engine_rows import ID_MAX
from catalog.errors import AllocatorSetBackError, IdsExhaustedError, UnknownAllocatorError
from catalog.objects import IdAllocKey, IdAllocValue

THREADS, EACH = 8, 200


def test_threads_never_get_an_id_twice(tmp_path: Path) -> None:
    """Across the ends of blocks too, and from two catalogs at once."""
    with open_catalog(tmp_path / "store") as leader, open_catalog(tmp_path / "store", "member") as member:
        ready = Barrier(THREADS)

        def take(number: int) -> list[int]:
            ready.wait()
            cat = (leader, member)[number % 2]
            return [cat.allocate("item") for _ in range(EACH)]

        with ThreadPoolExecutor(THREADS) as pool:
            given = [id_ for own in pool.map(take, range(THREADS)) for id_ in own]
    assert len(given) == len(set(given)) == THREADS * EACH


@pytest.mark.parametrize(
    ("name", "close"), [("itme", "item"), ("Role", "role"), ("cluster-replica", "cluster_replica")]
)
def test_a_mistyped_allocator_is_refused_with_the_one_that_was_meant(tmp_path: Path, name: str, close: str) -> None:
    """It would count from 1, and give ids out that others have."""
    with open_catalog(tmp_path / "store") as cat:
        before = cat.ts
        with pytest.raises(UnknownAllocatorError, match=rf"did you mean {close}\?") as caught:
            cat.allocate(name)
        assert cat.refresh() == before
        assert name not in {key.name for key, _ in cat.rows(IdAllocKey)}
    assert "item" in caught.value.known


@pytest.mark.parametrize("name", ["", "config", "fence_token", "migration_event", "id_alloc", "ticket"])
def test_a_name_of_no_collection_has_no_ids(tmp_path: Path, name: str) -> None:
    """The engine's own collections have none either."""
    with open_catalog(tmp_path / "store") as cat, pytest.raises(UnknownAllocatorError):
        cat.allocate(name)


def test_every_collection_and_every_row_of_id_alloc_is_an_allocator(tmp_path: Path) -> None:
    """A collection begins at 1 without a row; any other name is declared by its row, in another process too."""
    with open_catalog(tmp_path / "store") as cat, open_catalog(tmp_path / "store", "member") as member:
        assert (cat.allocate("role"), cat.allocate("comment")) == (1000, 1)
        with member.transaction() as tx:
            tx.insert(IdAllocKey(name="ticket"), IdAllocValue(next_id=500))
        assert cat.allocate("ticket") == 500


@pytest.mark.parametrize("following", [ID_MAX, ID_MAX - 1, ID_MAX - 63])
def test_an_allocator_that_would_overflow_is_refused_before(tmp_path: Path, following: int) -> None:
    """With an error that names it; nothing is written, and the others go on."""
    with open_catalog(tmp_path / "store") as cat:
        with cat.transaction() as tx:
            tx.update(IdAllocKey(name="item"), IdAllocValue(next_id=following))
        before = cat.ts
        with pytest.raises(IdsExhaustedError, match=f"the allocator item has no 64 ids left: its next is {following}"):
            cat.allocate("item")
        assert cat.refresh() == before
        assert cat.allocate("schema") == 4


def test_the_last_ids_are_given_out(tmp_path: Path) -> None:
    """The whole range is used."""
    with open_catalog(tmp_path / "store") as cat:
        with cat.transaction() as tx:
            tx.update(IdAllocKey(name="item"), IdAllocValue(next_id=ID_MAX - 64))
        assert [cat.allocate("item") for _ in range(64)] == list(range(ID_MAX - 64, ID_MAX))


def test_builtins_get_no_id_beyond_the_range(tmp_path: Path) -> None:
    """The engine takes ids too, from the same allocator."""
    with open_catalog(tmp_path / "store") as cat:
        with cat.transaction() as tx:
            tx.update(IdAllocKey(name="item"), IdAllocValue(next_id=ID_MAX))
        with pytest.raises(IdsExhaustedError), cat.transaction() as tx:
            MappingRows(tx).name([BuiltinName("catalog", 1, "new")])


def test_an_allocator_at_zero_begins_at_one(tmp_path: Path) -> None:
    """Zero is never an id, whatever a row says."""
    with open_catalog(tmp_path / "store") as cat:
        with cat.transaction() as tx:
            tx.insert(IdAllocKey(name="ticket"), IdAllocValue())
        assert cat.allocate("ticket") == 1


@pytest.mark.parametrize("verb", ["update", "upsert", "delete"])
def test_an_allocator_is_never_set_back(tmp_path: Path, verb: str) -> None:
    """The ids below were given out. It can be moved on: gaps are allowed."""
    key = IdAllocKey(name="role")
    with open_catalog(tmp_path / "store") as cat:
        taken, before = cat.allocate("role"), cat.ts
        with pytest.raises(AllocatorSetBackError, match="the allocator role cannot be"), cat.transaction() as tx:
            getattr(tx, verb)(key, *([] if verb == "delete" else [IdAllocValue(next_id=taken)]))
        assert cat.refresh() == before
        with cat.transaction() as tx:
            tx.update(key, IdAllocValue(next_id=5000))
        with open_catalog(tmp_path / "store", "member") as other:
            assert other.allocate("role") == 5000


def test_an_allocator_made_in_the_same_transaction_is_free(tmp_path: Path) -> None:
    """Nobody has an id of it yet."""
    with open_catalog(tmp_path / "store") as cat:
        with cat.transaction() as tx:
            tx.insert(IdAllocKey(name="ticket"), IdAllocValue(next_id=9))
            tx.update(IdAllocKey(name="ticket"), IdAllocValue(next_id=3))
        assert cat.allocate("ticket") == 3
