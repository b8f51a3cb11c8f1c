"""Making a store: the rows of its base in the order of keys, then commits that change some of them.

Rows are made and written in batches, so that memory does not grow with their number. The log holds what a store has
that was in use: a fence, a base, and tails that have to be merged with it.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType, ModuleType

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import Message

from catalog.codec import bounded_batches, codec_for
from catalog.errors import NotAStoreError
from catalog.generator.draw import Draw
from catalog.generator.fields import descriptor_of
from catalog.generator.legacy import legacy_column
from catalog.generator.plan import TAIL_COMMITS, Extent, Making, Plan, make_plan, updated
from catalog.generator.statistics import Statistics
from catalog.generator.texts import USUAL, Lengths
from catalog.generator.vectors import numbers
from catalog.log.delta import DeltaLog
from catalog.log.protocol import ROWS, Change, DataFile, FileKind, Log, Mark, Operation
from catalog.log.storage import Storage, open_storage
from catalog.project import Project
from catalog.stash.arrays import rows_table
from catalog.stash.collections import encode
from catalog.stash.consolidation import FILE_BYTES_MAX
from catalog.stash.constraints import Constraints
from catalog.stash.heartbeat import release
from catalog.stash.identity import make_identity
from catalog.stash.stash import Stash
from catalog.stash.view import Happened

_BATCH_ROWS_MAX = 65_536
_BATCH_BYTES = FILE_BYTES_MAX // 2
_SORTED_ROWS_MAX = 1 << 21
"""So many keys are put in order at once; more are made anew for each part of them."""
_TRIED = 256
"""Rows that are made to learn how long others will be."""


@dataclass(frozen=True, slots=True)
class Generated:
    uri: str
    version: int
    rows: Mapping[str, int]
    """Of the newest state, by collection; the engine's own are not counted."""

    @property
    def total(self) -> int:
        return sum(self.rows.values())


def generate(  # noqa: PLR0913 - what is made, and where
    project: Project,
    store: str | os.PathLike[str],
    version: int,
    rows: int,
    seed: int,
    *,
    like: Statistics | None = None,
    options: Mapping[str, str] = MappingProxyType({}),
) -> Generated:
    """Make a store of a version in an empty place, of about so many rows; the same arguments make the same rows.

    With `like`, collections have the proportions and values the lengths of a store that was measured.
    """
    project.check_version(version)
    storage = open_storage(os.fspath(store), options)
    _require_empty(storage)
    plan = make_plan(project, version, rows, seed, like)
    log = DeltaLog(f"{storage.uri}/stash", options)
    log.create(uuid.uuid4().hex)
    stash = Stash.open(log, plan.registry, Constraints())
    stash.take_over(0, "generator")
    makers = [_Maker.of(plan, making, _legacy(project, version)) for making in plan.makings.values()]
    counts = _append_base(log, stash, makers, version)
    for commit in range(TAIL_COMMITS):
        for name, change in _append_tail(log, makers, commit).items():
            counts[name] += change
    identity = make_identity(storage, project.name)
    release(storage, stash.head.state.fence, identity.id)
    return Generated(storage.uri, version, counts)


def _require_empty(storage: Storage) -> None:
    stray = next(storage.entries(), None)
    if stray is not None:
        raise NotAStoreError(storage.uri, f"a store is generated in an empty place only, and {stray.path} is there")


def _legacy(project: Project, version: int) -> ModuleType | None:
    """The types of a version that has no descriptors, which the migration that leads on from it brings along."""
    if version >= project.first_proto:
        return None
    found: ModuleType = project.migration_from(version, project.build).legacy  # type: ignore[union-attr]
    return found


def _append_base(log: Log, stash: Stash, makers: list[_Maker], version: int) -> dict[str, int]:
    state, files, counts = stash.head.state, list[DataFile](), dict[str, int]()
    for maker in makers:
        counts[maker.name] = 0
        for table in _gathered(maker.base(state.version)):
            files.append(log.write(maker.name, FileKind.BASE, state.fence, table))
            counts[maker.name] += table.num_rows
    config = stash.head.registry.named("config")
    key: Message = config.key_type(name="stash_version")
    value: Message = config.value_type(number=version)
    row = rows_table([(encode(key), encode(value), state.version + 1, 1)])
    files.append(log.write("config", FileKind.TAIL, state.fence, row))
    # Nobody can read what was before: as a feed, a base would be no change at all.
    marks = {Mark.STASH_VERSION: version, Mark.FRONTIER: state.version + 1}
    log.compare_and_append(state, Change(Operation.TRANSACTION, uuid.uuid4().hex, tuple(files), marks=marks))
    return counts


def _append_tail(log: Log, makers: list[_Maker], commit: int) -> dict[str, int]:
    """Commit rows that come, change and go; answer by how many there are more of each collection."""
    state, files, counts = log.state(log.head(0)), list[DataFile](), dict[str, int]()
    for maker in makers:
        rows = maker.tail(commit, state.version + 1)
        if rows:
            files.append(log.write(maker.name, FileKind.TAIL, state.fence, rows_table(rows)))
            counts[maker.name] = sum(diff for *_, diff in rows)
    if files:
        log.compare_and_append(state, Change(Operation.TRANSACTION, uuid.uuid4().hex, tuple(files)))
    return counts


@dataclass(slots=True)
class _Maker:
    """Makes the stored rows of one collection."""

    plan: Plan
    making: Making
    legacy: ModuleType | None
    lengths: Lengths
    batch_rows: int
    _revisions: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan, making: Making, legacy: ModuleType | None) -> _Maker:
        maker = cls(plan, making, legacy, Lengths(0, 0), _TRIED)
        tried = numbers(0, min(maker.extent.total, _TRIED))
        bare = _mean(maker.values(tried, 0))
        known = plan.like.collections.get(maker.name) if plan.like is not None else None
        maker.lengths = USUAL
        if known is not None:
            maker.lengths = Lengths(max(known.value_bytes_mean - bare, 0), max(known.value_bytes_p95 - bare, 0))
        row_bytes = bare + maker.lengths.mean + _mean(maker.keys(tried))
        maker.batch_rows = max(1, min(_BATCH_ROWS_MAX, int(_BATCH_BYTES / max(row_bytes, 1))))
        return maker

    @property
    def name(self) -> str:
        return self.making.collection.name

    @property
    def extent(self) -> Extent:
        return self.plan.extents[self.name]

    def keys(self, rows: pa.Array) -> pa.BinaryArray:
        return self._encoded(0, self._draw(rows, 0).key())

    def values(self, rows: pa.Array, revision: int) -> pa.BinaryArray:
        return self._encoded(1, self._draw(rows, revision).value())

    def base(self, ts: int) -> Iterator[pa.Table]:
        """The rows of the base in the order of keys, in parts."""
        for ordered, keys in self._ordered():
            for start in range(0, len(ordered), self.batch_rows):
                rows, own = ordered.slice(start, self.batch_rows), keys.slice(start, self.batch_rows)
                dates = pa.repeat(pa.scalar(ts, pa.int64()), len(rows))
                diff = pa.repeat(pa.scalar(1, pa.int32()), len(rows))
                yield pa.Table.from_arrays([own, self.values(rows, 0), dates, diff], schema=ROWS)

    def tail(self, commit: int, ts: int) -> list[Happened]:
        """What a later commit does to rows of the base, and those that it adds."""
        extent = self.extent
        changed, gone, come = (
            updated(self.making, extent, commit),
            range(extent.lasting + commit, extent.base, TAIL_COMMITS),
            range(extent.base + commit, extent.total, TAIL_COMMITS),
        )
        rows: list[Happened] = [(key, value, ts, -1) for key, value in self._rows(gone, 0)]
        added: list[Happened] = [(key, value, ts, 1) for key, value in self._rows(come, 0)]
        for revision in range(commit + 1):
            same = [number for number in changed if self._revisions.get(number, 0) == revision]
            before, after = self._rows(same, revision), self._rows(same, commit + 1)
            for number, (key, old), (_, new) in zip(same, before, after, strict=True):
                if old != new:
                    rows.append((key, old, ts, -1))
                    added.append((key, new, ts, 1))
                    self._revisions[number] = commit + 1
        return rows + added

    def _rows(self, wanted: range | list[int], revision: int) -> list[tuple[bytes, bytes]]:
        rows = pa.array(list(wanted), pa.uint64())
        if not len(rows):
            return []
        return list(zip(self.keys(rows).to_pylist(), self.values(rows, revision).to_pylist(), strict=True))

    def _ordered(self) -> Iterator[tuple[pa.Array, pa.BinaryArray]]:
        """The numbers of the rows of the base and their keys, in the order of keys."""
        count = self.extent.base
        bounds = self._bounds(-(-count // _SORTED_ROWS_MAX))
        for low, high in zip([None, *bounds], [*bounds, None], strict=True):
            found, keys = [], []
            for start in range(0, count, _BATCH_ROWS_MAX):
                rows = numbers(start, min(start + _BATCH_ROWS_MAX, count))
                own = self.keys(rows)
                if low is not None or high is not None:
                    inside = _between(own, low, high)
                    rows, own = rows.filter(inside), own.filter(inside)
                found.append(rows)
                keys.append(own)
            if not found:
                continue
            rows, own = pa.concat_arrays(found), pa.concat_arrays(keys)
            order = pc.sort_indices(own)
            rows, own = rows.take(order), own.take(order)
            if not self.making.keys_differ and len(own) > 1:
                first = pa.concat_arrays([pa.array([True]), pc.not_equal(own[1:], own[:-1])])
                rows, own = rows.filter(first), own.filter(first)
            yield rows, own

    def _bounds(self, parts: int) -> list[bytes]:
        """Keys that cut all of them into about equal parts."""
        if parts <= 1:
            return []
        count = self.extent.base
        tried = pa.array(range(0, count, max(count // (parts * _TRIED), 1)), pa.uint64())
        keys = sorted(self.keys(tried).to_pylist())
        return sorted({keys[len(keys) * part // parts] for part in range(1, parts)})

    def _draw(self, rows: pa.Array, revision: int) -> Draw:
        return Draw(self.plan, self.making, rows, revision, self.lengths)

    def _encoded(self, side: int, messages: pa.StructArray) -> pa.BinaryArray:
        collection = self.making.collection
        message = descriptor_of((collection.key_type, collection.value_type)[side])
        if self.legacy is None or self.name not in self.legacy.COLLECTIONS:
            return codec_for(message).encode(messages)
        return legacy_column(self.legacy, self.legacy.COLLECTIONS[self.name][side], message, messages)


def _gathered(parts: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Parts put together as long as they fit a file."""
    waiting: list[pa.Table] = []
    size = 0
    for part in parts:
        for batch in bounded_batches(part, bytes_max=FILE_BYTES_MAX, rows_max=part.num_rows):
            if waiting and size + batch.nbytes > FILE_BYTES_MAX:
                yield pa.concat_tables(waiting)
                waiting, size = [], 0
            waiting.append(pa.Table.from_batches([batch]))
            size += batch.nbytes
    if waiting:
        yield pa.concat_tables(waiting)


def _between(keys: pa.BinaryArray, low: bytes | None, high: bytes | None) -> pa.Array:
    above = pc.greater_equal(keys, pa.scalar(low or b"", pa.binary()))
    return above if high is None else pc.and_(above, pc.less(keys, pa.scalar(high, pa.binary())))


def _mean(column: pa.BinaryArray) -> float:
    return float(pc.mean(pc.binary_length(column)).as_py() or 0.0)
