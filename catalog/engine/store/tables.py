"""The opening of a store's tables: their log is made when they are first used."""

from __future__ import annotations

import os
import socket

from catalog.engine.log.place import StorePlace
from catalog.engine.schema_change.maintenance import TablesUpkeep
from catalog.engine.schema_change.names import StashNames
from catalog.engine.schema_change.signs import StoredSigns
from catalog.engine.schema_change.store import TablesStore
from catalog.engine.schema_change.tables import Tables
from catalog.engine.stash.stash import Stash


def open_tables(place: StorePlace, stash: Stash, *, is_writer: bool, leads: bool = False) -> Tables:
    """Open the tables of a store; a process that may write makes their log if there is none, and a leader folds."""
    log, generation = place.tables_log(), stash.state.fence.generation
    if is_writer:
        store = TablesStore.create(log, generation, f"{socket.gethostname()}:{os.getpid()}")
        if store.replica.fence is None:
            store.take_over(max(generation, store.state.fence.generation), "")
        store.upkeep = TablesUpkeep(folds=leads)
    else:
        store = TablesStore.open(log)
    return Tables(store, StashNames(stash), StoredSigns(place.storage))
