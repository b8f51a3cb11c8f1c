"""File tasks: each reads its part of a collection, rewrites, verifies and writes it in one pass.

A task is plain data and runs in any process. What it wrote counts only if its report arrives: an attempt that was
killed or doubled leaves files that no commit refers to.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catalog.actions import Columnar, Delete, PerRow
from catalog.codec import bounded_batches
from catalog.engine.judging import SAMPLE, Judge, Rows, TooManyFaults, shown
from catalog.engine.parts import Part, Taken, read_part
from catalog.engine.prints import (
    Kind,
    Prints,
    Wanted,
    as_prints,
    doubled,
    fold,
    key_kind,
    missing,
    printed,
    reference_kind,
    unique_kind,
)
from catalog.engine.rewriting import DeleteRows, Rewrite, RewriteColumns, RewriteRows
from catalog.engine.types import Columns, registry_of, row_types
from catalog.engine.violations import Rule
from catalog.log.protocol import DataFile, Fence, FileKind, Log
from catalog.project import load_project
from catalog.stash.arrays import binary_column, dated
from catalog.stash.collections import Registry
from catalog.stash.consolidation import FILE_BYTES_MAX

Found = tuple[Kind, bytes, int]
"""A kind, up to some prints of it that break its rule, and how many there are."""
_HEADER = struct.Struct("<H")


@dataclass(frozen=True, slots=True)
class Setting:
    """What all tasks of a step have in common."""

    log: Log
    project: str
    old: int
    new: int
    fence: Fence
    base_ts: int
    """The ts that the step reads, and its base files carry."""
    commit_ts: int
    """The ts that the step's commit is to make, and its tail files carry."""
    created: frozenset[str] = frozenset()
    """Collections that hold nothing before the step: what is made for them is base."""
    wanted: Mapping[str, Wanted] = field(default_factory=dict)
    """The prints to be made, by collection."""
    compared: Mapping[str, Wanted] = field(default_factory=dict)
    """What need not be printed as long as no row differs in it from before."""
    buckets: int = 1
    faults_max: int | None = 1
    """None: whatever breaks a rule is looked for, and set aside."""
    sample: int = SAMPLE

    @property
    def registry(self) -> Registry:
        """The collections of the new version, in whatever process this is."""
        return registry_of(load_project(self.project), self.new)

    def judge(self) -> Judge:
        """One for a task."""
        return Judge(f"v{self.old}_to_v{self.new}", self.sample, self.faults_max)


@dataclass(frozen=True, slots=True)
class Task:
    """What to do with a part."""

    part: Part
    actions: tuple[Columnar | PerRow | Delete, ...] = ()
    """None: rows are only looked at, with the new types."""
    first_id: int = 0
    dry: bool = False
    """Nothing is written or printed: only ids are counted."""


@dataclass(frozen=True, slots=True)
class InsertTask:
    """Rows that a migration spells out."""

    collection: str
    rows: tuple[tuple[bytes, bytes], ...]


@dataclass(slots=True)
class Report:
    """What a task did."""

    collection: str
    number: int
    judge: Judge
    taken: Taken = field(default_factory=Taken)
    rows_before: int = 0
    rows_after: dict[str, int] = field(default_factory=dict)
    changed: int = 0
    deleted: int = 0
    inserted: Counter[str] = field(default_factory=Counter)
    """By collection: rows that are made beside what stored rows become."""
    files: list[DataFile] = field(default_factory=list)
    ids: int = 0
    id_bounds: tuple[int, int] | None = None
    keys_changed: bool = False
    differing: frozenset[Kind] = frozenset()
    """Of what was compared, that in which some row differs from before."""
    seconds: float = 0.0


@dataclass(slots=True)
class Emission:
    """The prints that a task made, divided into buckets: equal ones meet in one."""

    prints: dict[Kind, list[Prints]] = field(default_factory=dict)

    def add(self, made: Mapping[Kind, list[Prints]]) -> None:
        for kind, arrays in made.items():
            self.prints.setdefault(kind, []).extend(arrays)

    def packed(self, kinds: Sequence[Kind], buckets: int) -> Iterator[tuple[int, bytes]]:
        for number, kind in enumerate(kinds):
            if kind not in self.prints:
                continue
            prints = np.concatenate(self.prints[kind])
            if kind.role == "reference":
                prints = np.unique(prints, axis=0)
            where = fold(prints) % np.uint64(buckets)
            for bucket in range(buckets):
                own = prints[where == bucket] if buckets > 1 else prints
                if len(own):
                    yield bucket, _HEADER.pack(number) + own.tobytes()


def kinds_of(wanted: Mapping[str, Wanted]) -> tuple[Kind, ...]:
    """Every kind of print, in an order that all processes agree on."""
    found = {key_kind(name) for name, own in wanted.items() if own.keys}
    for own in wanted.values():
        found |= {unique_kind(unique) for unique in own.uniques}
        found |= {reference_kind(reference.target) for reference in own.references}
    return tuple(sorted(found, key=lambda kind: (kind.role, kind.name)))


def run_task(
    setting: Setting, task: Task, read: Callable[[Taken], Iterator[pa.Table]] | None = None
) -> tuple[Report, Emission]:
    """Do a task; `read` gives the rows of a part that came through a shuffle."""
    began, judge = perf_counter(), setting.judge()
    report, emission = Report(task.part.collection, task.part.number, judge), Emission()
    outputs: dict[str, list[Rows]] = {}
    try:
        rewrite = _rewrite(setting, task, judge)
        tables = read_part(setting.log, task.part, report.taken) if read is None else read(report.taken)
        for table in tables:
            for batch in bounded_batches(table):
                report.rows_before += batch.num_rows
                rows = Rows(batch["key"], batch["value"])
                made = _looked_at(setting, task, rows) if rewrite is None else rewrite.batch(rows)
                if not task.dry:
                    _print(setting, made, emission)
                if rewrite is not None and not task.dry:
                    for name, own in made.items():
                        outputs.setdefault(name, []).append(own._replace(decoded=None))
        for name, parts in outputs.items():
            table = pa.table({c: pa.chunked_array([rows[i] for rows in parts]) for i, c in enumerate(("key", "value"))})
            is_base = name == task.part.collection or name in setting.created
            files = write_rows(setting, name, table, judge, is_base=is_base)
            report.files += files
            report.rows_after[name] = sum(file.rows for file in files)
        if rewrite is not None:
            report.changed, report.deleted, report.inserted = rewrite.changed, rewrite.deleted, rewrite.inserted
            report.keys_changed, report.ids = rewrite.keys_changed, rewrite.ids_used
            report.differing = frozenset(rewrite.differing)
    except TooManyFaults:
        pass
    report.seconds = perf_counter() - began
    return report, emission


def run_insert(setting: Setting, task: InsertTask) -> tuple[Report, Emission]:
    """Verify and write rows that are added to a collection."""
    judge = replace(setting.judge(), sample=1)
    report, emission = Report(task.collection, 0, judge), Emission()
    keys, values = (binary_column(column).combine_chunks() for column in zip(*task.rows, strict=True))
    try:
        rows = judge.written(setting.registry.named(task.collection), Rows(keys, values))
        _print(setting, {task.collection: rows}, emission)
        table = pa.table({"key": rows.keys, "value": rows.values})
        is_base = task.collection in setting.created
        report.files = write_rows(setting, task.collection, table, judge, is_base=is_base)
        report.rows_after[task.collection] = sum(file.rows for file in report.files)
        report.inserted[task.collection] = len(task.rows)
    except TooManyFaults:
        pass
    return report, emission


def write_rows(setting: Setting, collection: str, rows: pa.Table, judge: Judge, *, is_base: bool) -> list[DataFile]:
    """Make files of new rows, in the order of keys; a key that is there twice is set aside."""
    if rows.num_rows == 0:
        return []
    ordered = _ordered(rows)
    keys = ordered["key"]
    equal = pc.equal(keys.slice(0, len(keys) - 1), keys.slice(1)) if len(keys) > 1 else None
    if equal is not None and pc.any(equal).as_py():
        kind = setting.registry.named(collection)
        for row in pc.indices_nonzero(equal).to_pylist():
            judge.spoil(Rule.KEY, collection, None, shown(kind, keys[row].as_py()), "two rows have this key")
        kept = pa.chunked_array([pa.array([True]), pc.invert(equal).combine_chunks()])
        ordered = ordered.filter(kept)
    kind_of_file, ts = (FileKind.BASE, setting.base_ts) if is_base else (FileKind.TAIL, setting.commit_ts)
    return [
        setting.log.write(collection, kind_of_file, setting.fence, dated(batch, ts))
        for batch in bounded_batches(ordered, bytes_max=FILE_BYTES_MAX, rows_max=ordered.num_rows)
    ]


def gather(kinds: Sequence[Kind], listed_max: int | None, blobs: Iterable[bytes]) -> list[Found]:
    """What is wrong with the prints of a bucket; of each kind so many, or all, are told."""
    packed: dict[int, list[bytes]] = {}
    for blob in blobs:
        packed.setdefault(_HEADER.unpack_from(blob)[0], []).append(blob[_HEADER.size :])
    prints = {kinds[number]: as_prints(b"".join(parts)) for number, parts in packed.items()}
    found: list[Found] = []
    for kind, own in prints.items():
        present = prints.get(key_kind(kind.name), own[:0])
        wrong = missing(own, present) if kind.role == "reference" else doubled(own)
        if len(wrong):
            found.append((kind, np.ascontiguousarray(wrong[:listed_max]).tobytes(), len(wrong)))
    return found


def _rewrite(setting: Setting, task: Task, judge: Judge) -> Rewrite | None:
    if not task.actions:
        return None
    project = load_project(setting.project)
    old = row_types(project, setting.old)[task.part.collection]
    new = setting.registry
    match task.actions:
        case (Columnar() as action,):
            compared = setting.compared.get(task.part.collection, Wanted())
            return RewriteColumns(old, new, judge, action, compared)
        case (PerRow() as action,):
            return RewriteRows(old, new, judge, action, task.first_id)
        case _:
            return DeleteRows(old, new, judge, [action for action in task.actions if isinstance(action, Delete)])


def _looked_at(setting: Setting, task: Task, rows: Rows) -> dict[str, Rows]:
    collection = task.part.collection
    if not setting.wanted[collection].decoded:
        return {collection: rows}
    kind = setting.registry.named(collection)
    return {collection: rows._replace(decoded=Columns(kind).decode(rows.keys, rows.values))}


def _print(setting: Setting, made: Mapping[str, Rows], emission: Emission) -> None:
    registry = setting.registry
    for name, rows in made.items():
        wanted = setting.wanted.get(name)
        if wanted:
            emission.add(printed(wanted, name, registry, rows.keys, rows.decoded))


def _ordered(rows: pa.Table) -> pa.Table:
    keys = rows["key"]
    if len(keys) > 1 and not pc.all(pc.less(keys.slice(0, len(keys) - 1), keys.slice(1))).as_py():
        return rows.take(pc.sort_indices(rows, [("key", "ascending")]))
    return rows
