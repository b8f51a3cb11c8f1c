"""The check of a store of any version, by that version's own types and rules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from catalog import MIN_STASH_VERSION, STASH_VERSION, open_catalog
from catalog.engine.log.data_files import rows_table
from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.place import StorePlace
from catalog.engine.log.protocol import AppTxn, CommitRequest, FileKind, LogState, Operation
from catalog.engine.stash.registry import encode
from catalog.engine.storage.base import open_storage
from catalog.engine.storage.identity import make_identity
from catalog.errors import NotAStoreError
from catalog.tools.fsck.findings import FsckCode, FsckFinding, FsckReport, Severity
from catalog.tools.fsck.store import check_store
from catalog.tools.generator import generate
from catalog.upgrade import PROJECT
from tests.engine.migrate.stores import append
from tests.upgrade.stores import files_of

LEGACY = PROJECT.first_proto - 1


def check(store: Path, *, every_state: bool = True) -> FsckReport:
    return check_store(StorePlace.at(PROJECT, store), every_state=every_state)


def state_of(store: Path) -> LogState:
    log = DeltaLog(f"{store}/stash")
    return log.state(log.verify())


def be_at(store: Path, version: int) -> None:
    change = CommitRequest(Operation.MIGRATE, "other", app_txns={AppTxn.STASH_VERSION: version})
    DeltaLog(f"{store}/stash").compare_and_append(state_of(store), change)


def flip(store: Path, collection: str) -> str:
    """Change a byte of a base file of a collection; answer its path."""
    files = state_of(store).files.values()
    path = next(file.path for file in files if (file.collection, file.kind) == (collection, FileKind.BASE))
    raw = bytearray((store / "stash" / path).read_bytes())
    raw[50] ^= 1
    (store / "stash" / path).write_bytes(raw)
    return path


def errors_of(report: FsckReport) -> list[tuple[FsckCode, str]]:
    return [(found.code, found.where) for found in report.findings if found.severity is Severity.ERROR]


def notes_of(report: FsckReport) -> list[FsckFinding]:
    return [found for found in report.findings if found.severity is Severity.NOTE]


@pytest.mark.parametrize("version", range(MIN_STASH_VERSION, STASH_VERSION + 1))
def test_a_healthy_store_of_any_version_has_no_findings(store_at: Callable[[int], Path], version: int) -> None:
    """All of its rows are read, and nothing of it is changed."""
    store = store_at(version)
    before = files_of(store)
    report = check(store, every_state=False)
    files = state_of(store).files.values()
    assert report.findings == check(store).findings == ()
    assert (report.files, report.rows) == (len(files), sum(file.rows for file in files))
    assert files_of(store) == before


def test_a_store_that_was_not_initialised_is_healthy(tmp_path: Path) -> None:
    """There is nothing wrong with it yet."""
    make_identity(open_storage(str(tmp_path), {}), PROJECT.name)
    DeltaLog(f"{tmp_path}/stash").create("made")
    assert check(tmp_path).findings == ()


@pytest.mark.parametrize("version", [15, 17, 21])
def test_rows_of_an_older_version_keep_the_rules_of_that_version(store_at: Callable[[int], Path], version: int) -> None:
    """A reference that leads nowhere and bytes that are no message are found, each once, and nothing else is."""
    store, types = store_at(version), PROJECT.types(version)
    owner = {"owner_id": 999_999} if version == 15 else {"owner_id": types.RoleId(user=999_999)}
    key, value = types.DatabaseKey(id=777), types.DatabaseValue(name="lost", **owner)
    append(store, "database", (encode(key), encode(value), 1))
    append(store, "setting", (encode(types.SettingKey(name="a")), b"\xff", 1))
    assert errors_of(check(store)) == [
        (FsckCode.DANGLING, '`database` {"id": 777}'),
        (FsckCode.UNDECODABLE, '`setting` {"name": "a"}'),
    ]


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (b'{"name":"a"}', b'{"value":"1" }', "SettingValue: not canonical"),
        (b'{"name":"a"}', b'{"value":1}', "SettingValue"),
        (b'{"name":"a"}', b'{"other":"1","value":"1"}', "SettingValue"),
        (b'{"name":"a"}', b"\xff", "SettingValue: not UTF-8"),
        (b'{ "name":"a"}', b'{"value":"1"}', "SettingKey: not canonical"),
    ],
)
def test_rows_of_before_protobuf_must_be_what_their_types_would_write(
    store_at: Callable[[int], Path], key: bytes, value: bytes, said: str
) -> None:
    """The row is named, and the member if that is what is wrong."""
    store = store_at(LEGACY)
    append(store, "setting", (key, value, 1))
    (found,) = check(store).findings
    assert (found.code, found.where) == (FsckCode.UNDECODABLE, f"`setting` {key.hex()}")
    assert said in found.what


def test_rows_of_before_protobuf_are_added_up(store_at: Callable[[int], Path]) -> None:
    """A row that is there twice is found without knowing its type, and so is a collection that nobody knows."""
    store = store_at(LEGACY)
    row = (b'{"name":"a"}', b'{"value":"1"}', 1)
    append(store, "setting", row)
    append(store, "setting", row)
    append(store, "strange", (b"key", b"value", 1))
    found = errors_of(check(store, every_state=False))
    assert found == [(FsckCode.COLLECTION, "`strange`"), (FsckCode.MULTIPLICITY, f"`setting` {row[0].hex()}")]


@pytest.mark.parametrize("version", [MIN_STASH_VERSION - 1, STASH_VERSION + 1])
def test_a_version_that_this_build_does_not_know_is_said_once(store_at: Callable[[int], Path], version: int) -> None:
    """And everything that needs no types is checked all the same."""
    store = store_at(STASH_VERSION)
    be_at(store, version)
    report = check(store)
    (found,) = report.findings
    assert (found.code, found.where, report.ok) == (FsckCode.UNKNOWN_VERSION, f"version {version}", False)
    assert f"the store is at version {version}" in found.what
    assert report.rows == sum(file.rows for file in state_of(store).files.values())
    damaged = flip(store, "role")
    assert errors_of(check(store)) == [(FsckCode.UNKNOWN_VERSION, f"version {version}"), (FsckCode.CORRUPT, damaged)]


@pytest.mark.parametrize("content", [None, b"", b"{}", b"[]", b'{"id": "1"'])
def test_a_store_that_does_not_say_what_it_is_is_checked_all_the_same(
    store_at: Callable[[int], Path], content: bytes | None
) -> None:
    """`store.json` can be written again, if the rest is whole."""
    store = store_at(STASH_VERSION)
    (store / "store.json").unlink()
    if content is not None:
        (store / "store.json").write_bytes(content)
    report = check(store)
    assert errors_of(report) == [(FsckCode.IDENTITY, "store.json")]
    assert report.rows > 0


def test_what_is_no_store_is_not_checked(tmp_path: Path) -> None:
    """There is nothing there that could be whole."""
    with pytest.raises(NotAStoreError, match="nothing is there"):
        check(tmp_path / "none")
    make_identity(open_storage(str(tmp_path), {}), "other")
    with pytest.raises(NotAStoreError, match="it belongs to the project other"):
        check(tmp_path)


def test_what_was_not_checked_is_noted_once_for_each_cause(store_at: Callable[[int], Path]) -> None:
    """However many collections refer to a file that cannot be read."""
    store = store_at(STASH_VERSION)
    damaged = flip(store, "role")
    report = check(store)
    assert errors_of(report) == [(FsckCode.CORRUPT, damaged)]
    notes = {note.what: note.where for note in notes_of(report)}
    assert len(notes) == len(notes_of(report)) == 3
    referring = notes["references to `role` were not checked: not all of its files can be read"]
    assert referring.startswith("`cluster` value.owner_id, `cluster_replica` value.owner_id, ")
    assert referring.endswith(" more")


def test_the_newest_state_that_can_be_read_tells_the_version(store_at: Callable[[int], Path]) -> None:
    """If the newest entry is cut, rows are checked as of the one before, by the types of then."""
    store = store_at(17)
    before = state_of(store).version
    be_at(store, 18)
    entry = store / "stash" / "_delta_log" / f"{before + 1:020d}.json"
    entry.write_bytes(entry.read_bytes()[:-5])
    assert errors_of(check(store)) == [(FsckCode.ENTRY, f"entry {before + 1}"), (FsckCode.STATE, f"ts {before + 1}")]


def test_a_store_in_an_object_store_is_checked(store_bucket: tuple[str, dict[str, str]]) -> None:
    """By the same rules."""
    place, options = store_bucket
    storage = open_storage(f"{place}/one", options)
    generate(PROJECT, storage.uri, LEGACY, 100, 7, options=options)
    assert check_store(StorePlace.at(PROJECT, storage.uri, options), every_state=True).findings == ()
    log = DeltaLog(f"{storage.uri}/stash", options)
    state = log.state(log.verify())
    rows = rows_table([(b"key", b"value", state.version + 1, 1)])
    file = log.write("setting", FileKind.TAIL, state.fence, rows)
    log.compare_and_append(state, CommitRequest(Operation.TRANSACTION, "strange", (file,)))
    assert errors_of(check_store(StorePlace.at(PROJECT, storage.uri, options))) == [
        (FsckCode.UNDECODABLE, f"`setting` {b'key'.hex()}")
    ]


def test_a_store_that_is_led_is_checked(tmp_path: Path) -> None:
    """Nobody is fenced, and nothing is written."""
    with open_catalog(tmp_path / "store") as leader:
        assert check(tmp_path / "store").ok
        leader.refresh()
