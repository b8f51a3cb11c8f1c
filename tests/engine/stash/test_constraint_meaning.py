"""One meaning of a constraint: transactions, fsck and migration steps agree on every violation."""

from __future__ import annotations

import uuid
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import text_format
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog.engine.base.arrow import binary_column
from catalog.engine.base.fence import Fence
from catalog.engine.log.data_files import rows_table
from catalog.engine.log.protocol import CommitRequest, FileKind, Log, Operation
from catalog.engine.migrate.constraint_hashes import HashesNeeded, hash_columns
from catalog.engine.migrate.rewrite_task import HashFinding, TaskHashes, gather, kinds_of
from catalog.engine.migrate.violation_lookup import ViolationLookup
from catalog.engine.migrate.violations import Violation
from catalog.engine.stash.constraint_checks import violations
from catalog.engine.stash.constraint_columns import (
    ConstraintColumns,
    referred_bytes,
    row_referred_keys,
    row_unique_bytes,
    row_values,
    unique_bytes,
    values_at,
)
from catalog.engine.stash.constraints import Constraints, Reference, Unique
from catalog.engine.stash.registry import Collection, Registry, encode
from catalog.engine.stash.replica import StashReplica
from catalog.engine.stash.transaction import RowChange
from catalog.errors import DanglingReferenceError, DuplicateError
from catalog.tools.fsck.findings import FsckCode
from catalog.tools.fsck.stash import fsck
from tests.engine.log.places import MemoryPlace

TYPES = """
name: "meaning.proto" package: "meaning" syntax: "proto3"
enum_type { name: "Color" value { name: "NONE" number: 0 } value { name: "RED" number: 7 } }
message_type {
  name: "Id"
  field { name: "user" number: 1 type: TYPE_UINT64 label: LABEL_OPTIONAL oneof_index: 0 }
  field { name: "system" number: 2 type: TYPE_UINT64 label: LABEL_OPTIONAL oneof_index: 0 }
  oneof_decl { name: "kind" }
}
message_type {
  name: "Part"
  field { name: "owner" number: 1 type: TYPE_MESSAGE type_name: ".meaning.Id" label: LABEL_OPTIONAL }
  field { name: "name" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL proto3_optional: true oneof_index: 0 }
  field { name: "numbers" number: 3 type: TYPE_INT32 label: LABEL_REPEATED }
  oneof_decl { name: "_name" }
}
message_type { name: "OwnerKey" field { name: "id" number: 1 type: TYPE_MESSAGE type_name: ".meaning.Id" label: LABEL_OPTIONAL } }
message_type { name: "OwnerValue" }
message_type { name: "ThingKey" field { name: "id" number: 1 type: TYPE_UINT64 label: LABEL_OPTIONAL } }
message_type {
  name: "ThingValue"
  field { name: "text" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "name" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL proto3_optional: true oneof_index: 1 }
  field { name: "raw" number: 3 type: TYPE_BYTES label: LABEL_OPTIONAL }
  field { name: "big" number: 4 type: TYPE_UINT64 label: LABEL_OPTIONAL }
  field { name: "signed" number: 5 type: TYPE_SINT64 label: LABEL_OPTIONAL }
  field { name: "flag" number: 6 type: TYPE_BOOL label: LABEL_OPTIONAL }
  field { name: "color" number: 7 type: TYPE_ENUM type_name: ".meaning.Color" label: LABEL_OPTIONAL }
  field { name: "number" number: 8 type: TYPE_DOUBLE label: LABEL_OPTIONAL }
  field { name: "first" number: 9 type: TYPE_STRING label: LABEL_OPTIONAL oneof_index: 0 }
  field { name: "second" number: 10 type: TYPE_UINT64 label: LABEL_OPTIONAL oneof_index: 0 }
  field { name: "tags" number: 11 type: TYPE_STRING label: LABEL_REPEATED }
  field { name: "parts" number: 12 type: TYPE_MESSAGE type_name: ".meaning.Part" label: LABEL_REPEATED }
  field { name: "part" number: 13 type: TYPE_MESSAGE type_name: ".meaning.Part" label: LABEL_OPTIONAL }
  field { name: "previous" number: 14 type: TYPE_UINT64 label: LABEL_OPTIONAL proto3_optional: true oneof_index: 2 }
  field { name: "counts" number: 15 type: TYPE_MESSAGE type_name: ".meaning.ThingValue.CountsEntry" label: LABEL_REPEATED }
  nested_type {
    name: "CountsEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type: TYPE_UINT64 label: LABEL_OPTIONAL }
  }
  oneof_decl { name: "choice" }
  oneof_decl { name: "_name" }
  oneof_decl { name: "_previous" }
}
"""  # noqa: E501 - one field, one line


def _types() -> Any:  # noqa: ANN401 - as a generated module
    pool = DescriptorPool()
    proto = text_format.Parse(TYPES, FileDescriptorProto())
    pool.Add(proto)
    file = pool.FindFileByName(proto.name)
    classes = {name: GetMessageClass(message) for name, message in file.message_types_by_name.items()}
    return SimpleNamespace(DESCRIPTOR=file, **classes)


T = _types()
REGISTRY = Registry.of(T)
THING, OWNER = REGISTRY.named("thing"), REGISTRY.named("owner")
UNIQUES = tuple(
    Unique("thing", paths)
    for paths in (
        ("value.text",),
        ("value.name",),
        ("value.text", "value.name"),
        ("value.raw", "value.big", "value.signed"),
        ("value.flag", "value.color", "value.number"),
        ("value.first", "value.second"),
        ("value.tags",),
        ("value.tags", "value.text"),
        ("value.parts.name",),
        ("value.parts.numbers", "value.tags"),
        ("value.part.owner",),
        ("value.part.owner.user", "value.part.owner.system"),
        ("value.parts",),
    )
)
REFERENCES = (
    Reference("thing", "value.part.owner", "owner"),
    Reference("thing", "value.parts.owner", "owner"),
    Reference("thing", "value.previous", "thing"),
)
CONSTRAINTS = Constraints(UNIQUES, REFERENCES)
Rows = dict[str, dict[bytes, bytes]]
Violated = dict[Unique | Reference, set[Any]]
"""Of a unique constraint the groups of rows that agree, of a reference each row with what it refers to."""

WORDS = st.sampled_from(["", "a", "1:a", "0:", "3:1:a", "a" * 20, "é\n"])
NUMBERS = st.sampled_from([0, 1, 7, 2**64 - 1])
IDS = (
    st.builds(T.Id, user=st.sampled_from([0, 1, 2])) | st.builds(T.Id, system=st.sampled_from([0, 1])) | st.just(T.Id())
)
PARTS = st.builds(
    T.Part,
    owner=st.none() | IDS,
    name=st.none() | WORDS,
    numbers=st.lists(st.sampled_from([0, -1, 2**31 - 1]), max_size=2),
)
CHOICES: st.SearchStrategy[dict[str, Any]] = (
    st.just({}) | WORDS.map(lambda word: {"first": word}) | NUMBERS.map(lambda number: {"second": number})
)
THINGS = st.builds(
    lambda choice, **fields: T.ThingValue(**choice, **fields),
    CHOICES,
    text=WORDS,
    name=st.none() | WORDS,
    raw=st.sampled_from([b"", b"\xff", b"\0" * 16]),
    big=NUMBERS,
    signed=st.sampled_from([0, -1, -(2**63), 2**63 - 1]),
    flag=st.booleans(),
    color=st.sampled_from([0, 7, 1000]),
    number=st.sampled_from([0.0, -0.0, 0.1, float("inf"), float("nan")]),
    tags=st.lists(WORDS, max_size=2),
    parts=st.lists(PARTS, max_size=2),
    part=st.none() | PARTS,
    previous=st.none() | st.sampled_from([0, 1, 2, 9]),
)


@st.composite
def rows(draw: st.DrawFn) -> Rows:
    """Few owners and a few things, drawn from few values, so that many agree and many refer to nothing."""
    things = draw(st.lists(THINGS, min_size=1, max_size=5))
    owners = draw(st.lists(IDS, max_size=3))
    return {
        "thing": {encode(T.ThingKey(id=number)): encode(value) for number, value in enumerate(things)},
        "owner": {encode(T.OwnerKey(id=owner)): b"" for owner in owners},
    }


def in_transaction(found: Rows) -> Violated:
    """Insert all rows at once into an empty store."""
    head = StashReplica.open(new_log(), REGISTRY, CONSTRAINTS)
    changes = tuple(
        RowChange(REGISTRY.named(name), key, None, value) for name, own in found.items() for key, value in own.items()
    )
    violated: Violated = {}
    for violation in violations(head, changes):
        if isinstance(violation, DuplicateError):
            unique = next(unique for unique in UNIQUES if unique.paths == violation.paths)
            violated.setdefault(unique, set()).add(frozenset(map(plain, violation.rows)))
        else:
            assert isinstance(violation, DanglingReferenceError)
            reference = next(reference for reference in REFERENCES if reference.path == violation.path)
            violated.setdefault(reference, set()).add((plain(violation.row), plain(violation.referred)))
    return violated


def by_fsck(log: Log) -> Violated:
    violated: Violated = {}
    report = fsck(log, REGISTRY, CONSTRAINTS)
    for finding in report.findings:
        if finding.code is FsckCode.DUPLICATE:
            paths, keys = finding.what.removeprefix("rows agree in ").split(": ", 1)
            unique = next(unique for unique in UNIQUES if ", ".join(unique.paths) == paths)
            violated.setdefault(unique, set()).add(frozenset(map(plain, keys.split("; "))))
        elif finding.code is FsckCode.DANGLING:
            path, target = finding.what.removesuffix(", which does not exist").split(" refers to ")
            reference = next(reference for reference in REFERENCES if reference.path == path)
            row, referred = (plain(text.split("` ", 1)[1]) for text in (finding.where, target))
            violated.setdefault(reference, set()).add((row, referred))
    return violated


def by_step(log: Log, found: Rows) -> Violated:
    """Hash the rows in two tasks for each collection, gather, and look up what that indicates."""
    key, wanted = uuid.uuid4().bytes, {name: needed(CONSTRAINTS, name) for name in found}
    kinds, blobs = kinds_of(wanted), list[bytes]()
    for name, own in found.items():
        for part in (list(own.items())[::2], list(own.items())[1::2]):
            keys, values = columns(part)
            hashes = TaskHashes()
            decoded = ConstraintColumns.decode(REGISTRY.named(name), keys, values)
            hashes.add(hash_columns(wanted[name], name, REGISTRY, keys, (decoded.key, decoded.value), key))
            blobs += [blob for _, blob in hashes.packed(kinds, buckets=1)]
    findings: list[HashFinding] = gather(kinds, None, blobs)
    violated: Violated = {}
    constraints: list[Unique | Reference] = [*UNIQUES, *REFERENCES]
    for constraint in constraints:
        named = _named(log, key, constraint, findings)
        if isinstance(constraint, Reference):
            pairs = {
                (violation.key, "{" + violation.found.split(" {", 1)[1].split(", which ")[0]) for violation in named
            }
            alike: set[Any] = {(plain(row), plain(referred)) for row, referred in pairs}
        else:
            groups: dict[str, set[str]] = {}
            for violation in named:
                first = violation.found.rsplit(" also in thing ", 1)[1]
                groups.setdefault(first, {plain(first)}).add(plain(violation.key))
            alike = {frozenset(group) for group in groups.values()}
        if alike:
            violated[constraint] = alike
    return violated


def _named(log: Log, key: bytes, constraint: Unique | Reference, findings: list[HashFinding]) -> list[Violation]:
    """Look up the rows that break one constraint, since a violation does not name it."""
    only = Constraints(uniques=(constraint,)) if isinstance(constraint, Unique) else Constraints((), (constraint,))
    kinds = kinds_of({"thing": replace(needed(only), keys=False)})
    own = [finding for finding in findings if finding[0] in kinds]
    lookup = ViolationLookup(log, log.state(log.verify()), (), REGISTRY, only, key)
    return lookup.name(own, is_thorough=True).violations.listed


def needed(constraints: Constraints, collection: str = "thing") -> HashesNeeded:
    return HashesNeeded.all_of(constraints, collection)


def plain(text: str) -> str:
    """Return the text of a key as all readers agree on."""
    return " ".join(text.replace("all fields empty", "").split())


def columns(pairs: list[tuple[bytes, bytes]]) -> tuple[pa.BinaryArray, pa.BinaryArray]:
    keys, values = zip(*pairs, strict=True) if pairs else ((), ())
    return binary_column(keys).combine_chunks(), binary_column(values).combine_chunks()


def new_log() -> Log:
    log = MemoryPlace().open()
    log.create("made")
    return log


def stored(found: Rows) -> Log:
    """Return a log that holds the rows, whatever they violate."""
    log = new_log()
    state = log.state(log.verify())
    files = tuple(
        log.write(name, FileKind.TAIL, Fence(0, 0), rows_table([(key, own[key], state.version + 1, 1) for key in own]))
        for name, own in found.items()
        if own
    )
    log.compare_and_append(state, CommitRequest(Operation.TRANSACTION, uuid.uuid4().hex, files))
    return log


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(rows())
def test_transaction_fsck_and_step_agree(found: Rows) -> None:
    """On which constraints are violated, and by which rows."""
    log = stored(found)
    expected = in_transaction(found)
    assert by_fsck(log) == expected
    assert by_step(log, found) == expected


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(THINGS, min_size=1, max_size=8), st.integers(0, 3))
def test_columns_and_single_rows_are_read_as_the_same_bytes(things: list[Message], start: int) -> None:
    """Indexes are loaded from columns, and advanced by rows: both must write the same bytes."""
    whole = ConstraintColumns.decode(THING, *columns([(b"", encode(thing)) for thing in things]))
    read = ConstraintColumns(THING, whole.key[start:], whole.value[start:])
    pairs = [THING.decode(b"", encode(thing)) for thing in things[start:]]
    for unique in UNIQUES:
        assert unique_bytes(unique, read).to_pylist() == [row_unique_bytes(unique, *pair) for pair in pairs]
    for reference in REFERENCES:
        positions, keys = referred_bytes(reference, REGISTRY, read)
        assert len(set(keys.dictionary.to_pylist())) == len(keys.dictionary)
        assert list(zip(positions.tolist(), keys.to_pylist(), strict=True)) == [
            (row, key) for row, pair in enumerate(pairs) for key in row_referred_keys(reference, REGISTRY, *pair)
        ]


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(THINGS, THINGS)
def test_rows_share_bytes_only_if_they_agree(one: Message, other: Message) -> None:
    """Absent is not empty, and no value can be mistaken for two."""
    for unique in UNIQUES:
        lists = [[comparable(row_values(path, None, each)) for path in unique.paths] for each in (one, other)]
        same = row_unique_bytes(unique, T.ThingKey(), one) == row_unique_bytes(unique, T.ThingKey(), other)
        assert same == (lists[0] == lists[1])


def comparable(values: list[Any]) -> list[Any]:
    return [encode(value) if isinstance(value, Message) else repr(value) for value in values]


def test_a_repeated_field_leads_to_each_element() -> None:
    """Two rows agree if the elements do; absent ones are left out."""
    unique = Unique("thing", ("value.parts.name",))
    parts = [[T.Part(name="a"), T.Part()], [T.Part(name="a")], [T.Part(name="a"), T.Part(name="")]]
    first, second, third = (row_unique_bytes(unique, T.ThingKey(), T.ThingValue(parts=own)) for own in parts)
    assert first == second != third
    assert first == b"1*1:a"


def test_a_map_can_have_no_constraint() -> None:
    """Its entries have no order; both readers say so."""
    value = T.ThingValue(counts={"a": 1})
    for path in ("value.counts", "value.counts.key"):
        with pytest.raises(TypeError, match="no constraint can hold for the map counts"):
            row_values(path, T.ThingKey(), value)
        with pytest.raises(TypeError, match="no constraint can hold for the map counts"):
            values_at(
                path,
                ConstraintColumns.decode(
                    Collection("thing", T.ThingKey, T.ThingValue), *columns([(b"", encode(value))])
                ),
            )
