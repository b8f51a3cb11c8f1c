"""Transactions by number, and what a store holds after each: rows of three collections that must agree."""

from __future__ import annotations

import time

from catalog.constraints import CONSTRAINTS
from catalog.engine.log.maintenance import Policy
from catalog.engine.log.protocol import Log
from catalog.engine.stash.compaction import CompactionPolicy
from catalog.engine.stash.registry import Registry
from catalog.engine.stash.stash import Stash
from catalog.engine.stash.transaction import Transaction
from catalog.engine.stash.view import View
from catalog.generated import objects_pb2 as types

REGISTRY = Registry.of(types)
EAGER = Policy(checkpoint_every=3, clean_every=6, retention_ms=150, orphan_ms=50)
SHAPE = CompactionPolicy(tail_files_max=3)
OWNER = types.RoleKey(id=types.RoleId(user=1000))
_KEPT = 8
"""Databases that are there at once; older ones are removed."""

PREPARED = 6
"""Transactions in a prepared store."""

Rows = dict[str, str]


def open_stash(log: Log) -> Stash:
    stash = Stash.open(log, REGISTRY, CONSTRAINTS, EAGER)
    stash.compaction = SHAPE
    return stash


def prepare(log: Log) -> None:
    """A store where every path that writes has something to do: commits, checkpoints, a due frontier, an orphan."""
    log.create("made")
    stash = open_stash(log)
    stash.policy, stash.compaction = Policy(), CompactionPolicy()
    stash.take_over(1, "first")
    for number in range(1, PREPARED + 1):
        with stash.transaction() as tx:
            transact(tx, number)
        if number in {2, 3, 4}:
            log.checkpoint(stash.ts)
    stash.consolidate("role")
    file = next(iter(stash.state.files.values()))
    log.write(file.collection, file.kind, stash.state.fence, log.read(file))
    time.sleep(EAGER.retention_ms / 1000)


def transact(tx: Transaction, number: int) -> None:
    """Transaction `number`: count, rename the owner, add a database and remove an old one."""
    tx.upsert(types.SettingKey(name="count"), types.SettingValue(value=str(number)))
    tx.upsert(OWNER, types.RoleValue(name=f"owner {number}"))
    tx.insert(types.DatabaseKey(id=number), types.DatabaseValue(name=f"database {number}", owner_id=OWNER.id))
    if number > _KEPT:
        tx.delete(types.DatabaseKey(id=number - _KEPT))


def rows_after(number: int) -> Rows:
    """What a store holds after so many transactions."""
    if number == 0:
        return {}
    names = (f"database {kept}" for kept in range(max(1, number - _KEPT + 1), number + 1))
    return {"count": str(number), "role 1000": f"owner {number}"} | {name: name for name in names}


def rows_of(view: View) -> Rows:
    """What a store holds, in the same form."""
    counts = {_setting(key): types.SettingValue.FromString(value).value for key, value in view.rows("setting")}
    roles = {_role(key): types.RoleValue.FromString(value).name for key, value in view.rows("role")}
    databases = {_database(key): types.DatabaseValue.FromString(value).name for key, value in view.rows("database")}
    return counts | roles | databases


def count_of(view: View) -> int:
    """How many transactions a store says that it has seen."""
    return int(rows_of(view).get("count", "0"))


def _setting(key: bytes) -> str:
    return types.SettingKey.FromString(key).name


def _role(key: bytes) -> str:
    return f"role {types.RoleKey.FromString(key).id.user}"


def _database(key: bytes) -> str:
    return f"database {types.DatabaseKey.FromString(key).id}"
