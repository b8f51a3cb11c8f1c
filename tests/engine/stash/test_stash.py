"""Transactions, fences, time and consolidation: the same promises on every log."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from google.protobuf.message import Message

from catalog.constraints import CONSTRAINTS
from catalog.engine.base.fence import Fence
from catalog.engine.log.protocol import FileKind
from catalog.engine.stash.registry import Registry
from catalog.engine.stash.stash import Stash
from catalog.engine.stash.transaction import Transaction
from catalog.errors import (
    ConstraintError,
    DanglingReferenceError,
    DuplicateError,
    FencedError,
    KeyExistsError,
    NoSuchRowError,
    StaleGenerationError,
    TransactionConflictError,
    UnknownCollectionError,
    ValueTypeError,
)
from catalog.generated import objects_pb2 as types
from tests.engine.log.places import Place

REGISTRY = Registry.of(types)
ANN = types.RoleId(user=1000)


def open_stash(place: Place) -> Stash:
    log = place.open()
    log.create("made")
    return Stash.open(log, REGISTRY, CONSTRAINTS)


@pytest.fixture
def stash(place: Place) -> Stash:
    """A stash that this process leads, with a role, a database and a schema."""
    stash = open_stash(place)
    stash.take_over(1, "test")
    with stash.transaction() as tx:
        tx.insert(types.RoleKey(id=ANN), types.RoleValue(name="ann"))
        tx.insert(types.DatabaseKey(id=1), types.DatabaseValue(name="sales", owner_id=ANN))
        tx.insert(types.SchemaKey(id=1), types.SchemaValue(database_id=1, name="public", owner_id=ANN))
    return stash


def item(number: int, name: str | None = None, schema: int = 1) -> tuple[types.ItemKey, types.ItemValue]:
    value = types.ItemValue(schema_id=schema, name=name or f"t{number}", owner_id=ANN, kind=types.ITEM_KIND_TABLE)
    return types.ItemKey(id=number), value


def names(stash: Stash, as_of: int | None = None) -> list[str]:
    return [types.ItemValue.FromString(value).name for _, value in stash.view(as_of).rows("item")]


def test_a_transaction_is_seen_whole_or_not_at_all(stash: Stash, place: Place) -> None:
    """Rows of several collections arrive with one ts."""
    before = stash.ts
    with stash.transaction() as tx:
        tx.insert(*item(1))
        tx.update(types.RoleKey(id=ANN), types.RoleValue(name="anna"))
        assert tx.get(types.ItemKey(id=1)) == item(1)[1]
        assert [value.name for _, value in tx.rows(types.RoleKey)] == ["anna"]  # type: ignore[attr-defined]
    assert stash.ts == before + 1
    other = open_stash(place)
    assert names(other) == ["t1"]
    assert names(other, as_of=before) == []


def test_an_exception_leaves_nothing_behind(stash: Stash) -> None:
    """A transaction that fails half way never happened."""
    before = stash.ts

    def fail_half_way() -> None:
        with stash.transaction() as tx:
            tx.insert(*item(1))
            raise KeyError

    with pytest.raises(KeyError):
        fail_half_way()
    assert (stash.refresh(), names(stash)) == (before, [])


def test_a_transaction_that_changes_nothing_commits_nothing(stash: Stash) -> None:
    """A row that ends as it began leaves no trace."""
    before = stash.ts
    with stash.transaction() as tx:
        tx.insert(*item(1))
        tx.delete(types.ItemKey(id=1))
        tx.upsert(types.RoleKey(id=ANN), types.RoleValue(name="ann"))
    assert stash.refresh() == before


def insert_all(tx: Transaction, *rows: tuple[Message, Message]) -> None:
    for key, value in rows:
        tx.insert(key, value)


MISTAKES: dict[str, tuple[Callable[[Transaction], object], type[ConstraintError], str]] = {
    "insert of a key that is there": (
        lambda tx: tx.insert(types.RoleKey(id=ANN), types.RoleValue(name="x")),
        KeyExistsError,
        "`role` already has a row",
    ),
    "update of a key that is not": (lambda tx: tx.update(*item(9)), NoSuchRowError, '`item` has no row {"id": 9}'),
    "delete of a key that is not": (
        lambda tx: tx.delete(types.ItemKey(id=9)),
        NoSuchRowError,
        '`item` has no row {"id": 9}',
    ),
    "a value of another collection": (
        lambda tx: tx.insert(types.ItemKey(id=9), types.RoleValue()),
        ValueTypeError,
        "a row of `item` cannot hold a catalog.objects.RoleValue",
    ),
    "two names alike": (
        lambda tx: insert_all(tx, item(1, "same"), item(2, "same")),
        DuplicateError,
        'rows of `item` would have the same value.schema_id, value.name: {"id": 1}; {"id": 2}',
    ),
    "a name that is taken": (
        lambda tx: tx.insert(types.DatabaseKey(id=2), types.DatabaseValue(name="sales", owner_id=ANN)),
        DuplicateError,
        'rows of `database` would have the same value.name: {"id": 1}; {"id": 2}',
    ),
    "a reference to nothing": (
        lambda tx: tx.insert(*item(1, schema=7)),
        DanglingReferenceError,
        'value.schema_id of `item` {"id": 1} would refer to `schema` {"id": 7}, which would not exist',
    ),
    "removing what is referred to": (
        lambda tx: tx.delete(types.DatabaseKey(id=1)),
        DanglingReferenceError,
        'value.database_id of `schema` {"id": 1} would refer to `database` {"id": 1}',
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_refused_by_name_and_changes_nothing(stash: Stash, mistake: str) -> None:
    """The error names the rows, and nothing is committed."""
    act, error, words = MISTAKES[mistake]
    before = stash.ts
    with pytest.raises(error) as caught, stash.transaction() as tx:
        act(tx)
    assert words in str(caught.value)
    assert stash.refresh() == before


def test_a_row_and_what_refers_to_it_may_go_together(stash: Stash) -> None:
    """Constraints hold for the end of a transaction, not for its middle."""
    with stash.transaction() as tx:
        tx.delete(types.DatabaseKey(id=1))
        tx.delete(types.SchemaKey(id=1))
        tx.delete(types.RoleKey(id=ANN))
    assert [list(stash.view().rows(name)) for name in ("role", "database", "schema")] == [[], [], []]


def test_a_name_may_pass_from_one_row_to_another(stash: Stash) -> None:
    """Swapping two unique names in one transaction is fine."""
    with stash.transaction() as tx:
        tx.insert(*item(1, "a"))
        tx.insert(*item(2, "b"))
    with stash.transaction() as tx:
        tx.update(*item(1, "b"))
        tx.update(*item(2, "a"))
    assert names(stash) == ["b", "a"]


def test_an_unknown_type_is_no_key(stash: Stash) -> None:
    """A message that names no collection is refused with the one that was meant."""
    with pytest.raises(UnknownCollectionError, match="did you mean role"), stash.transaction() as tx:
        tx.get(types.RoleId(user=1))


def two(place: Place) -> tuple[Stash, Stash]:
    """A leader and a member that see the same rows."""
    leader, member = open_stash(place), open_stash(place)
    leader.take_over(1, "leader")
    member.join()
    return leader, member


def begin(stash: Stash) -> Transaction:
    stash.refresh()
    return Transaction(REGISTRY, stash.view())


def setting(name: str, value: str) -> tuple[Message, Message]:
    return types.SettingKey(name=name), types.SettingValue(value=value)


def test_transactions_on_other_rows_both_land(place: Place) -> None:
    """A lost race over nothing in common is retried inside, unseen."""
    leader, member = two(place)
    one, other = begin(leader), begin(member)
    one.insert(*setting("a", "1"))
    other.insert(*setting("b", "2"))
    leader.commit(one)
    member.commit(other)
    assert len(list(member.view().rows("setting"))) == 2


def test_transactions_on_one_row_do_not_both_land(place: Place) -> None:
    """The second of two that read the same row learns it."""
    leader, member = two(place)
    with leader.transaction() as tx:
        tx.insert(*setting("a", "0"))
    one, other = begin(leader), begin(member)
    one.update(*setting("a", "1"))
    other.update(*setting("a", "2"))
    leader.commit(one)
    with pytest.raises(TransactionConflictError, match="run the transaction again"):
        member.commit(other)
    assert member.view().get("setting", types.SettingKey(name="a").SerializeToString()) == b"\n\x011"


@pytest.mark.parametrize("reads", ["key", "scan"])
def test_write_skew_never_commits_both(place: Place, reads: str) -> None:
    """Two transactions that each read what the other writes: one of them is refused."""
    leader, member = two(place)

    def prepare(stash: Stash, own: str, others: str) -> Transaction:
        tx = begin(stash)
        if reads == "key":
            assert tx.get(types.SettingKey(name=others)) is None
        else:
            assert list(tx.rows(types.SettingKey)) == []
        tx.insert(*setting(own, "on duty"))
        return tx

    one, other = prepare(leader, "a", "b"), prepare(member, "b", "a")
    leader.commit(one)
    with pytest.raises(TransactionConflictError):
        member.commit(other)


def test_a_name_taken_meanwhile_is_noticed(place: Place) -> None:
    """Constraints are checked again on what others have committed."""
    leader, member = two(place)
    with leader.transaction() as tx:
        tx.insert(types.RoleKey(id=ANN), types.RoleValue(name="ann"))
    one, other = begin(leader), begin(member)
    one.insert(types.RoleKey(id=types.RoleId(user=1001)), types.RoleValue(name="bob"))
    other.insert(types.RoleKey(id=types.RoleId(user=1002)), types.RoleValue(name="bob"))
    leader.commit(one)
    with pytest.raises(DuplicateError, match='"user": 1001'):
        member.commit(other)


def test_a_new_leader_fences_everyone_before_it(place: Place) -> None:
    """Whoever is fenced learns it at its next commit or refresh, and cannot write again."""
    leader, member = two(place)
    late = begin(leader)
    late.insert(*setting("a", "1"))
    newer = open_stash(place)
    assert newer.take_over(2, "newer") == Fence(2, 2)
    for stash in (leader, member):
        with pytest.raises(FencedError, match="a retry cannot succeed"):
            stash.commit(late)
        with pytest.raises(FencedError):
            stash.commit(late)
    assert list(newer.view().rows("setting")) == []


def test_an_older_generation_is_refused_and_writes_nothing(place: Place) -> None:
    """An older deployment never takes over from a newer one."""
    newer = open_stash(place)
    newer.take_over(5, "newer")
    before = newer.ts
    with pytest.raises(StaleGenerationError, match="cannot lead with deploy generation 4"):
        open_stash(place).take_over(4, "older")
    assert newer.refresh() == before


def test_consolidation_changes_files_and_no_row(stash: Stash) -> None:
    """Now and at every earlier ts, the rows are what they were."""
    history = {}
    for number in range(1, 41):
        with stash.transaction() as tx:
            tx.insert(*item(number))
            if number % 3 == 0:
                tx.delete(types.ItemKey(id=number - 1))
        history[stash.ts] = names(stash)
    stash.consolidate("item")
    files = [file for file in stash.state.files.values() if file.collection == "item"]
    assert [file.kind for file in files] == [FileKind.BASE]
    assert names(stash) == names(open_again(stash)) == history[max(history)]
    assert {ts: names(stash, as_of=ts) for ts in history} == history


def test_many_small_files_are_merged_on_their_own(stash: Stash) -> None:
    """The number of live files stays bounded, however many commits there are."""
    for number in range(60):
        with stash.transaction() as tx:
            tx.upsert(*setting(f"s{number % 7}", str(number)))
    live = [file for file in stash.state.files.values() if file.collection == "setting"]
    assert len(live) <= stash.compaction.tail_files_max + 1
    assert stash.last_error is None
    assert len(list(open_again(stash).view().rows("setting"))) == 7


def test_a_feed_reproduces_the_rows_from_any_ts(stash: Stash) -> None:
    """What a subscriber adds up equals what is stored; consolidation yields nothing."""
    for number in range(1, 8):
        with stash.transaction() as tx:
            tx.upsert(*setting(f"s{number % 3}", str(number)))
        if number == 4:
            stash.consolidate("setting")
    for since in range(stash.ts):
        rows = {types.SettingKey.FromString(key).name: value for key, value in stash.view(since).rows("setting")}
        for key, value, ts, diff in stash.subscribe(types.SettingKey, since):
            assert since < ts <= stash.ts
            assert isinstance(key, types.SettingKey)
            if diff > 0:
                rows[key.name] = value.SerializeToString()
            elif rows.get(key.name) == value.SerializeToString():
                del rows[key.name]
        assert rows == {types.SettingKey.FromString(k).name: v for k, v in stash.view().rows("setting")}


def open_again(stash: Stash) -> Stash:
    return Stash.open(stash.log, REGISTRY, CONSTRAINTS)
