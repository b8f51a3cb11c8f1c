"""What a check of a stash finds: nothing in a healthy one, and each kind of damage by its own code."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest
from google.protobuf.message import Message

from catalog.constraints import CONSTRAINTS
from catalog.engine.log.data_files import describe, encode_rows, name_file
from catalog.engine.log.maintenance import Policy
from catalog.engine.log.protocol import ROWS, CommitRequest, DataFile, FileKind, Operation
from catalog.engine.stash.compaction import CompactionPolicy
from catalog.engine.stash.stash import Stash
from catalog.generated import objects_pb2 as types
from catalog.tools.fsck.findings import FsckCode, FsckReport, Severity
from catalog.tools.fsck.stash import fsck
from tests.engine.log.places import DeltaPlace, MemoryPlace, Place
from tests.engine.stash.test_stash import ANN, REGISTRY, item, open_stash, setting

HOUR_MS = 60 * 60 * 1000
POLICY = Policy(checkpoint_every=4, clean_every=8, retention_ms=10 * HOUR_MS, orphan_ms=HOUR_MS)


def checked(place: Place, *, every_state: bool = True) -> FsckReport:
    return fsck(place.open(), REGISTRY, CONSTRAINTS, every_state=every_state)


def filled(place: Place) -> Stash:
    """A stash with a base, a tail and a few commits of each kind."""
    stash = open_stash(place)
    stash.take_over(1, "test")
    with stash.transaction() as tx:
        tx.insert(types.RoleKey(id=ANN), types.RoleValue(name="ann"))
        tx.insert(types.DatabaseKey(id=1), types.DatabaseValue(name="sales", owner_id=ANN))
        tx.insert(types.SchemaKey(id=1), types.SchemaValue(database_id=1, name="public", owner_id=ANN))
    for number in range(1, 4):
        with stash.transaction() as tx:
            tx.insert(*item(number))
            tx.upsert(*setting("a", str(number)))
    stash.consolidate("item")
    with stash.transaction() as tx:
        tx.update(*item(1, "other"))
        tx.delete(types.ItemKey(id=2))
    return stash


@pytest.fixture(params=["memory", "local"])
def near(request: pytest.FixtureRequest, folder: DeltaPlace) -> Place:
    """Where a test can put bytes without asking the log."""
    return MemoryPlace() if request.param == "memory" else folder


def content_of(place: Place, path: str) -> bytes:
    return (
        place.memory.files[path][0] if isinstance(place, MemoryPlace) else (place_of(place).folder / path).read_bytes()
    )


def place_of(place: Place) -> DeltaPlace:
    assert isinstance(place, DeltaPlace)
    return place


def put(place: Place, path: str, content: bytes | None) -> None:
    """Put a file there, or take it away, behind the log's back."""
    if isinstance(place, MemoryPlace):
        place.memory.files.pop(path, None)
        if content is not None:
            place.memory.files[path] = (content, place.memory.now_ms)
        return
    target = place_of(place).folder / path
    target.parent.mkdir(exist_ok=True)
    target.unlink() if content is None else target.write_bytes(content)


Row = tuple[bytes, bytes, int]


def raw(key: Message, value: Message, diff: int = 1) -> Row:
    return key.SerializeToString(), value.SerializeToString(), diff


def slip(
    stash: Stash,
    place: Place,
    collection: str = "setting",
    rows: tuple[Row, ...] | pa.Table = (),
    *,
    kind: FileKind = FileKind.TAIL,
    change: Callable[[CommitRequest], CommitRequest] = lambda change: change,
) -> str:
    """Commit rows that no check has seen, or none; answer the path of their file."""
    state = stash.log.state(stash.refresh())
    table = rows if isinstance(rows, pa.Table) else tabled(rows, state.version + 1)
    content = encode_rows(table)
    path = name_file(collection, kind, state.fence, content)
    if len(rows):
        put(place, path, bytes(content))
    adds = (describe(path, content.nbytes, table),) if len(rows) else ()
    stash.log.compare_and_append(state, change(CommitRequest(Operation.TRANSACTION, uuid.uuid4().hex, adds)))
    return path


def tabled(rows: tuple[Row, ...], ts: int) -> pa.Table:
    columns = [(key, value, ts, diff) for key, value, diff in rows]
    return pa.Table.from_pylist([dict(zip(ROWS.names, row, strict=True)) for row in columns], schema=ROWS)


def only(report: FsckReport, code: FsckCode, severity: Severity = Severity.ERROR) -> tuple[str, str, str]:
    """Where, what and repair of the only finding but for notes of what could not be checked."""
    found = [finding for finding in report.findings if finding.code is not FsckCode.UNCHECKED]
    assert [(finding.code, finding.severity) for finding in found] == [(code, severity)], report.findings
    assert report.ok == (severity is not Severity.ERROR)
    return found[0].where, found[0].what, found[0].repair


def live_file(stash: Stash, collection: str, kind: FileKind = FileKind.TAIL) -> DataFile:
    files = stash.log.state(stash.refresh()).files.values()
    return next(file for file in files if (file.collection, file.kind) == (collection, kind))


def test_a_healthy_store_has_no_findings(place: Place) -> None:
    """After transactions, consolidation and deletions, and on an empty one."""
    open_stash(place)
    assert checked(place) == FsckReport((), 1, 0, 0)
    stash = filled(place)
    report = checked(place)
    assert (report.findings, report.ok, report.entries) == ((), True, stash.ts + 1)
    assert report.files > checked(place, every_state=False).files == len(stash.state.files)


def test_maintenance_leaves_nothing_to_find(place: Place) -> None:
    """Checkpoints, merged tails, a moved frontier, expired entries and vacuumed files are as they should be."""
    filled(place)
    stash = Stash.open(place.open(), REGISTRY, CONSTRAINTS, POLICY)
    stash.compaction = CompactionPolicy(tail_files_max=3, tail_share_max=0.6)
    stash.join()
    for number in range(10, 30):
        place.wait(HOUR_MS)
        with stash.transaction() as tx:
            tx.upsert(*item(number))
            tx.upsert(*setting("a", str(number)))
    assert stash.state.frontier > 0
    report = checked(place)
    assert report.findings == ()
    assert report.entries < stash.ts


def test_checking_changes_nothing(folder: DeltaPlace) -> None:
    """Not even in a store that is damaged."""
    stash = filled(folder)
    stash.log.checkpoint(stash.ts)
    put(folder, live_file(stash, "role").path, b"")
    folder.entry(3).write_bytes(b"")
    before = {path: path.read_bytes() for path in folder.folder.rglob("*") if path.is_file()}
    assert not checked(folder).ok
    assert {path: path.read_bytes() for path in folder.folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("damage", "code", "words"),
    [
        (lambda _: None, FsckCode.MISSING, "is missing, and the log refers to it"),
        (lambda raw: raw[:-7], FsckCode.CORRUPT, "bytes of"),
        (lambda raw: raw[:50] + bytes([raw[50] ^ 1]) + raw[51:], FsckCode.CORRUPT, "its checksum does not fit"),
        (lambda _: b"", FsckCode.CORRUPT, "it has 0 bytes of"),
    ],
)
@pytest.mark.parametrize("every_state", [False, True])
def test_a_damaged_file_is_named(
    near: Place, damage: Callable[[bytes], bytes | None], code: FsckCode, words: str, *, every_state: bool
) -> None:
    """And what depends on it is not judged, which is said once for each cause."""
    stash = filled(near)
    file = live_file(stash, "role")
    put(near, file.path, damage(content_of(near, file.path)))
    report = checked(near, every_state=every_state)
    where, what, repair = only(report, code)
    assert where == file.path
    assert words in what
    assert repair == "cannot be repaired from this store: restore this file, or a copy of the store"
    notes = {found.what: found.where for found in report.findings if found.severity is Severity.NOTE}
    assert len(notes) == sum(found.severity is Severity.NOTE for found in report.findings)
    assert notes["its rows were not added up: not all of its files can be read"] == "`role`"
    referring = notes["references to `role` were not checked: not all of its files can be read"]
    assert referring == "`database` value.owner_id, `item` value.owner_id, `schema` value.owner_id"


def test_a_file_of_an_earlier_state_is_missed_only_when_those_are_checked(near: Place) -> None:
    """The newest state does not need it."""
    stash = filled(near)
    (gone,) = (file.path for file in stash.log.commit(4).adds if file.collection == "item")
    put(near, gone, None)
    assert checked(near, every_state=False).findings == ()
    assert only(checked(near), FsckCode.MISSING)[0] == gone


def test_a_file_that_nothing_refers_to_can_be_swept(place: Place) -> None:
    """It is no error."""
    stash = filled(place)
    state = stash.state
    table = pa.table({"key": [b"k"], "value": [b"v"], "ts": [state.version + 1], "diff": [1]}, schema=ROWS)
    file = stash.log.write("role", FileKind.TAIL, state.fence, table)
    where, _, repair = only(checked(place), FsckCode.ORPHAN, Severity.SWEEPABLE)
    assert where == file.path
    assert repair == "can be repaired: maintenance deletes it once no process can commit it any more"


@pytest.mark.parametrize(
    ("rows", "kind", "words"),
    [
        ((raw(*setting("z", "1")), raw(*setting("y", "1"))), FileKind.BASE, "not unique and in order"),
        ((raw(*setting("y", "1"), 2), raw(*setting("y", "1"), -1)), FileKind.TAIL, "have a diff other than"),
    ],
)
def test_rows_that_no_file_may_hold_are_found(near: Place, rows: tuple[Row, ...], kind: FileKind, words: str) -> None:
    """Whoever wrote them went around the log."""
    path = slip(filled(near), near, rows=rows, kind=kind)
    where, what, repair = only(checked(near), FsckCode.CONTENT)
    assert (where, words in what) == (path, True)
    assert "restore a copy" in repair


def test_columns_of_another_type_are_found(near: Place) -> None:
    """Such a file is not read any further."""
    stash = filled(near)
    ts = pa.array([stash.ts + 1], pa.int64())
    table = pa.table({"key": ["k"], "value": ["v"], "ts": ts, "diff": pa.array([1], pa.int32())})
    path = slip(stash, near, rows=table)
    where, what, _ = only(checked(near), FsckCode.CONTENT)
    assert (where, "other than key" in what) == (path, True)


def test_a_ts_that_its_commit_does_not_have_is_found(near: Place) -> None:
    """The log takes the description of a file on trust."""
    stash = filled(near)
    rows = pa.table({"key": [b"\n\x01q"], "value": [b""], "ts": [3], "diff": [1]}, schema=ROWS)

    def lie(change: CommitRequest) -> CommitRequest:
        (file,) = change.adds
        return replace(change, adds=(replace(file, ts_min=stash.ts + 1, ts_max=stash.ts + 1),))

    path = slip(stash, near, rows=rows, change=lie)
    where, what, _ = only(checked(near), FsckCode.TS)
    assert where == path
    assert what.startswith("its rows are of ts 3 to 3, the log says")


def test_a_merged_tail_with_rows_of_another_time_is_found(near: Place) -> None:
    """What a consolidation makes of files is of their time."""
    stash = filled(near)
    old = live_file(stash, "role")
    rows = stash.log.read(old).set_column(2, ROWS.field("ts"), pa.array([old.ts_max + 1], pa.int64()))
    path = slip(stash, near, "role", rows, change=lambda c: replace(c, operation=Operation.CONSOLIDATE, removes=(old,)))
    where, what, _ = only(checked(near), FsckCode.TS)
    assert (where, what) == (path, "its rows are of ts 3 to 3, and must be of 2 to 2")


def test_a_row_that_is_read_otherwise_than_its_sum_is_found(near: Place) -> None:
    """What the tail says last of a key must be what its rows add up to."""
    stash = filled(near)
    slip(stash, near, rows=(raw(*setting("a", "9")),))
    slip(stash, near, rows=(raw(*setting("a", "3"), -1),))
    where, what, _ = only(checked(near, every_state=False), FsckCode.ORDER)
    assert (where, "is not what its rows add up to" in what) == ('`setting` {"name": "a"}', True)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ((raw(*setting("a", "3")),), "its values occur 2 times"),
        ((raw(*setting("a", "9")),), "its values occur 1, 1 times"),
        ((raw(*setting("a", "9"), -1),), "its values occur -1, 1 times"),
    ],
)
def test_a_row_that_is_there_twice_or_less_than_not_is_found(near: Place, rows: tuple[Row, ...], words: str) -> None:
    """By its key, and by the ts that it began with."""
    stash = filled(near)
    slip(stash, near, rows=rows)
    where, what, repair = only(checked(near, every_state=False), FsckCode.MULTIPLICITY)
    assert where == '`setting` {"name": "a"}'
    assert words in what
    assert "cannot be repaired" in repair
    found = [finding.where for finding in checked(near).findings]
    assert found == ['`setting` {"name": "a"}', f"ts {stash.refresh()}"]


def test_a_base_with_other_rows_than_its_files_had_is_found(near: Place) -> None:
    """A consolidation must not change a row, even if what it leaves is in itself sound."""
    stash = filled(near)
    stash.consolidate("setting")
    old = live_file(stash, "setting", FileKind.BASE)

    def consolidate(change: CommitRequest) -> CommitRequest:
        return replace(change, operation=Operation.CONSOLIDATE, removes=(old,))

    slip(stash, near, rows=(raw(*setting("a", "77")),), kind=FileKind.BASE, change=consolidate)
    assert checked(near, every_state=False).findings == ()
    where, what, _ = only(checked(near), FsckCode.CONSOLIDATION)
    assert where == f"entry {stash.refresh()}"
    assert what == "it changed 2 rows of `setting`, and should change none"


def test_rows_alike_are_found(near: Place) -> None:
    """With the keys of all of them."""
    slip(filled(near), near, "item", (raw(*item(8, "other")),))
    where, what, repair = only(checked(near), FsckCode.DUPLICATE)
    assert where == '`item` {"id": 1}'
    assert what == 'rows agree in value.schema_id, value.name: {"id": 1}; {"id": 8}'
    assert repair == "can be repaired: change or delete all but one of these rows in a transaction"


def test_a_reference_to_nothing_is_found(near: Place) -> None:
    """With the row that refers, and what it refers to."""
    slip(filled(near), near, "item", (raw(*item(8, "lost", schema=7)),))
    where, what, repair = only(checked(near), FsckCode.DANGLING)
    assert where == '`item` {"id": 8}'
    assert what == 'value.schema_id refers to `schema` {"id": 7}, which does not exist'
    assert "insert the missing row" in repair


def test_a_removed_row_that_others_refer_to_is_found(near: Place) -> None:
    """Also if no row of its collection is left."""
    slip(
        filled(near),
        near,
        "schema",
        (raw(types.SchemaKey(id=1), types.SchemaValue(database_id=1, name="public", owner_id=ANN), -1),),
    )
    report = checked(near)
    assert {(finding.code, finding.where) for finding in report.findings} == {
        (FsckCode.DANGLING, '`item` {"id": 1}'),
        (FsckCode.DANGLING, '`item` {"id": 3}'),
    }


def test_an_unknown_collection_is_found(near: Place) -> None:
    """Its rows cannot be judged, but are added up."""
    slip(filled(near), near, "cheese", ((b"key", b"brie", 1),))
    where, what, repair = only(checked(near), FsckCode.COLLECTION)
    assert (where, what) == ("`cheese`", "it is not known at this version")
    assert "cannot be checked by this build" in repair


KEY, VALUE = raw(*setting("q", "1"))[:2]


@pytest.mark.parametrize(
    ("row", "code", "where", "words"),
    [
        ((KEY, b"\xff\xff", 1), FsckCode.UNDECODABLE, '`setting` {"name": "q"}', "its value, row 1 of"),
        ((KEY, b"\n\x02\xff\xff", 1), FsckCode.UNDECODABLE, '`setting` {"name": "q"}', "String field had bad UTF-8"),
        ((b"\xff", VALUE, 1), FsckCode.UNDECODABLE, "`setting` ff", "its key, row 1 of"),
        (
            (KEY, VALUE + b"\x50\x01", 1),
            FsckCode.UNFAITHFUL,
            '`setting` {"name": "q"}',
            "fields that this version does not know",
        ),
        ((KEY, VALUE + VALUE, 1), FsckCode.UNFAITHFUL, '`setting` {"name": "q"}', "it encodes to other bytes"),
    ],
)
def test_bytes_that_are_no_row_are_found(near: Place, row: Row, code: FsckCode, where: str, words: str) -> None:
    """By the key of the row, or its bytes, and its place in a file; other rows are still checked."""
    slip(filled(near), near, rows=(raw(*setting("p", "1")), row, raw(*setting("r", "1"))))
    found, what, repair = only(checked(near), code)
    assert (found, words in what) == (where, True), what
    assert ("write the row again" in repair) == (code is FsckCode.UNFAITHFUL)


def test_enum_values_that_the_types_do_not_declare_are_found(near: Place) -> None:
    """By key, field and value; in a key and in a value."""
    grant = types.DefaultPrivilegeKey(object_type=98, role_id=ANN, grantee_id=ANN)  # type: ignore[arg-type]
    stash = filled(near)
    slip(stash, near, "default_privilege", (raw(grant, types.DefaultPrivilegeValue()),))
    event = types.AuditLogValue(event_type=99)  # type: ignore[arg-type]
    slip(stash, near, "audit_log", (raw(types.AuditLogKey(id=7), event),))
    found = checked(near).findings
    assert [(own.code, own.severity, own.where[:20]) for own in found] == [
        (FsckCode.UNDECLARED, Severity.ERROR, '`audit_log` {"id": 7}'[:20]),
        (FsckCode.UNDECLARED, Severity.ERROR, "`default_privilege` "),
    ]
    assert found[0].what.endswith("value.event_type is 99, which AuditEventType does not declare")
    assert "give the field a value that its type declares" in found[0].repair
    assert found[1].what.endswith("key.object_type is 98, which ObjectType does not declare")


def test_bad_bytes_that_are_gone_again_do_not_matter(near: Place) -> None:
    """A row that was taken back is no longer there to be judged."""
    stash = filled(near)
    slip(stash, near, rows=((KEY, b"\xff\xff", 1),))
    slip(stash, near, rows=((KEY, b"\xff\xff", -1),))
    assert checked(near).findings == ()
