"""The layout of a store: the folders of its logs, and the ids of its shards."""

from __future__ import annotations

import re
import uuid

from catalog.engine.storage.base import Storage
from catalog.errors import UnfitShardIdError

STASH = "stash"
"""The folder of the stash, a log."""
SHARDS = "shards"
"""The folder of the shards, each a log of its own."""

TABLES = "tables"
"""The folder of the tables, one log."""


def stash_uri(store: str) -> str:
    return f"{store.rstrip('/')}/{STASH}"


def shard_uri(store: str, shard_id: str) -> str:
    """Return the address of a shard; refuse an id that would name anything outside of the store."""
    if not is_shard_id(shard_id):
        raise UnfitShardIdError(shard_id)
    return f"{store.rstrip('/')}/{SHARDS}/{shard_id.removeprefix(f'{SHARDS}/')}"


def tables_uri(store: str) -> str:
    return f"{store.rstrip('/')}/{TABLES}"


def is_shard_id(text: str) -> bool:
    """Tell if a text names a folder among the shards of a store, by its path within the store or alone."""
    return re.fullmatch(rf"(?:{SHARDS}/)?[A-Za-z0-9_-]+", text) is not None


def shard_ids(storage: Storage) -> frozenset[str]:
    """List the shards that a store has, used or not."""
    return frozenset(path.split("/")[1] for path in storage.paths(SHARDS))


def has_tables(storage: Storage) -> bool:
    """Tell if a store has a log of tables, which is made when they are first used."""
    return next(iter(storage.paths(TABLES)), None) is not None


def new_shard_id() -> str:
    return f"s{uuid.uuid4().hex}"
