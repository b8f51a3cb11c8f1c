"""The tasks of a step: each reads its part of a collection, rewrites, verifies, hashes and writes it in one pass.

A task is plain data and runs in any process. What it wrote counts only if its report arrives: an attempt that was
killed or repeated leaves files that no commit refers to.
"""

from __future__ import annotations

import gc
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catalog.actions import Action
from catalog.engine.base.arrow import binary_column
from catalog.engine.base.fence import Fence
from catalog.engine.base.project import load_project
from catalog.engine.codec import bounded_batches
from catalog.engine.codec.enum_values import UndeclaredValues
from catalog.engine.log.data_files import with_ts
from catalog.engine.log.protocol import DataFile, FileKind, Log
from catalog.engine.migrate.constraint_hashes import (
    HashesNeeded,
    HashKind,
    distinct,
    duplicates,
    fold,
    hash_columns,
    key_kind,
    missing,
    reference_kind,
    unique_kind,
)
from catalog.engine.migrate.new_rows import RewrittenBatch
from catalog.engine.migrate.partitions import NOTHING_READ, Partition, RowsRead, read_part, read_shuffled
from catalog.engine.migrate.rewriters import REWRITERS, RewriterContext
from catalog.engine.migrate.row_errors import BadRows
from catalog.engine.migrate.row_types import RowColumns, RowType, registry_of, row_types, undeclared_in
from catalog.engine.migrate.row_verifier import Columns, EncodedRows, RowVerifier, VerifiedRows
from catalog.engine.migrate.violations import RowRule
from catalog.engine.spark.jobs import TaskOutput
from catalog.engine.stash.compaction import FILE_BYTES_MAX
from catalog.engine.stash.constraint_columns import ConstraintColumns, is_unchanged
from catalog.engine.stash.keyed_hash import Hashes, new_key, unpack_hashes
from catalog.engine.stash.registry import Collection, Registry

HashFinding = tuple[HashKind, bytes, int]
"""A kind, some hashes of it that break its rule, and how many there are."""
_HEADER = struct.Struct("<H")
_PAIR = ("key", "value")


@dataclass(frozen=True, slots=True)
class TaskContext:
    """The facts that all tasks of a step share; it is pickled to every process."""

    log: Log
    project: str
    old: int
    new: int
    fence: Fence
    base_ts: int
    """The ts that the step reads, and its base files carry."""
    commit_ts: int
    """The ts that the step's commit is to have, and its tail files carry."""
    created: frozenset[str] = frozenset()
    """Collections without files before the step: their new rows go to base files."""
    needed: Mapping[str, HashesNeeded] = field(default_factory=dict)
    """The hashes to compute, by collection."""
    compared: Mapping[str, HashesNeeded] = field(default_factory=dict)
    """The constraints that need no hashes as long as no row differs in their fields from before."""
    buckets: int = 1
    is_thorough: bool = False
    """True to find every row that breaks a rule; else a task stops at the first one."""
    hash_key: bytes = field(default_factory=new_key)
    """The key of all hashes of the step."""

    @property
    def step(self) -> str:
        return f"v{self.old}_to_v{self.new}"

    @property
    def registry(self) -> Registry:
        """The collections of the new version, in whatever process this is."""
        return registry_of(load_project(self.project), self.new)

    def stops_at(self, errors: BadRows) -> bool:
        """Tell if errors end a task."""
        return bool(errors) and not self.is_thorough


@dataclass(frozen=True, slots=True)
class Task:
    """A part of a collection, and what to do with it."""

    part: Partition
    actions: tuple[Action, ...] = ()
    """Without actions the rows are only hashed, with the new types."""
    first_id: int = 0
    only_counts_ids: bool = False
    """True to write and hash nothing."""


@dataclass(frozen=True, slots=True)
class InsertTask:
    """Rows that a migration spells out."""

    collection: str
    rows: tuple[tuple[bytes, bytes], ...]


@dataclass(slots=True)
class TaskReport:
    """The result of a task."""

    collection: str
    number: int = 0
    rows_read: RowsRead = NOTHING_READ
    rows_before: int = 0
    rows_after: dict[str, int] = field(default_factory=dict)
    changed: int = 0
    deleted: int = 0
    inserted: Counter[str] = field(default_factory=Counter)
    """New rows beside those that stored rows become, by collection."""
    files: list[DataFile] = field(default_factory=list)
    ids: int = 0
    id_bounds: tuple[int, int] | None = None
    keys_changed: bool = False
    differing: set[HashKind] = field(default_factory=set)
    """The compared constraints in whose fields some row differs from before."""
    undeclared: dict[str, UndeclaredValues] = field(default_factory=dict)
    """Enum values of new rows that the types do not declare, by collection, where there are any."""
    bad_stored: BadRows = field(default_factory=BadRows)
    bad_new: BadRows = field(default_factory=BadRows)
    seconds: float = 0.0
    sampled_s: float = 0.0
    """Of these, the time of protobuf's own reading and writing."""

    def add_batch(self, batch: RewrittenBatch) -> None:
        """Add the counts of a batch."""
        self.changed += batch.changed
        self.deleted += batch.deleted
        self.inserted += batch.inserted
        self.ids += batch.ids
        self.keys_changed |= batch.keys_changed


@dataclass(slots=True)
class TaskHashes:
    """The hashes that a task computed, divided into buckets: equal ones meet in one bucket."""

    by_kind: dict[HashKind, list[Hashes]] = field(default_factory=dict)

    def add(self, found: Mapping[HashKind, list[Hashes]]) -> None:
        for kind, hashes in found.items():
            self.by_kind.setdefault(kind, []).extend(hashes)

    def packed(self, kinds: Sequence[HashKind], buckets: int) -> Iterator[tuple[int, bytes]]:
        """Yield the hashes of each bucket and kind as bytes."""
        for number, kind in enumerate(kinds):
            if kind not in self.by_kind:
                continue
            hashes = np.concatenate(self.by_kind[kind])
            if kind.role == "reference":
                hashes = distinct(hashes)
            bucket_of = fold(hashes) % np.uint64(buckets)
            for bucket in range(buckets):
                own = hashes[bucket_of == bucket] if buckets > 1 else hashes
                if len(own):
                    yield bucket, _HEADER.pack(number) + own.tobytes()


def rewrite_part(context: TaskContext, task: Task) -> TaskOutput:
    """Run a task that reads its part itself, for Spark."""
    done = run_task(context, task)
    _freeze_once()
    return task_output(context, *done)


def rewrite_shuffled_part(context: TaskContext, tasks: Sequence[Task], part: int, rows: pa.Table) -> TaskOutput:
    """Run the task of a part whose rows came through a shuffle, for Spark."""
    return task_output(context, *run_task(context, tasks[part], rows))


def insert_rows(context: TaskContext, task: InsertTask) -> TaskOutput:
    """Verify and write rows that are added to a collection, for Spark."""
    report, hashes, name = TaskReport(task.collection), TaskHashes(), task.collection
    encoded = EncodedRows(*(binary_column(column).combine_chunks() for column in zip(*task.rows, strict=True)))
    collection = context.registry.named(name)
    verified = RowVerifier(context.is_thorough, sample=1).verify(collection, encoded, RowRule.ENCODE)
    report.bad_new.add(collection, verified.errors)
    report.inserted[name] = len(task.rows)
    if not context.stops_at(report.bad_new):
        add_new_rows(context, report, hashes, name, verified)
        write_rows(context, name, [verified.rows], report, is_base=name in context.created)
    return task_output(context, report, hashes)


@cache
def _freeze_once() -> None:
    """Spare what the first task of a process has loaded: Spark's workers collect garbage after every task."""
    gc.freeze()


def task_output(context: TaskContext, report: TaskReport, hashes: TaskHashes) -> TaskOutput:
    return report, hashes.packed(kinds_of(context.needed), context.buckets)


def run_task(context: TaskContext, task: Task, shuffled: pa.Table | None = None) -> tuple[TaskReport, TaskHashes]:
    """Read, rewrite, verify, hash and write a part; `shuffled` are its rows if they came through a shuffle."""
    began = perf_counter()
    tables, rows_read = read_part(context.log, task.part) if shuffled is None else read_shuffled(shuffled)
    batches = (EncodedRows(batch["key"], batch["value"]) for table in tables for batch in bounded_batches(table))
    report, hashes = TaskReport(task.part.collection, task.part.number, rows_read), TaskHashes()
    if task.actions:
        for name, rows in _rewrite(context, task, batches, report, hashes).items():
            is_base = name == report.collection or name in context.created
            if not context.stops_at(report.bad_new):
                write_rows(context, name, rows, report, is_base=is_base)
    else:
        _hash_stored(context, batches, report, hashes)
    report.seconds = perf_counter() - began
    return report, hashes


def _rewrite(
    context: TaskContext, task: Task, batches: Iterable[EncodedRows], report: TaskReport, hashes: TaskHashes
) -> dict[str, list[EncodedRows]]:
    """Return the verified new rows of a part, by collection; none if an error stops the task."""
    name, new, verifier = report.collection, context.registry, RowVerifier(context.is_thorough)
    old = row_types(load_project(context.project), context.old)[name]
    rewriter_context = RewriterContext(context.step, old, new, task.first_id, context.is_thorough)
    rewriter = REWRITERS[type(task.actions[0])](rewriter_context, task.actions)
    new_rows: dict[str, list[EncodedRows]] = {}
    for rows in batches:
        report.rows_before += len(rows.keys)
        stored = _verify_stored(verifier, old, rows)
        batch = rewriter.rewrite(stored.rows, stored.columns)
        report.add_batch(batch)
        report.bad_stored.add(old, [*stored.errors, *batch.errors])
        if context.stops_at(report.bad_stored):
            return {}
        for collection, own in batch.rows.items():
            verified = verifier.verify(new.named(collection), own, RowRule.ENCODE, batch.columns.get(collection))
            report.bad_new.add(new.named(collection), verified.errors)
            if context.stops_at(report.bad_new):
                return {}
            if not task.only_counts_ids:
                if collection == name:
                    report.differing |= _differing(context, old, batch, stored, verified)
                add_new_rows(context, report, hashes, collection, verified)
                new_rows.setdefault(collection, []).append(verified.rows)
    report.sampled_s = verifier.sampled_s
    return new_rows


def _verify_stored(verifier: RowVerifier, old: RowType, rows: EncodedRows) -> VerifiedRows:
    """Verify stored rows; those of before protobuf are verified by their own module when they are decoded."""
    if isinstance(old, Collection):
        return verifier.verify(old, rows, RowRule.UNKNOWN_FIELDS)
    return VerifiedRows(rows, None, [])


def _differing(
    context: TaskContext, old: RowType, batch: RewrittenBatch, before: VerifiedRows, after: VerifiedRows
) -> set[HashKind]:
    """Return the compared constraints in whose fields a row of a batch differs from before."""
    compared = context.compared.get(old.name)
    if not compared or before.columns is None or after.columns is None or not isinstance(old, Collection):
        return set()
    then = ConstraintColumns(old, *before.columns)
    now = ConstraintColumns(context.registry.named(old.name), *after.columns)
    kinds = {unique_kind(unique) for unique in compared.uniques if not is_unchanged(unique, then, now)}
    return kinds | ({key_kind(old.name)} if compared.keys and batch.keys_changed else set())


def add_new_rows(
    context: TaskContext, report: TaskReport, hashes: TaskHashes, name: str, verified: VerifiedRows
) -> None:
    """Add the hashes of verified new rows, and the enum values in them that the types do not declare."""
    collection, (keys, _), columns = context.registry.named(name), verified.rows, verified.columns
    hashes.add(hash_rows(context, name, keys, columns))
    if columns is not None:
        undeclared = undeclared_in(collection, keys, columns)
        if undeclared:
            report.undeclared.setdefault(name, UndeclaredValues()).merge(undeclared)


def hash_rows(
    context: TaskContext, name: str, keys: pa.BinaryArray, columns: Columns | None
) -> dict[HashKind, list[Hashes]]:
    """Return the hashes that are needed of some rows of a collection."""
    needed = context.needed.get(name)
    return hash_columns(needed, name, context.registry, keys, columns, context.hash_key) if needed else {}


def _hash_stored(context: TaskContext, batches: Iterable[EncodedRows], report: TaskReport, hashes: TaskHashes) -> None:
    """Hash rows that stay as they are, with the new types."""
    name = report.collection
    codec = RowColumns(context.registry.named(name)) if context.needed[name].decoded else None
    for rows in batches:
        report.rows_before += len(rows.keys)
        hashes.add(hash_rows(context, name, rows.keys, codec.decode(*rows) if codec else None))


def write_rows(
    context: TaskContext, name: str, rows: Sequence[EncodedRows], report: TaskReport, *, is_base: bool
) -> None:
    """Write the files of new rows, in the order of keys, and add them to the report; a duplicate key is set aside."""
    table = pa.table({part: pa.chunked_array([own[i] for own in rows], pa.binary()) for i, part in enumerate(_PAIR)})
    report.rows_after[name] = 0
    if table.num_rows == 0:
        return
    ordered = _ordered(table)
    keys = ordered["key"]
    equal = pc.equal(keys.slice(0, len(keys) - 1), keys.slice(1)) if len(keys) > 1 else None
    if equal is not None and pc.any(equal).as_py():
        found = keys.slice(1).filter(equal).to_pylist()
        report.bad_new.add_duplicates(context.registry.named(name), found if context.is_thorough else found[:1])
        if not context.is_thorough:
            return
        ordered = ordered.filter(pa.chunked_array([pa.array([True]), pc.invert(equal).combine_chunks()]))
    kind, ts = (FileKind.BASE, context.base_ts) if is_base else (FileKind.TAIL, context.commit_ts)
    files = [
        context.log.write(name, kind, context.fence, with_ts(batch, ts))
        for batch in bounded_batches(ordered, bytes_max=FILE_BYTES_MAX, rows_max=ordered.num_rows)
    ]
    report.files += files
    report.rows_after[name] = sum(file.rows for file in files)


def kinds_of(needed: Mapping[str, HashesNeeded]) -> tuple[HashKind, ...]:
    """Return every kind of hash, in an order that all processes agree on."""
    found = {key_kind(name) for name, own in needed.items() if own.keys}
    for own in needed.values():
        found |= {unique_kind(unique) for unique in own.uniques}
        found |= {reference_kind(reference.target) for reference in own.references}
    return tuple(sorted(found, key=lambda kind: (kind.role, kind.name)))


def gather(kinds: Sequence[HashKind], listed_max: int | None, blobs: Iterable[bytes]) -> list[HashFinding]:
    """Return the hashes of a bucket that break a rule: of each kind the first so many, or all."""
    packed: dict[int, list[bytes]] = {}
    for blob in blobs:
        packed.setdefault(_HEADER.unpack_from(blob)[0], []).append(blob[_HEADER.size :])
    hashes = {kinds[number]: unpack_hashes(b"".join(parts)) for number, parts in packed.items()}
    found: list[HashFinding] = []
    for kind, own in hashes.items():
        present = hashes.get(key_kind(kind.name), own[:0])
        wrong = missing(own, present) if kind.role == "reference" else duplicates(own)
        if len(wrong):
            found.append((kind, np.ascontiguousarray(wrong[:listed_max]).tobytes(), len(wrong)))
    return found


def _ordered(rows: pa.Table) -> pa.Table:
    keys = rows["key"]
    if len(keys) > 1 and not pc.all(pc.less(keys.slice(0, len(keys) - 1), keys.slice(1))).as_py():
        return rows.take(pc.sort_indices(rows, [("key", "ascending")]))
    return rows
