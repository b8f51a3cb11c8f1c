"""Check of a stash: of its log, its files and its rows.

The check changes nothing and does not stop at damage: every defect becomes a finding that says if and how it can be
repaired, and the rest is still checked. A part that cannot be checked because of other damage gets a note. Other
processes may write meanwhile: the state that is checked is the newest one at the start. If retention ends under the
check, what it did not find is looked for again, in a newer state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pyarrow as pa
from google.protobuf.message import DecodeError, Message

from catalog.engine.codec import bounded_batches
from catalog.engine.log.protocol import DataFile, FileKind, Log, LogState, Operation
from catalog.engine.migrate.contradictions import contradictions
from catalog.engine.stash.constraint_columns import ConstraintColumns, row_referred_keys, row_unique_bytes
from catalog.engine.stash.constraint_index import ConstraintCounts
from catalog.engine.stash.constraints import Constraints
from catalog.engine.stash.engine_rows import ENGINE_COLLECTIONS
from catalog.engine.stash.keyed_hash import hash_value
from catalog.engine.stash.registry import Registry
from catalog.engine.stash.registry import key_text as message_text
from catalog.errors import CatalogError
from catalog.tools.fsck.files import check_orphans, check_settled, check_ts, present_files, read_file
from catalog.tools.fsck.findings import (
    CHANGE_ROWS,
    MEND_REFERENCE,
    OTHER_BUILD,
    RESTORE,
    WRITE_AGAIN,
    WRITE_DECLARED,
    WRITE_MARKS,
    FsckCode,
    FsckFinding,
    FsckFindings,
    FsckReport,
    Severity,
)
from catalog.tools.fsck.log import LogHistory, read_history, replay
from catalog.tools.fsck.rows import VersionTypes, invalid_legacy_rows, invalid_messages, key_text, undeclared_enums

_REPAIRS = {FsckCode.UNFAITHFUL: WRITE_AGAIN, FsckCode.UNDECLARED: WRITE_DECLARED}
"""Of a row whose value breaks a rule; the key of a row cannot be changed."""
_KEY_BYTES = len(hash_value(b""))

TypesAt = Callable[[int | None], VersionTypes]
"""Returns the types of a version; the version is None if the store was not initialised."""


def fsck(log: Log, registry: Registry, constraints: Constraints, *, every_state: bool = False) -> FsckReport:
    """Check the newest state of a stash; with `every_state` also the files and sums of all that are retained."""
    return check(log, lambda _: VersionTypes(registry, constraints), FsckFindings(), every_state=every_state)


def check(log: Log, types_at: TypesAt, findings: FsckFindings, *, every_state: bool = False) -> FsckReport:
    """Check a stash with the types of its newest state, and add to earlier findings."""
    known_types = cache(types_at)
    return check_settled(log, lambda own: _check_once(log, known_types, own, every_state=every_state), findings)


def _check_once(log: Log, types_at: TypesAt, findings: FsckFindings, *, every_state: bool) -> tuple[int, int, int]:
    """Check the state that is the newest now; return the number of entries, files and rows."""
    present = present_files(log, findings)
    history, entries = read_history(log, findings)
    if history is None:
        return entries, 0, 0
    checked = _Fsck(log, types_at(history.newest.stash_version), findings)
    checked.run(history, every_state=every_state)
    check_orphans(log, history, present, findings)
    return entries, checked.file_count, checked.row_count


@dataclass(slots=True)
class _Tally:
    """Sums over the rows in the live files of a collection, by hash."""

    counts: ConstraintCounts | None
    """None if the types of the collection are not known."""
    whole: bool = True
    """True if every file could be read."""
    sums: Counter[bytes] = field(default_factory=Counter)
    """By hash of key and value."""
    newest: dict[bytes, tuple[int, int, bytes]] = field(default_factory=dict)
    """The newest row that the tail has for each key: ts, diff and hash."""
    suspects: list[tuple[bytes, FsckFinding]] = field(default_factory=list)
    """Findings about rows, which are reported if the row is live."""

    @property
    def keys(self) -> Counter[bytes]:
        counts: Counter[bytes] = Counter()
        for row, count in self.sums.items():
            counts[row[:_KEY_BYTES]] += count
        return counts


@dataclass(slots=True)
class _Fsck:
    log: Log
    types: VersionTypes
    findings: FsckFindings
    file_count: int = 0
    row_count: int = 0
    _sums: dict[str, Counter[bytes]] = field(default_factory=dict)
    """By path of each file that could be read: the sums of its rows."""
    _tallies: dict[str, _Tally] = field(default_factory=dict)

    def run(self, history: LogHistory, *, every_state: bool) -> None:
        born = replay(self.log, history, self.findings)
        newest = history.newest
        for name in sorted({file.collection for file in newest.files.values()}):
            collection = self.types.registry.by_name.get(name)
            self._tallies[name] = _Tally(
                ConstraintCounts(collection, self.types.registry, self.types.constraints) if collection else None
            )
            if self.types.known and name not in {*self.types.registry.by_name, *self.types.others}:
                self.findings.add(FsckCode.COLLECTION, f"`{name}`", "it is not known at this version", OTHER_BUILD)
        for path, file in (history.files() if every_state else newest.files).items():
            self._check_file(file, born.get(path), live=path in newest.files)
        for name, tally in self._tallies.items():
            self._check_sums(name, tally, newest)
            self._check_uniques(name, tally, newest)
            self._check_references(name, tally, newest)
        self._check_engine_rows(newest)
        if every_state:
            self._check_states(history)

    def _check_file(self, file: DataFile, born: tuple[int, int] | None, *, live: bool) -> None:
        self.file_count += 1
        rows = read_file(self.log, file, self.findings)
        if rows is None:
            if live:
                self._tallies[file.collection].whole = False
            return
        self.row_count += rows.num_rows
        check_ts(file, rows, born, self.findings)
        self._sums[file.path] = sums = Counter[bytes]()
        start = 0
        for batch in bounded_batches(rows):
            for key, value, diff in _pylists(batch, "key", "value", "diff"):
                sums[_row(key, value)] += diff
            if live:
                self._tally(file, batch, start)
            start += batch.num_rows
        if live:
            self._tallies[file.collection].sums.update(sums)

    def _tally(self, file: DataFile, batch: pa.RecordBatch, start: int) -> None:
        tally = self._tallies[file.collection]
        if file.kind is FileKind.TAIL:
            for key, value, ts, diff in _pylists(batch, "key", "value", "ts", "diff"):
                row = _row(key, value)
                tally.newest[row[:_KEY_BYTES]] = max(tally.newest.get(row[:_KEY_BYTES], (-1, 0, b"")), (ts, diff, row))
        collection = self.types.registry.by_name.get(file.collection)
        others = self.types.others.get(file.collection)
        if collection is not None:
            for side, message in (("key", collection.key_type), ("value", collection.value_type)):
                self._suspect(file, batch, start, invalid_messages(message, batch[side]), f"its {side}")
                if file.collection not in ENGINE_COLLECTIONS:  # whose rows are compared with the log as a whole
                    self._suspect(file, batch, start, undeclared_enums(message, side, batch[side]), f"its {side}")
            if tally.counts:
                _count(tally.counts, batch)
        elif others is not None:
            self._suspect(file, batch, start, invalid_legacy_rows(others, batch), "it")

    def _suspect(
        self,
        file: DataFile,
        batch: pa.RecordBatch,
        start: int,
        invalid: dict[int, tuple[FsckCode, str]],
        whose: str,
    ) -> None:
        """Keep findings about rows of a batch until it is known if the rows are live."""
        for position, (code, reason) in invalid.items():
            key, value = (batch[name][position].as_py() for name in ("key", "value"))
            where = f"`{file.collection}` {key_text(self.types.registry.by_name.get(file.collection), key)}"
            what = f"{whose}, row {start + position} of {file.path}: {reason}"
            repair = _REPAIRS.get(code, RESTORE) if whose == "its value" else RESTORE
            suspect = FsckFinding(code, Severity.ERROR, where, what, repair)
            self._tallies[file.collection].suspects.append((_row(key, value), suspect))

    def _check_sums(self, name: str, tally: _Tally, newest: LogState) -> None:
        for row, suspect in tally.suspects:
            if tally.sums[row] > 0 or not tally.whole:
                self.findings.add(suspect.code, suspect.where, suspect.what, suspect.repair)
        if not tally.whole:
            self.findings.unchecked(f"`{name}`", "its rows were not added up: not all of its files can be read")
            return
        keys = tally.keys
        wrong = {row[:_KEY_BYTES] for row, count in tally.sums.items() if count not in {0, 1}}
        wrong |= {key for key, count in keys.items() if count > 1}
        disorderly = {
            key for key, (_, diff, row) in tally.newest.items() if (tally.sums[row] if diff > 0 else 1 - keys[key]) != 1
        } - wrong
        for key, row in self._rows_by_key(name, newest, wrong | disorderly).items():
            where = f"`{name}` {key_text(self.types.registry.by_name.get(name), row)}"
            if key in wrong:
                counts = sorted(count for row, count in tally.sums.items() if row[:_KEY_BYTES] == key and count)
                what = f"its values occur {', '.join(map(str, counts))} times; only one value may occur, once"
                self.findings.add(FsckCode.MULTIPLICITY, where, what, RESTORE)
            else:
                self.findings.add(
                    FsckCode.ORDER, where, "the newest row of its tail is not what its rows add up to", RESTORE
                )

    def _check_uniques(self, name: str, tally: _Tally, newest: LogState) -> None:
        for unique, counts in tally.counts.uniques.items() if tally.counts and tally.whole else ():
            doubled = {hashed for hashed, count in counts.items() if count > 1}
            rows: dict[bytes, list[str]] = {}
            for key, value in self._decoded(name, newest) if doubled else ():
                common = row_unique_bytes(unique, key, value)
                if hash_value(common) in doubled:
                    rows.setdefault(common, []).append(message_text(key))
            for alike in rows.values():
                what = f"rows agree in {', '.join(unique.paths)}: {'; '.join(alike)}"
                self.findings.add(FsckCode.DUPLICATE, f"`{name}` {alike[0]}", what, CHANGE_ROWS)

    def _check_references(self, name: str, tally: _Tally, newest: LogState) -> None:
        for reference, counts in tally.counts.referred.items() if tally.counts and tally.whole else ():
            target = self._tallies.get(reference.target)
            present = target.keys if target else Counter[bytes]()
            lost = {key for key, count in counts.items() if count > 0 and present[key] <= 0}
            if not lost:
                continue
            if target and not target.whole:
                what = f"references to `{reference.target}` were not checked: not all of its files can be read"
                self.findings.unchecked(f"`{name}` {reference.path}", what)
                continue
            for key, value in self._decoded(name, newest):
                for referred in row_referred_keys(reference, self.types.registry, key, value):
                    if hash_value(referred) in lost:
                        absent = key_text(self.types.registry.named(reference.target), referred)
                        what = f"{reference.path} refers to `{reference.target}` {absent}, which does not exist"
                        self.findings.add(FsckCode.DANGLING, f"`{name}` {message_text(key)}", what, MEND_REFERENCE)

    def _check_engine_rows(self, newest: LogState) -> None:
        """Check the rows of the engine against the marks of the log, as doctor and repair do."""
        codes = {"fence_token": FsckCode.FENCE}
        for found in contradictions(newest, lambda name: self._decoded(name, newest) if self._judgeable(name) else ()):
            if self._judgeable(found.collection):
                code = codes.get(found.collection, FsckCode.VERSION)
                repair = WRITE_MARKS if found.is_mendable else RESTORE
                self.findings.add(code, f"`{found.collection}` {found.key}", found.found, repair)

    def _judgeable(self, name: str) -> bool:
        return name in self.types.registry.by_name and (name not in self._tallies or self._tallies[name].whole)

    def _check_states(self, history: LogHistory) -> None:
        """Check the sums of rows at every retained ts, and that no consolidation changed a row."""
        last = history.newest.version
        if not history.whole or history.first is None or self._sums.keys() != history.files().keys():
            self.findings.unchecked(
                f"ts before {last}", "rows were not added up: not all of the log and files can be read"
            )
            return
        sums, wrong, paths = Counter[bytes](), set[str](), dict(history.first.files)
        steps = [(history.first.version, Operation.CREATE, list(paths.values()), list[DataFile]())]
        for version, commit in sorted(history.commits.items()):
            gone = [paths.pop(path) for path in commit.removed_paths if path in paths]
            paths |= {file.path: file for file in commit.adds}
            steps.append((version, commit.operation, list(commit.adds), gone))
        for version, operation, added, gone in steps:
            for name in sorted({file.collection for file in added + gone} - wrong):
                delta = Counter[bytes]()
                for file in (file for file in added if file.collection == name):
                    delta.update(self._sums[file.path])
                for file in (file for file in gone if file.collection == name):
                    delta.subtract(self._sums[file.path])
                prefix = name.encode() + b"/"
                for row, diff in delta.items():
                    sums[prefix + row] += diff
                    sums[prefix + row[:_KEY_BYTES]] += diff
                changed = [row for row, diff in delta.items() if diff]
                if operation is Operation.CONSOLIDATE and changed:
                    what = f"it changed {len(changed)} rows of `{name}`, and should change none"
                    self.findings.add(FsckCode.CONSOLIDATION, f"entry {version}", what, RESTORE)
                odd = [r for r in delta if {sums[prefix + r], sums[prefix + r[:_KEY_BYTES]]} - {0, 1}]
                if odd:
                    wrong.add(name)
                    what = f"{len(odd)} rows of `{name}` occur more than once, less than never, or with several values"
                    self.findings.add(FsckCode.MULTIPLICITY, f"ts {version}", what, RESTORE)

    def _stored(self, name: str, newest: LogState) -> Iterator[tuple[bytes, bytes]]:
        """Yield every row in the readable live files of a collection; the row itself may be retracted."""
        for file in newest.files.values():
            if file.collection == name and file.path in self._sums:
                for batch in bounded_batches(self.log.read(file, ["key", "value"])):
                    yield from ((key, value) for key, value in _pylists(batch, "key", "value"))

    def _decoded(self, name: str, newest: LogState) -> Iterator[tuple[Message, Message]]:
        """Yield the live rows of a collection that can be decoded."""
        if name not in self._tallies:
            return
        left = {row for row, count in self._tallies[name].sums.items() if count > 0}
        for key, value in self._stored(name, newest):
            if (row := _row(key, value)) in left:
                left.discard(row)
                try:
                    yield self.types.registry.named(name).decode(key, value)
                except DecodeError:
                    continue

    def _rows_by_key(self, name: str, newest: LogState, wanted: set[bytes]) -> dict[bytes, bytes]:
        if not wanted:
            return {}
        return {hashed: key for key, _ in self._stored(name, newest) if (hashed := hash_value(key)) in wanted}


def _pylists(batch: pa.RecordBatch, *names: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(batch[name].to_pylist() for name in names), strict=True)


def _row(key: bytes, value: bytes) -> bytes:
    return hash_value(key) + hash_value(value)


def _count(counts: ConstraintCounts, batch: pa.RecordBatch) -> None:
    """Count the rows that can be decoded."""
    try:
        columns = ConstraintColumns.decode(counts.collection, batch["key"], batch["value"])
    except CatalogError:
        for row in _pylists(batch, "key", "value", "diff"):
            with suppress(DecodeError):
                counts.add_row(*row)
    else:
        counts.add_columns(columns, batch["diff"].to_numpy())
