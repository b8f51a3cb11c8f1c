"""Maintenance of tables: files stay few, no row changes, and nothing goes that work under way still needs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from catalog.engine.log.maintenance import Policy, clean
from catalog.engine.log.protocol import AppTxn, FileKind, Operation
from catalog.engine.schema_change import maintenance
from catalog.engine.schema_change import tables_pb2 as pb
from catalog.engine.schema_change.bulk import BulkWrite
from catalog.engine.schema_change.bulk_verb import Verb
from catalog.engine.schema_change.folding import FoldingPolicy, FoldingTask
from catalog.engine.schema_change.maintenance import (
    TablesUpkeep,
    keeps_tombstones,
    oldest_needed,
    reorganise,
    with_needs,
)
from catalog.engine.schema_change.replica import BULK_WRITE, SCHEMA_CHANGE
from catalog.engine.schema_change.store import Draft, put
from catalog.errors import CorruptFileError, RetiredError
from tests.engine.schema_change.stores import Disk, Process

SMALL = FoldingPolicy(tail_files_max=3, layers_max=2)
HOUR_MS = 60 * 60 * 1000


@pytest.fixture
def member() -> Process:
    found = Disk().open()
    found.ddl("CREATE TABLE accounts (id BIGINT, owner STRING, PRIMARY KEY (id))")
    found.store.upkeep = TablesUpkeep(SMALL)
    return found


def rows_of(process: Process) -> str:
    return process.schema("accounts").collection


def files_of(process: Process, kind: FileKind) -> int:
    process.store.refresh()
    return len(process.store.state.files_of(rows_of(process), kind))


def layers(process: Process, count: int) -> None:
    """Make layers over one another, as bulk writes do."""
    for _ in range(count):
        with process.tables.transaction() as tx:
            tx.upsert("accounts", {"id": 1, "owner": f"owner {process.store.ts}"})
            tx.upsert("accounts", {"id": 2, "owner": "bob"})
        with process.store.own():
            reorganise(process.store.replica, rows_of(process), FoldingTask.SPILL)


def test_small_tail_files_are_merged_after_commits(member: Process) -> None:
    """By whoever commits, and as of every earlier ts the rows are those that were there."""
    seen = []
    for number in range(10):
        member.insert("accounts", {"id": number})
        seen.append((member.store.ts, member.rows("accounts")))
        assert files_of(member, FileKind.TAIL) <= SMALL.tail_files_max
    merges = [c for c in member.log.commits(1, member.store.ts) if c.operation is Operation.REORGANISE]
    assert merges
    assert [len(rows) for _, rows in seen] == [*range(1, 11)]
    assert [member.rows("accounts", ts) for ts, _ in seen] == [rows for _, rows in seen]


def test_a_large_tail_is_spilled(member: Process) -> None:
    """It is then no longer held in memory by every process."""
    member.store.upkeep = TablesUpkeep(replace(SMALL, tail_bytes_max=200))
    for number in range(6):
        member.insert("accounts", {"id": number, "owner": "x" * 50})
    assert files_of(member, FileKind.LAYER) > 0
    assert len(member.rows("accounts")) == 6


def test_a_leader_folds_and_a_member_does_not(member: Process) -> None:
    """A member merges and spills all the same; a collection that is too large for a commit's time is left alone."""
    layers(member, 3)
    member.insert("accounts", {"id": 3})
    assert files_of(member, FileKind.LAYER) == 3
    for upkeep, kinds in (
        (TablesUpkeep(SMALL, folds=True, fold_bytes_max=1), (3, 0)),
        (TablesUpkeep(SMALL, folds=True), (0, 1)),
    ):
        member.store.upkeep = upkeep
        member.write(lambda tx: tx.upsert("accounts", {"id": 3, "owner": "eve"}))
        member.write(lambda tx: tx.upsert("accounts", {"id": 3, "owner": None}))
        assert (files_of(member, FileKind.LAYER), files_of(member, FileKind.BASE)) == kinds
    assert [row["id"] for row in member.rows("accounts")] == [1, 2, 3]


def test_a_leader_looks_at_all_collections_with_each_checkpoint(member: Process) -> None:
    """Members leave theirs to it."""
    layers(member, 3)
    member.ddl("CREATE TABLE others (id BIGINT, PRIMARY KEY (id))")
    member.store.upkeep, member.store.policy = TablesUpkeep(SMALL, folds=True), Policy(checkpoint_every=1)
    member.insert("others", {"id": 1})
    assert files_of(member, FileKind.LAYER) == 0


def test_an_error_of_maintenance_is_none_of_the_commit(member: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows are there; what was not done is due again after the next commit."""

    def damaged(*_: object, **__: object) -> None:
        raise CorruptFileError("memory", "e1/tail", "it was changed")

    with monkeypatch.context() as patch:
        patch.setattr(maintenance, "merge_tails", damaged)
        for number in range(8):
            member.insert("accounts", {"id": number})
        assert isinstance(member.store.replica.last_error, CorruptFileError)
        assert files_of(member, FileKind.TAIL) == 8
    member.insert("accounts", {"id": 8})
    assert member.store.replica.last_error is None
    assert files_of(member, FileKind.TAIL) == 1
    assert len(member.rows("accounts")) == 9


def test_a_task_is_given_up_if_its_files_are_gone(member: Process) -> None:
    """Another process was quicker; nothing is written twice."""
    member.insert("accounts", {"id": 1})
    member.insert("accounts", {"id": 2})
    other = member.disk.open("host-2:2")
    stale = other.store.replica
    reorganise(member.store.replica, rows_of(member), FoldingTask.FOLD)
    assert not reorganise(stale, rows_of(member), FoldingTask.FOLD)
    assert files_of(member, FileKind.BASE) == 1


def test_tombstones_stay_while_an_index_is_built(member: Process) -> None:
    """Entries that are dated earlier still come; a complete index needs none."""
    member.insert("accounts", {"id": 1, "owner": "ann"}, {"id": 2, "owner": "bob"})
    change = member.submit("CREATE INDEX by_owner ON accounts (owner)")
    while (
        not any(e.name == "by_owner" for e in member.schema("accounts").elements)
        or not member.tables.change_message(change.id).read_ts
    ):
        member.owner.step(change.id)
    index = member.schema("accounts").element("by_owner")
    assert keeps_tombstones(member.store.replica, index.collection)
    assert not keeps_tombstones(member.store.replica, rows_of(member))
    member.write(lambda tx: tx.update("accounts", {"id": 1}, {"owner": "eve"}))
    with member.store.own():
        assert reorganise(member.store.replica, index.collection, FoldingTask.FOLD)
    member.owner.run(change.id)
    with member.tables.transaction() as tx:
        assert tx.find("accounts", owner="ann") == []
        assert [row["id"] for row in tx.find("accounts", owner="eve")] == [1]
    assert not keeps_tombstones(member.store.replica, index.collection)


def test_a_fold_beside_a_bulk_write_loses_none_of_its_rows(member: Process) -> None:
    """Its files are dated at the ts that it read: with a base of a later one it would derive all of them again."""
    member.insert("accounts", {"id": 1, "owner": "ann"}, {"id": 2, "owner": "bob"})
    schema = member.schema("accounts")
    number = schema.column("id").id, schema.column("owner").id
    write = BulkWrite(member.tables, schema.id, Verb.UPSERT, frozenset(number))
    write.pin()
    write.derive([{number[0]: 1, number[1]: "new"}])
    assert keeps_tombstones(member.store.replica, rows_of(member))
    member.insert("accounts", {"id": 3, "owner": "cid"})
    with member.store.own():
        assert reorganise(member.store.replica, rows_of(member), FoldingTask.FOLD)
    member.store.commit(write.draft)
    assert [row["owner"] for row in member.rows("accounts")] == ["new", "bob", "cid"]


def needing(member: Process, need: str) -> int:
    """Let a bulk write or a schema change need the present ts; return it."""
    ts = member.store.ts

    def draft(replica: object) -> Draft:
        if need == "bulk write":
            value = pb.BulkWriteValue(read_ts=ts)
            return Draft(rows={BULK_WRITE: put(replica, BULK_WRITE, pb.BulkWriteKey(id="bulk-1"), value)})  # type: ignore[arg-type]
        change = pb.SchemaChangeValue(status=pb.STATUS_PAUSED, read_ts=ts)
        return Draft(rows={SCHEMA_CHANGE: put(replica, SCHEMA_CHANGE, pb.SchemaChangeKey(id=99), change)})  # type: ignore[arg-type]

    member.store.commit(draft)
    return ts


@pytest.mark.parametrize("need", ["bulk write", "schema change"])
def test_retention_never_passes_what_is_still_read(member: Process, need: str) -> None:
    """However old that is; once it is over, all of it goes."""
    member.insert("accounts", {"id": 1})
    ts, rows = needing(member, need), member.rows("accounts")
    for number in range(2, 9):
        member.disk.memory.now_ms += HOUR_MS
        member.insert("accounts", {"id": number})
    policy = Policy(retention_ms=HOUR_MS, orphan_ms=HOUR_MS)
    assert oldest_needed(member.store.view) == ts
    member.store.policy = replace(policy, checkpoint_every=1, clean_every=1)
    member.insert("accounts", {"id": 9})
    member.store.policy = Policy()
    assert member.store.replica.last_error is None
    assert member.store.state.app_txns[AppTxn.FRONTIER] == ts
    assert member.rows("accounts", ts) == rows

    def over(replica: object) -> Draft:
        if need == "bulk write":
            return Draft(rows={BULK_WRITE: put(replica, BULK_WRITE, pb.BulkWriteKey(id="bulk-1"), None)})  # type: ignore[arg-type]
        change = pb.SchemaChangeValue(status=pb.STATUS_CANCELLED, read_ts=ts)
        return Draft(rows={SCHEMA_CHANGE: put(replica, SCHEMA_CHANGE, pb.SchemaChangeKey(id=99), change)})  # type: ignore[arg-type]

    member.store.commit(over)
    member.disk.memory.now_ms += 2 * HOUR_MS
    clean(member.log, member.store.state, with_needs(policy, member.store.view.cache))
    member.store.refresh()
    assert member.store.state.frontier > ts
    with pytest.raises(RetiredError):
        member.rows("accounts", ts)


def test_files_of_a_long_bulk_write_are_not_swept(member: Process) -> None:
    """They are younger than the ts that it reads, whatever their age."""
    schema = member.schema("accounts")
    number = schema.column("id").id
    write = BulkWrite(member.tables, schema.id, Verb.APPEND, frozenset({number}))
    write.pin()
    write.derive([{number: 7}])
    member.disk.memory.now_ms += 100 * HOUR_MS
    policy = with_needs(Policy(retention_ms=0, orphan_ms=0), member.store.view.cache)
    clean(member.log, member.store.state, policy)
    member.store.commit(write.draft)
    assert [row["id"] for row in member.rows("accounts")] == [7]
