"""Generation of a store: one commit with base files in the order of keys, then commits that change some of the rows.

Rows are computed and written in batches, so that memory does not grow with their number. The log is that of a store in
use: a fence, a base, and tails to merge with it.
"""

from __future__ import annotations

import os
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType, ModuleType
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import Message

from catalog.engine.base.descriptors import descriptor_of
from catalog.engine.base.project import Project
from catalog.engine.codec import codec_for, rebatch
from catalog.engine.log.data_files import rows_table
from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.protocol import ROWS, AppTxn, CommitRequest, DataFile, FileKind, Log, Operation
from catalog.engine.stash.compaction import FILE_BYTES_MAX
from catalog.engine.stash.constraints import Constraints
from catalog.engine.stash.recorded_types import record_rows
from catalog.engine.stash.registry import encode
from catalog.engine.stash.stash import Stash
from catalog.engine.stash.view import TailRow
from catalog.engine.storage.base import Storage, open_storage
from catalog.engine.storage.heartbeat import release
from catalog.engine.storage.identity import make_identity
from catalog.engine.storage.layout import stash_uri
from catalog.engine.storage.write_probe import require_exclusive
from catalog.errors import NotEmptyError
from catalog.tools.generator.draw import Draw
from catalog.tools.generator.legacy import legacy_column
from catalog.tools.generator.plan import TAIL_COMMITS, CollectionRecipe, GenerationPlan, RowExtent, make_plan, updated
from catalog.tools.generator.random_columns import numbers
from catalog.tools.generator.shape import StoreShape
from catalog.tools.generator.texts import USUAL, Lengths

_BATCH_ROWS_MAX = 65_536
_BATCH_BYTES = FILE_BYTES_MAX // 2
_SORTED_ROWS_MAX = 1 << 21
"""Keys that are sorted at once; of more, each range is computed and sorted by itself."""
_TRIAL_ROWS = 256
"""Rows that are computed first, to estimate the length of the others."""


@dataclass(frozen=True, slots=True)
class Generated:
    uri: str
    version: int
    rows: Mapping[str, int]
    """Rows of the newest state by collection, without engine collections."""

    @property
    def total(self) -> int:
        return sum(self.rows.values())


def generate(  # noqa: PLR0913 - the public entry: size, seed and place
    project: Project,
    store: str | os.PathLike[str],
    version: int,
    rows: int,
    seed: int,
    *,
    like: StoreShape | None = None,
    options: Mapping[str, str] = MappingProxyType({}),
) -> Generated:
    """Generate a store of a version in an empty place, with about so many rows; equal arguments give equal rows.

    With `like`, the proportions of collections and the lengths of values are those of the measured store.
    """
    project.check_version(version)
    storage = open_storage(os.fspath(store), options)
    _require_empty(storage)
    require_exclusive(storage)
    plan = make_plan(project, version, rows, seed, like)
    log = DeltaLog(stash_uri(storage.uri), options)
    log.create(uuid.uuid4().hex)
    stash = Stash.open(log, plan.registry, Constraints())
    stash.take_over(0, "generator")
    sources = [_RowSource.of(plan, recipe, _legacy_types(project, version)) for recipe in plan.recipes.values()]
    counts = _append_base(log, stash, sources, record_rows(project, version), version)
    for commit in range(TAIL_COMMITS):
        counts.update(_append_tail(log, sources, commit))
    identity = make_identity(storage, project.name)
    release(storage, stash.state.fence, identity.id)
    return Generated(storage.uri, version, counts)


def _require_empty(storage: Storage) -> None:
    stray = next(storage.entries(), None)
    if stray is not None:
        raise NotEmptyError(storage.uri, stray.path)


def _legacy_types(project: Project, version: int) -> ModuleType | None:
    """Return the types of a version that has no descriptors; the migration from that version has them."""
    if version >= project.first_proto:
        return None
    found: ModuleType = project.migration_from(version, project.build).legacy  # type: ignore[union-attr]  # it has one
    return found


def _append_base(
    log: Log, stash: Stash, sources: list[_RowSource], records: list[tuple[Message, Message]], version: int
) -> Counter[str]:
    """Commit the base files and the version; return the rows of each collection."""
    state, files, counts = stash.state, list[DataFile](), Counter[str]()
    for source in sources:
        counts[source.name] = 0
        for batch in rebatch(source.base(state.version), FILE_BYTES_MAX):
            files.append(log.write(source.name, FileKind.BASE, state.fence, pa.Table.from_batches([batch])))
            counts[source.name] += batch.num_rows
    config = stash.registry.named("config")
    key: Message = config.key_type(name="stash_version")
    value: Message = config.value_type(number=version)
    rows = [(encode(key), encode(value), state.version + 1, 1) for key, value in [(key, value), *records]]
    files.append(log.write("config", FileKind.TAIL, state.fence, rows_table(rows)))
    # Earlier states are unreadable: a base is no change that a feed could show.
    app_txns = {AppTxn.STASH_VERSION: version, AppTxn.FRONTIER: state.version + 1}
    log.compare_and_append(
        state, CommitRequest(Operation.TRANSACTION, uuid.uuid4().hex, tuple(files), app_txns=app_txns)
    )
    return counts


def _append_tail(log: Log, sources: list[_RowSource], commit: int) -> Counter[str]:
    """Commit inserted, changed and deleted rows; return the difference in rows of each collection."""
    state, files, counts = log.state(log.head(0)), list[DataFile](), Counter[str]()
    for source in sources:
        if rows := source.tail(commit, state.version + 1):
            files.append(log.write(source.name, FileKind.TAIL, state.fence, rows_table(rows)))
            counts[source.name] = sum(diff for *_, diff in rows)
    if files:
        log.compare_and_append(state, CommitRequest(Operation.TRANSACTION, uuid.uuid4().hex, tuple(files)))
    return counts


@dataclass(slots=True)
class _RowSource:
    """The stored rows of one collection, computed by their numbers."""

    plan: GenerationPlan
    recipe: CollectionRecipe
    legacy: ModuleType | None
    lengths: Lengths
    batch_rows: int
    _revisions: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: GenerationPlan, recipe: CollectionRecipe, legacy: ModuleType | None) -> _RowSource:
        source = cls(plan, recipe, legacy, Lengths(0, 0), _TRIAL_ROWS)
        trial = numbers(0, min(source.extent.total, _TRIAL_ROWS))
        bare = _mean(source.values(trial, 0))
        known = plan.like.collections.get(source.name) if plan.like is not None else None
        source.lengths = USUAL
        if known is not None:
            source.lengths = Lengths(max(known.value_bytes_mean - bare, 0), max(known.value_bytes_p95 - bare, 0))
        row_bytes = bare + source.lengths.mean + _mean(source.keys(trial))
        source.batch_rows = max(1, min(_BATCH_ROWS_MAX, int(_BATCH_BYTES / max(row_bytes, 1))))
        return source

    @property
    def name(self) -> str:
        return self.recipe.collection.name

    @property
    def extent(self) -> RowExtent:
        return self.plan.extents[self.name]

    def keys(self, rows: pa.Array) -> pa.BinaryArray:
        return self._encoded("key", rows, 0)

    def values(self, rows: pa.Array, revision: int) -> pa.BinaryArray:
        return self._encoded("value", rows, revision)

    def base(self, ts: int) -> Iterator[pa.Table]:
        """Yield the rows of the base in the order of keys, in parts."""
        for ordered, keys in self._ordered():
            for start in range(0, len(ordered), self.batch_rows):
                rows, own = ordered.slice(start, self.batch_rows), keys.slice(start, self.batch_rows)
                dates = pa.repeat(pa.scalar(ts, pa.int64()), len(rows))
                diff = pa.repeat(pa.scalar(1, pa.int32()), len(rows))
                yield pa.Table.from_arrays([own, self.values(rows, 0), dates, diff], schema=ROWS)

    def tail(self, commit: int, ts: int) -> list[TailRow]:
        """Return the rows of a later commit: first those it takes away, then those it adds."""
        extent = self.extent
        changed = updated(self.recipe, extent, commit)
        deleted = range(extent.lasting + commit, extent.base, TAIL_COMMITS)
        inserted = range(extent.base + commit, extent.total, TAIL_COMMITS)
        removed: list[TailRow] = [(key, value, ts, -1) for key, value in self._rows(deleted, 0)]
        added: list[TailRow] = [(key, value, ts, 1) for key, value in self._rows(inserted, 0)]
        for revision in range(commit + 1):
            same = [number for number in changed if self._revisions.get(number, 0) == revision]
            before, after = self._rows(same, revision), self._rows(same, commit + 1)
            for number, (key, old), (_, new) in zip(same, before, after, strict=True):
                if old != new:
                    removed.append((key, old, ts, -1))
                    added.append((key, new, ts, 1))
                    self._revisions[number] = commit + 1
        return removed + added

    def _rows(self, wanted: range | list[int], revision: int) -> list[tuple[bytes, bytes]]:
        rows = pa.array(list(wanted), pa.uint64())
        if not len(rows):
            return []
        return list(zip(self.keys(rows).to_pylist(), self.values(rows, revision).to_pylist(), strict=True))

    def _ordered(self) -> Iterator[tuple[pa.Array, pa.BinaryArray]]:
        """Yield the numbers and keys of the rows of the base, in the order of keys."""
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
            if not self.recipe.keys_differ and len(own) > 1:
                first = pa.concat_arrays([pa.array([True]), pc.not_equal(own[1:], own[:-1])])
                rows, own = rows.filter(first), own.filter(first)
            yield rows, own

    def _bounds(self, parts: int) -> list[bytes]:
        """Return keys that divide the collection into about equal parts."""
        if parts <= 1:
            return []
        count = self.extent.base
        probes = pa.array(range(0, count, max(count // (parts * _TRIAL_ROWS), 1)), pa.uint64())
        keys = sorted(self.keys(probes).to_pylist())
        return sorted({keys[len(keys) * part // parts] for part in range(1, parts)})

    def _encoded(self, side: Literal["key", "value"], rows: pa.Array, revision: int) -> pa.BinaryArray:
        messages = Draw(self.plan, self.recipe, rows, revision, self.lengths).side(side)
        collection = self.recipe.collection
        message = descriptor_of(collection.key_type if side == "key" else collection.value_type)
        if self.legacy is None or self.name not in self.legacy.COLLECTIONS:
            return codec_for(message).encode(messages)
        return legacy_column(self.legacy, getattr(self.legacy.COLLECTIONS[self.name], side), message, messages)


def _between(keys: pa.BinaryArray, low: bytes | None, high: bytes | None) -> pa.Array:
    above = pc.greater_equal(keys, pa.scalar(low or b"", pa.binary()))
    return above if high is None else pc.and_(above, pc.less(keys, pa.scalar(high, pa.binary())))


def _mean(column: pa.BinaryArray) -> float:
    return float(pc.mean(pc.binary_length(column)).as_py() or 0.0)
