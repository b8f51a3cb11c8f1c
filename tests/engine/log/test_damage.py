"""A store that was damaged, is not one, or cannot be written: each has its own error, and nothing gets worse."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from catalog.engine.log.protocol import FileKind, LogState
from catalog.engine.log.state_reader import StateReader
from catalog.errors import (
    AlteredEntryError,
    CatalogError,
    CommitFailedError,
    CorruptCheckpointError,
    CorruptFileError,
    ForeignTableError,
    MissingFileError,
    NoStoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnreachableError,
    TornLogError,
)
from tests.engine.log.places import FENCE, DeltaPlace, append, change, created, grown, rows, tail


def fingerprint(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def cut_line(raw: bytes) -> bytes:
    return b"".join(raw.splitlines(keepends=True)[:-1])


def forget_writer(raw: bytes) -> bytes:
    return raw.replace(b"stash.", b"other.")


@pytest.mark.parametrize(
    ("damage", "kind", "message"),
    [
        (lambda _: b"", TornLogError, "log entry 5 of .* is damaged: it is empty"),
        (lambda _: b"\n", TornLogError, "it is empty"),
        (lambda raw: raw[: len(raw) // 2], TornLogError, "line . is no JSON"),
        (lambda raw: raw[:-5], TornLogError, "line . is no JSON"),
        (cut_line, TornLogError, "it has 2 actions of 3"),
        (lambda _: b"\x00\xff garbage", TornLogError, "line 1 is no JSON"),
        (lambda raw: b"\x00" * len(raw), TornLogError, "it is empty"),
        (lambda _: b"17\n", AlteredEntryError, "line 1 is no action"),
        (lambda raw: raw.replace(b'"size"', b'"seize"'), AlteredEntryError, "it is not understood"),
        (lambda raw: raw.replace(b'"add"', b'"adc"'), AlteredEntryError, "its digest does not fit its content"),
        (
            lambda raw: raw.replace(b'"collection":"role"', b'"collection":"rolf"'),
            AlteredEntryError,
            "in the partition",
        ),
        (lambda raw: raw.replace(b"commitInfo", b"commitInfn"), AlteredEntryError, "it has lost its commitInfo"),
        (lambda raw: raw.replace(b"stash.digest", b"stash.digesu"), AlteredEntryError, "it is not understood"),
        (lambda raw: raw.replace(b"stash.state", b"stash.statf"), AlteredEntryError, "it is not understood"),
        (lambda raw: raw.replace(b'"version":1', b'"version":3'), AlteredEntryError, "its digest does not fit"),
        (lambda raw: raw + raw.splitlines(keepends=True)[-1], AlteredEntryError, "it has 4 actions of 3"),
        (lambda raw: raw.replace(b"transaction", b"transactiom"), AlteredEntryError, "its digest does not fit"),
        (forget_writer, ForeignTableError, "log entry 5 was not written by this program"),
    ],
)
def test_a_damaged_newest_entry_is_reported(
    folder: DeltaPlace, damage: Callable[[bytes], bytes], kind: type[CatalogError], message: str
) -> None:
    """When the store is opened, when it is read and when it is written; never read as empty or as something else."""
    log, state = created(folder)
    state = grown(log, state, 4)
    whole = append(log, state, removes=tuple(state.files.values()), EPOCH=1)
    raw = folder.entry(5).read_bytes()
    folder.entry(5).write_bytes(damage(raw))
    assert folder.entry(5).read_bytes() != raw
    before = fingerprint(folder.folder)
    for act in (folder.open().verify, lambda: folder.open().state(5), lambda: folder.open().checkpoint(5)):
        with pytest.raises(kind, match=message):
            act()
    with pytest.raises(CatalogError):
        folder.open().compare_and_append(state, change())
    assert fingerprint(folder.folder) == before
    assert folder.open().state(4) == state
    folder.entry(5).write_bytes(raw)
    assert folder.open().state(folder.open().verify()) == whole


def test_commits_that_land_while_it_is_opened_are_no_gap(folder: DeltaPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest entry was looked for before they came, and the entries after it later."""
    log, state = created(folder)
    state = grown(log, state, 1)
    log.checkpoint(1)
    before = StateReader.newest
    found = iter([1])
    grown(log, state, 3)
    monkeypatch.setattr(StateReader, "newest", lambda reader: next(found, None) or before(reader))
    assert folder.open().verify() == 4


def test_a_gap_in_the_log_is_reported(folder: DeltaPlace) -> None:
    """An entry that is missing between others was not retired."""
    log, state = created(folder)
    grown(log, state, 4)
    folder.entry(2).unlink()
    with pytest.raises(TornLogError, match=r"log entry 2 of .* is damaged: it is missing"):
        folder.open().state(4)
    with pytest.raises(TornLogError, match="it is missing"):
        folder.open().commit(2)
    with pytest.raises(CatalogError):
        folder.open().checkpoint(4)


def checkpointed(place: DeltaPlace) -> LogState:
    """A log of ten commits with checkpoints of the third and the sixth."""
    log, state = created(place)
    for _ in range(3):
        state = grown(log, state, 3)
        if state.version < 9:
            log.checkpoint(state.version)
    return append(log, state, EPOCH=1)


@pytest.mark.parametrize("content", [b"", b"garbage", None])
def test_a_damaged_checkpoint_is_stepped_over(folder: DeltaPlace, content: bytes | None) -> None:
    """It says nothing that the entries before it do not say; the next commit or checkpoint replaces it."""
    state = checkpointed(folder)
    damaged = folder.checkpoint(6)
    damaged.write_bytes(damaged.read_bytes()[:-100] if content is None else content)
    log = folder.open()
    assert log.verify() == 10
    assert log.state(10) == state
    state = append(log, state)
    assert folder.open().state(11) == state
    folder.open().checkpoint(11)
    assert folder.open().state(11) == state
    assert DeltaTable(folder.uri).version() == 11


@pytest.mark.parametrize("content", [b"", b"garbage", b'{"version": 2000000}', b'{"version": 0}', b"[]", None])
def test_a_damaged_pointer_to_the_last_checkpoint_does_no_harm(folder: DeltaPlace, content: bytes | None) -> None:
    """It is a hint and nothing more."""
    state = checkpointed(folder)
    pointer = folder.folder / "_delta_log" / "_last_checkpoint"
    pointer.unlink() if content is None else pointer.write_bytes(content)
    assert folder.open().verify() == 10
    assert folder.open().state(10) == state
    append(folder.open(), state)


def test_a_checkpoint_that_nothing_can_replace_is_reported(folder: DeltaPlace) -> None:
    """If the entries before it are gone too, the error names it, and nothing is removed."""
    state = checkpointed(folder)
    for version in range(5):
        folder.entry(version).unlink()
    for version in (3, 6):
        folder.checkpoint(version).write_bytes(b"garbage")
    before = fingerprint(folder.folder)
    with pytest.raises(CorruptCheckpointError, match=r"checkpoint 6 of .* is damaged"):
        folder.open().state(10)
    with pytest.raises(CorruptCheckpointError, match=r"checkpoint 6 of .* is damaged"):
        folder.open().compare_and_append(state, change())
    assert fingerprint(folder.folder) == before


@pytest.mark.parametrize("position", [4, 20, 0.3, 0.5, 0.7, 0.9, -9, -1])
def test_a_flipped_bit_in_a_data_file_is_found(folder: DeltaPlace, position: float) -> None:
    """Wherever it is: in a value, a page header or the footer."""
    log, state = created(folder)
    file = log.write("role", FileKind.TAIL, FENCE, rows(1, *(b"%d" % number for number in range(500))))
    log.compare_and_append(state, change(file))
    content = bytearray((folder.folder / file.path).read_bytes())
    content[int(position if abs(position) >= 1 else position * len(content))] ^= 1
    (folder.folder / file.path).write_bytes(content)
    with pytest.raises(CorruptFileError, match="its checksum does not fit its content"):
        folder.open().read(file)


def test_a_short_or_missing_data_file_is_named(folder: DeltaPlace) -> None:
    """The store opens; what cannot be read says so."""
    log, state = created(folder)
    state = append(log, state)
    (file,) = state.files.values()
    content = (folder.folder / file.path).read_bytes()
    (folder.folder / file.path).write_bytes(content[:-7])
    with pytest.raises(CorruptFileError, match=f"it has {file.size - 7} bytes of {file.size}"):
        folder.open().read(file)
    (folder.folder / file.path).unlink()
    assert folder.open().verify() == 1
    with pytest.raises(MissingFileError, match=file.path):
        folder.open().read(file)


def test_a_foreign_table_is_refused(folder: DeltaPlace) -> None:
    """Neither opened nor made a stash of."""
    write_deltalake(folder.uri, pa.table({"a": [1]}))
    before = fingerprint(folder.folder)
    for act in (folder.open().verify, lambda: folder.open().state(0), lambda: folder.open().create("first")):
        with pytest.raises(ForeignTableError, match="log entry 0 was not written by this program"):
            act()
    assert fingerprint(folder.folder) == before


def test_a_foreign_commit_is_refused(folder: DeltaPlace) -> None:
    """Also when it comes between a read and a write."""
    log, state = created(folder)
    state = append(log, state)
    DeltaTable(folder.uri).alter.set_table_properties({"delta.appendOnly": "false"})
    with pytest.raises(ForeignTableError, match="log entry 2 was not written by this program"):
        folder.open().verify()
    with pytest.raises(CatalogError):
        log.compare_and_append(state, change())


def test_what_is_no_store_says_what_it_is(tmp_path: Path) -> None:
    """Nothing, an empty folder, a file, a folder of other things."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("text")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.doc").write_text("text")
    before = fingerprint(tmp_path)
    for name, found in {
        "absent": "nothing is there",
        "empty": "it holds no log",
        "file": "it is a file",
        "file/below": ".*file is a file",
        "other": "it holds no log",
    }.items():
        with pytest.raises(NoStoreError, match=f"there is no stash at .*{name}: {found}"):
            DeltaPlace(str(tmp_path / name)).open().verify()
    for name in ("file", "file/below"):
        with pytest.raises(NoStoreError, match="is a file"):
            DeltaPlace(str(tmp_path / name)).open().create("first")
    with pytest.raises(ForeignTableError, match=r"it holds other files, such as thesis\.doc"):
        DeltaPlace(str(tmp_path / "other")).open().create("first")
    assert fingerprint(tmp_path) == before


def test_what_a_crash_left_beside_the_log_does_no_harm(folder: DeltaPlace) -> None:
    """A staged entry is not one, and goes when its time is up."""
    log, state = created(folder)
    state = grown(log, state, 3)
    left = folder.entry(2).with_name(folder.entry(2).name + "#1")
    left.write_text("{half an ent")
    assert folder.open().verify() == 3
    for _ in range(2):
        state = grown(log, state, 2)
        log.checkpoint(state.version)
    log.expire(7)
    assert not left.exists()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one mebibyte."""
    mounted = tmp_path / "disk"
    mounted.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", mounted], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"mounting is not allowed here: {made.stderr.strip()}")
    try:
        yield mounted
    finally:
        subprocess.run(["umount", mounted], check=True)


def fill(disk: Path) -> Path:
    """A file that takes all the space there is."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as full, contextlib.suppress(OSError):
        while True:
            full.write(b"x" * 4096)
    return filler


def test_a_full_disk_fails_cleanly(disk: Path) -> None:
    """What is committed stays readable, what is not is not half there, and when there is space again it goes on."""
    place = DeltaPlace(str(disk / "stash"))
    log, state = created(place)
    state = append(log, state)
    file = tail(log, state)
    before = fingerprint(place.folder)
    filler = fill(disk)
    with pytest.raises(StoreFullError, match="No space left on device"):
        tail(log, state)
    asked = change(file, details={"why": "x" * 20_000})
    with pytest.raises(CommitFailedError, match="No space left on device"):
        log.compare_and_append(state, asked)
    with pytest.raises(CatalogError):
        log.checkpoint(1)
    assert place.open().verify() == 1
    assert place.open().state(1) == state
    assert fingerprint(place.folder).items() >= before.items()
    filler.unlink()
    state = state.after(log.compare_and_append(state, asked))
    log.checkpoint(2)
    assert place.open().state(2) == state


def test_a_read_only_disk_can_be_read(disk: Path) -> None:
    """And not written: each attempt says why."""
    place = DeltaPlace(str(disk / "stash"))
    log, state = created(place)
    file = tail(log, state)
    before = fingerprint(place.folder)
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    log = place.open()
    assert log.state(log.verify()) == state
    for write in (
        lambda: tail(log, state),
        lambda: log.delete([file.path]),
        lambda: DeltaPlace(str(disk / "other")).open().create("first"),
    ):
        with pytest.raises(StoreReadOnlyError, match="Read-only file system"):
            write()
    with pytest.raises(CommitFailedError, match="Read-only file system"):
        log.compare_and_append(state, change(file))
    with pytest.raises(StoreUnreachableError, match="Read-only file system"):
        log.checkpoint(0)
    assert fingerprint(place.folder) == before


def test_folders_may_have_strange_names(tmp_path: Path) -> None:
    """As a path and as a URI; the one kind of name that delta-rs confuses with another is refused."""
    path = tmp_path / "my store % #1 ключ?"
    log, state = created(DeltaPlace(str(path)))
    state = append(log, state)
    assert DeltaPlace(path.as_uri()).open().state(1) == state
    with pytest.raises(NoStoreError, match="%20"):
        DeltaPlace(str(tmp_path / "my store%20x")).open().create("first")


def test_a_cut_of_any_length_is_noticed(folder: DeltaPlace) -> None:
    """No prefix of an entry passes for a whole one."""
    log, state = created(folder)
    state = append(log, state)
    append(log, state, removes=tuple(state.files.values()), EPOCH=1)
    raw = folder.entry(2).read_bytes()
    assert json.loads(raw.splitlines()[0])["commitInfo"]["stash.actions"] == "3"
    for length in range(0, len(raw) - 1, 7):
        folder.entry(2).write_bytes(raw[:length])
        with pytest.raises(TornLogError):
            folder.open().verify()


@pytest.mark.parametrize("checkpointed", [True, False])
def test_an_entry_that_is_missing_below_later_ones_is_noticed(folder: DeltaPlace, *, checkpointed: bool) -> None:
    """Acknowledged commits are never passed over in silence."""
    log, state = created(folder)
    state = grown(log, state, 3)
    if checkpointed:
        log.checkpoint(state.version)
    grown(log, state, 4)
    entry = Path(folder.uri) / "_delta_log" / f"{5:020d}.json"
    entry.unlink()
    with pytest.raises(TornLogError, match=r"log entry 5 of .* is damaged: it is missing, and later ones are there"):
        folder.open().verify()
