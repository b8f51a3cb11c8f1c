"""Wrong calls: each a CatalogError in three lines that says what was meant."""

from __future__ import annotations

import sys
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message

from catalog import open_catalog
from catalog.engine.stash.transaction import Transaction
from catalog.engine.store.catalog import Catalog
from catalog.errors import (
    CatalogError,
    ClosedError,
    MissingClientError,
    NoAddressError,
    NoSuchMemberError,
    NotAFolderError,
    TransactionEndedError,
    UnknownCollectionError,
    WrongArgumentError,
)
from catalog.generated import objects_v21_pb2 as earlier
from catalog.objects import DatabaseKey, RoleId, RoleKey, RoleValue

ANN, VALUE = RoleKey(id=RoleId(user=1000)), RoleValue(name="ann")
Call = Callable[[Any, Any], object]


class Unshown:
    def __repr__(self) -> str:
        raise ZeroDivisionError


class Unpathed(PathLike[str]):
    def __fspath__(self) -> str:
        raise ZeroDivisionError


IN_A_TRANSACTION: dict[str, tuple[Call, str, str]] = {
    "a dict for a key": (
        lambda _, tx: tx.insert({"id": 1}, VALUE),
        "tx.insert takes a key, and was given the dict {'id': 1}",
        "pass a message, such as AuditLogKey(...)",
    ),
    "none for a key": (lambda _, tx: tx.get(None), "tx.get takes a key, and was given None", "pass a message"),
    "a type for a key": (
        lambda _, tx: tx.delete(RoleKey),
        "tx.delete takes a key, and was given the type RoleKey",
        "pass one key, such as RoleKey(...)",
    ),
    "a name for a key": (lambda _, tx: tx.get("role"), "takes a key, and was given the str 'role'", "pass a message"),
    "a dict for a value": (
        lambda _, tx: tx.upsert(ANN, {"name": "ann"}),
        "tx.upsert takes a RoleValue, and was given the dict {'name': 'ann'}",
        "pass a message, RoleValue(...)",
    ),
    "none for a value": (
        lambda _, tx: tx.insert(ANN, None),
        "tx.insert takes a RoleValue, and was given None",
        "`delete` removes a row",
    ),
    "a type for a value": (
        lambda _, tx: tx.insert(ANN, RoleValue),
        "tx.insert takes a RoleValue, and was given the type RoleValue",
        "pass a message, RoleValue(...)",
    ),
    "a name for a type": (
        lambda _, tx: tx.rows("role"),
        "tx.rows takes a type of keys, and was given the str 'role'",
        "pass the type of its keys, RoleKey",
    ),
    "an instance for a type": (
        lambda _, tx: tx.rows(ANN),
        'tx.rows takes a type of keys, and was given the RoleKey {"id": {"user": 1000}}',
        "pass the type, RoleKey",
    ),
    "none for a type": (lambda _, tx: tx.rows(None), "takes a type of keys, and was given None", "pass a type"),
    "no type": (lambda _, tx: tx.rows(Message), "was given the type Message", "pass a type, such as AuditLogKey"),
    "key and value swapped": (
        lambda _, tx: tx.insert(VALUE, ANN),
        'tx.insert takes a key, and was given the RoleValue {"name": "ann"',
        "pass the key, RoleKey, as the first argument; RoleValue is the value of a row",
    ),
    "a value's type": (lambda _, tx: tx.rows(RoleValue), "was given the type RoleValue", "pass the key, RoleKey"),
    "a key of an earlier version": (
        lambda _, tx: tx.get(earlier.RoleKey()),
        "tx.get takes a key, and was given the RoleKey {} of catalog.generated.objects_v21_pb2",
        "pass RoleKey of catalog.generated.objects_pb2, the types of this version",
    ),
    "no value": (
        lambda _, tx: tx.insert(ANN),
        "tx.insert takes key, value, and was given no value",
        "call it as tx.insert(key, value)",
    ),
    "a value to delete": (
        lambda _, tx: tx.delete(ANN, VALUE),
        "tx.delete takes key, and was given 2 values without a name",
        "call it as tx.delete(key)",
    ),
    "fields by name": (
        lambda _, tx: tx.upsert(ANN, name="ann"),
        "tx.upsert takes key, value, and was given name",
        "call it as tx.upsert(key, value)",
    ),
    "a ts in a transaction": (lambda _, tx: tx.rows(RoleKey, as_of=1), "was given as_of", "tx.rows(key_type)"),
    "an argument twice": (lambda _, tx: tx.get(ANN, key=ANN), "was given key twice", "call it as tx.get(key)"),
    "what cannot be shown": (lambda _, tx: tx.get(Unshown()), "the Unshown that cannot be shown", "pass a message"),
}
ON_A_CATALOG: dict[str, tuple[Call, str, str]] = {
    "a misspelt name for a type": (
        lambda cat, _: cat.rows("rloe"),
        "catalog.rows takes a type of keys, and was given the str 'rloe'",
        "pass the type of its keys, RoleKey",
    ),
    "an instance for a type": (lambda cat, _: cat.rows(ANN), "was given the RoleKey", "pass the type, RoleKey"),
    "a dict for a type": (lambda cat, _: cat.rows({}), "was given the dict {}", "pass a type, such as AuditLogKey"),
    "a text as a ts": (
        lambda cat, _: cat.rows(RoleKey, as_of="yesterday"),
        "catalog.rows takes a ts as as_of, and was given the str 'yesterday'",
        "`catalog history` lists them",
    ),
    "a time as a ts": (lambda cat, _: cat.table("role", as_of=1.5), "was given the float 1.5", "catalog.ts"),
    "a ts below all": (lambda cat, _: cat.rows(RoleKey, as_of=-1), "was given the int -1", "catalog.ts"),
    "a truth as a ts": (lambda cat, _: cat.rows(RoleKey, as_of=True), "was given the bool True", "catalog.ts"),
    "none as since": (lambda cat, _: cat.subscribe(RoleKey, None), "takes a ts as since, and was given None", ""),
    "a name to subscribe to": (
        lambda cat, _: cat.subscribe("role", 0),
        "catalog.subscribe takes a type of keys",
        "RoleKey",
    ),
    "a word as since": (lambda cat, _: cat.feed("role", "then"), "catalog.feed takes a ts as since", "or 'now'"),
    "a type for a name": (
        lambda cat, _: cat.table(RoleKey),
        "catalog.table takes the name of a collection, and was given the type RoleKey",
        "pass its name, 'role'",
    ),
    "a key for a name": (
        lambda cat, _: cat.dataframe(ANN),
        "catalog.dataframe takes the name",
        "pass its name, 'role'",
    ),
    "none for a name": (lambda cat, _: cat.feed(None), "catalog.feed takes the name of a collection", "pass its name"),
    "none for an allocator": (lambda cat, _: cat.allocate(None), "catalog.allocate takes the name", "'item'"),
    "a list for an allocator": (lambda cat, _: cat.allocate([]), "catalog.allocate takes the name", "'item'"),
    "no argument": (
        lambda cat, _: cat.allocate(),
        "catalog.allocate takes name, and was given no name",
        "call it as catalog.allocate(name)",
    ),
    "one argument too many": (
        lambda cat, _: cat.refresh(1),
        "catalog.refresh takes no argument, and was given 1 values without a name",
        "call it as catalog.refresh()",
    ),
    "no ts to subscribe from": (lambda cat, _: cat.subscribe(RoleKey), "was given no since", "(key_type, since)"),
    "a misspelt argument": (lambda cat, _: cat.table("role", asof=1), "was given asof", "did you mean as_of?"),
    "a master for a session": (
        lambda cat, _: cat.dataframe("role", spark="local[2]"),
        "catalog.dataframe takes a session of Spark as spark, and was given the str 'local[2]'",
        "pass a session",
    ),
    "a number for a session": (lambda cat, _: cat.feed("role", spark=5), "was given the int 5", "pass a session"),
    "what cannot be shown": (lambda cat, _: cat.rows(RoleKey, Unshown()), "the Unshown that cannot be shown", "ts"),
    "none for a builtin": (lambda cat, _: cat.builtin(None), "catalog.builtin takes the name", "pass a text"),
}
OPENINGS: dict[str, tuple[dict[str, Any], str, str]] = {
    "an empty address": ({"store": ""}, "takes the address of a store, and was given an empty one", "name a folder"),
    "blanks": ({"store": "  "}, "takes the address of a store, and was given the str ' '", "name a folder"),
    "none": ({"store": None}, "was given None", "s3://bucket/environment"),
    "bytes": ({"store": b"x"}, "was given the bytes b'x'", "name a folder"),
    "a mode that is none": (
        {"mode": "readonly"},
        "was given the str 'readonly'",
        "did you mean read-only? pass one of",
    ),
    "no mode": ({"mode": None}, "takes a mode of opening a store, and was given None", "leader, member, read-only"),
    "a number as a mode": ({"mode": 1}, "was given the int 1", "leader, member, read-only, savepoint, debug"),
    "a generation below 0": ({"deploy_generation": -1}, "a whole number from 0 on as deploy_generation", "number"),
    "a generation as text": ({"deploy_generation": "1"}, "was given the str '1'", "number of the deploy"),
    "a timeout as text": ({"lock_timeout_s": "5"}, "a number of seconds as lock_timeout_s", "such as 60"),
    "a timeout below 0": ({"lock_timeout_s": -1}, "was given the int -1", "such as 60"),
    "options as text": ({"options": "region=x"}, "a mapping of texts as options", "region"),
    "options of numbers": ({"options": {"port": 1}}, "one with other values than texts", "region"),
    "an observer that is none": ({"observer": 7}, "a function as observer", "catalog.events"),
    "a generation of more than 64 bits": ({"deploy_generation": 1 << 63}, "a whole number from 0 on", "number"),
    "a truth as a timeout": ({"lock_timeout_s": True}, "was given the bool True", "such as 60"),
    "a timeout beyond all": ({"lock_timeout_s": 10**400}, "a number of seconds as lock_timeout_s", "such as 60"),
    "a mode in capitals": ({"mode": "LEADER"}, "was given the str 'LEADER'", "did you mean leader?"),
    "a path that is none": ({"store": Unpathed()}, "takes the address of a store", "name a folder"),
    "a number for a session": ({"spark": 5}, "a session of Spark as spark", "pass a session"),
    "an address that is none": ({"spark": "sparc"}, "the address of Spark as spark", "'spark://host:7077'"),
    "a word for a truth": ({"reapply": "no"}, "True or False as reapply", "pass True"),
    "a misspelt option": ({"generation": 1}, "and was given generation", "did you mean deploy_generation?"),
    "no project": ({"project": None}, "the name of a package as project", "'catalog'"),
}


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Any:  # noqa: ANN401
    with open_catalog(tmp_path_factory.mktemp("wrong") / "store") as cat:
        yield cat


def require_three_lines(error: CatalogError, what: str, fix: str) -> None:
    assert what in error.what
    assert fix in error.next
    assert [line[:6] for line in str(error).splitlines()[1:]] == ["why:  ", "next: "]


@pytest.mark.parametrize("mistake", IN_A_TRANSACTION)
def test_a_wrong_argument_in_a_transaction_is_told_with_what_was_meant(opened: Catalog, mistake: str) -> None:
    """Nothing is committed."""
    call, what, fix = IN_A_TRANSACTION[mistake]
    before = opened.ts
    with pytest.raises(WrongArgumentError) as caught, opened.transaction() as tx:
        call(opened, tx)
    require_three_lines(caught.value, what, fix)
    assert opened.refresh() == before


@pytest.mark.parametrize("mistake", ON_A_CATALOG)
def test_a_wrong_argument_of_a_catalog_is_told_with_what_was_meant(opened: Catalog, mistake: str) -> None:
    """At the call, and not when its result is used."""
    call, what, fix = ON_A_CATALOG[mistake]
    with pytest.raises(WrongArgumentError) as caught:
        call(opened, None)
    require_three_lines(caught.value, what, fix)


@pytest.mark.parametrize("mistake", OPENINGS)
def test_a_wrong_argument_of_open_catalog_is_told_with_what_was_meant(
    tmp_path: Path, mistake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no store is made, neither there nor in the folder that the process runs in."""
    monkeypatch.chdir(tmp_path)
    given, what, fix = OPENINGS[mistake]
    with pytest.raises(WrongArgumentError) as caught:
        open_catalog(**{"store": tmp_path / "store", **given})
    require_three_lines(caught.value, what, fix)
    assert list(tmp_path.iterdir()) == []


def test_a_type_that_is_neither_key_nor_value_names_the_collection(opened: Catalog) -> None:
    """It is close to what was meant."""
    with pytest.raises(UnknownCollectionError, match=r"did you mean role\?"):
        opened.rows(RoleId)


MEMBERS: dict[str, tuple[Callable[[Any], object], str, str]] = {
    "a write without a transaction": (
        lambda cat: cat.insert(ANN, VALUE),
        "catalog has no insert",
        "begin a transaction, which has it: `with catalog.transaction() as tx`",
    ),
    "a transaction that has not begun": (
        lambda cat: cat.transaction().insert(ANN, VALUE),
        "catalog.transaction() has no insert",
        "begin it first: `with catalog.transaction() as tx`",
    ),
    "a slip": (lambda cat: cat.verison, "catalog has no verison", "did you mean version?"),
    "nothing like it": (lambda cat: cat.xyz, "catalog has no xyz", "use allocate, builtin, builtins, close,"),
}


@pytest.mark.parametrize("mistake", MEMBERS)
def test_a_member_that_is_none_is_told_with_what_was_meant(opened: Catalog, mistake: str) -> None:
    """It is an AttributeError too, which `hasattr` and its kin need."""
    call, what, fix = MEMBERS[mistake]
    with pytest.raises(NoSuchMemberError) as caught:
        call(opened)
    require_three_lines(caught.value, what, fix)
    assert isinstance(caught.value, AttributeError)
    assert not hasattr(opened, "xyz")


def test_a_transaction_has_no_commit_of_its_own(opened: Catalog) -> None:
    """Its block commits it, and an exception rolls it back."""
    before = opened.ts

    def commit() -> None:
        with opened.transaction() as tx:
            tx.insert(ANN, VALUE)
            tx.commit()  # type: ignore[attr-defined]  # that is the mistake

    with pytest.raises(NoSuchMemberError) as caught:
        commit()
    require_three_lines(caught.value, "tx has no commit", "leave its block")
    assert opened.refresh() == before


ADDRESSES = {
    "a zero byte": ("a\0b", "cannot open a\\u0000b: it is neither a path nor an address"),
    "no characters": ("a\udc00", "cannot open a\\udc00: it is neither a path nor an address"),
    "a scheme that is none": ("foo://x/y", "cannot open foo://x/y"),
    "no bucket": ("s3://", "cannot open s3://: it names no bucket"),
    "a web page": ("https://x.example/y", "no commit can be made at such an address"),
}


@pytest.mark.parametrize("mistake", ADDRESSES)
def test_an_address_that_leads_to_no_store_is_told_with_those_that_do(mistake: str) -> None:
    """Neither its permissions nor its connection are to blame."""
    address, what = ADDRESSES[mistake]
    with pytest.raises(NoAddressError) as caught:
        open_catalog(address)
    require_three_lines(caught.value, what, "such as /srv/catalog or s3://bucket/environment")


def test_a_missing_client_of_object_stores_is_told_with_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing refused and nothing failed to answer."""
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(MissingClientError) as caught:
        open_catalog("s3://bucket/store")
    require_three_lines(caught.value, "the client of object stores is not installed", "pip install 'stash-catalog[s3]'")


@pytest.mark.parametrize("name", ["file", "file/below", "x" * 300], ids=["a file", "below a file", "a long name"])
def test_a_place_that_is_no_folder_is_told(tmp_path: Path, name: str) -> None:
    """Nothing is changed there."""
    (tmp_path / "file").write_text("kept")
    with pytest.raises(NotAFolderError) as caught:
        open_catalog(tmp_path / name)
    require_three_lines(caught.value, name, "name a folder")
    assert [(own.name, own.read_text()) for own in tmp_path.iterdir()] == [("file", "kept")]


def test_rows_are_not_read_after_the_catalog_was_closed(tmp_path: Path) -> None:
    """An iterator outlives its catalog, whose scratch copy is gone by then."""
    cat = open_catalog(tmp_path / "store")
    rows = cat.rows(RoleKey)
    next(rows)
    cat.close()
    with pytest.raises(ClosedError):
        next(rows)


def test_a_mistake_inside_a_call_stays_what_it_is(opened: Catalog) -> None:
    """Only arguments that do not fit the signature are translated."""

    def fail() -> None:
        with opened.transaction() as tx:
            tx.get(ANN)
            raise TypeError("of the caller")

    with pytest.raises(TypeError, match="of the caller"):
        fail()


USES: dict[str, Callable[[Transaction], object]] = {
    "get": lambda tx: tx.get(ANN),
    "rows": lambda tx: tx.rows(RoleKey),
    "insert": lambda tx: tx.insert(ANN, VALUE),
    "update": lambda tx: tx.update(ANN, VALUE),
    "upsert": lambda tx: tx.upsert(ANN, VALUE),
    "delete": lambda tx: tx.delete(ANN),
}


@pytest.mark.parametrize("how", ["committed", "rolled back", "refused"])
@pytest.mark.parametrize("use", USES)
def test_a_transaction_used_after_its_block_raises(opened: Catalog, use: str, how: str) -> None:
    """A change that is never committed is not taken without a word."""
    kept: list[Transaction] = []

    def run() -> None:
        with opened.transaction() as tx:
            kept.append(tx)
            if how == "rolled back":
                raise ZeroDivisionError
            if how == "refused":
                tx.delete(DatabaseKey(id=1))  # schemas refer to it

    if how == "committed":
        run()
    else:
        with pytest.raises((ZeroDivisionError, CatalogError)):
            run()
    with pytest.raises(TransactionEndedError, match=f"tx.{use} came after the end of its transaction") as caught:
        USES[use](kept[0])
    require_three_lines(caught.value, "came after", "with catalog.transaction() as tx")


def test_rows_of_a_transaction_are_not_read_after_its_block(opened: Catalog) -> None:
    """An iterator outlives its block, and is refused there too."""
    with opened.transaction() as tx:
        rows = tx.rows(RoleKey)
        next(rows)
    with pytest.raises(TransactionEndedError):
        next(rows)


def test_a_catalog_closed_within_a_transaction_commits_nothing(tmp_path: Path) -> None:
    """Another process may lead by then."""
    cat = open_catalog(tmp_path / "store")

    def write() -> None:
        with cat.transaction() as tx:
            tx.insert(ANN, VALUE)
            cat.close()

    with pytest.raises(ClosedError):
        write()
    with open_catalog(tmp_path / "store", "read-only") as reader:
        assert ANN not in [key for key, _ in reader.rows(RoleKey)]


def test_keys_in_errors_are_one_line_of_json(opened: Catalog) -> None:
    """As the command line shows and takes them, nested keys too."""
    with pytest.raises(CatalogError) as caught, opened.transaction() as tx:
        tx.delete(RoleKey(id=RoleId(user=77)))
    assert caught.value.what == '`role` has no row {"id": {"user": 77}}'
    with pytest.raises(CatalogError) as caught, opened.transaction() as tx:
        tx.insert(RoleKey(id=RoleId(user=1000)), RoleValue(name="public"))
    assert '{"id": {"public": {}}}; {"id": {"user": 1000}}' in caught.value.what
