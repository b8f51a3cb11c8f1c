"""Entries of the migration shard: a start reads them only if they may have changed since they were last cleared."""

from __future__ import annotations

from pathlib import Path

import pytest

from catalog.engine.base.fence import Fence
from catalog.engine.base.project import BuildVersion
from catalog.engine.builtins.replacement_shards import ReplacementShards
from catalog.engine.log.place import StorePlace
from catalog.engine.storage.layout import new_shard_id
from catalog.engine.store.catalog import Mode
from catalog.engine.store.leadership import LeadershipOptions
from catalog.engine.store.open import open_store
from catalog.upgrade import PROJECT

EARLIER = BuildVersion(0, 1)


def start(place: StorePlace) -> None:
    open_store(place, Mode.LEADER, LeadershipOptions()).close()


def test_an_entry_that_comes_later_is_cleared_by_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start that finds none records that; the next reads none, until there is a newer one."""
    place = StorePlace.at(PROJECT, tmp_path / "store")
    start(place)
    entries = ReplacementShards(place.shard_log, Fence(0, 0))
    with monkeypatch.context() as patched:
        patched.setattr(ReplacementShards, "_at", lambda *_: pytest.fail("entries were read"))
        start(place)
    entries.own([10**6], EARLIER, frozenset(), new_shard_id)
    assert EARLIER in {entry.build for entry in entries.read()}
    start(place)
    assert EARLIER not in {entry.build for entry in entries.read()}
