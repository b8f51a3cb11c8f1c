"""Whether a stash is whole: everything that can be checked of its log, its files and its rows.

Never changes anything and never stops at damage: whatever is wrong becomes a finding that says whether and how it can
be repaired, and the rest is still checked. What other damage keeps from being judged is not guessed, but noted. Others
may write meanwhile: checked is the state that was the newest when it began.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import DecodeError, Message

from catalog.codec import bounded_batches
from catalog.errors import CatalogError, CorruptFileError, InvalidChangeError, MissingFileError
from catalog.log.files import check_rows
from catalog.log.protocol import ROWS, DataFile, Fence, FileKind, Log, Mark, Operation, State
from catalog.stash.collections import Collection, Registry
from catalog.stash.constraints import Constraints, digest, referred_keys, unique_digest
from catalog.stash.encodings import Types, named, strange_messages, strange_rows, text
from catalog.stash.findings import (
    CHANGE_ROWS,
    MEND_REFERENCE,
    OTHER_BUILD,
    RESTORE,
    RESTORE_FILE,
    SWEEP,
    TAKE_OVER,
    WRITE_AGAIN,
    Code,
    Finding,
    Findings,
    Report,
    Severity,
)
from catalog.stash.history import History, read_history, replay

_KEY_BYTES = len(digest(b""))

TypesAt = Callable[[int | None], Types]
"""The types of a version; none is that of a store that was not initialised."""


def fsck(log: Log, registry: Registry, constraints: Constraints, *, every_state: bool = False) -> Report:
    """Check the newest state of a stash; with `every_state` also the files and sums of all that are retained."""
    return check(log, lambda _: Types(registry, constraints), Findings(), every_state=every_state)


def check(log: Log, types_at: TypesAt, findings: Findings, *, every_state: bool = False) -> Report:
    """The same with whatever types the version of the newest state has, and with more that was found before."""
    try:
        # Listed before the log is read: whatever is committed meanwhile is referred to.
        present = {file.path for file in log.files()}
    except CatalogError as error:
        present = set()
        findings.add(Code.UNREADABLE, log.uri, error.what, f"cannot be repaired from here: {error.next}")
    history, entries = read_history(log, findings)
    if history is None:
        return Report(findings.all(log.uri), entries, 0, 0, dict(findings.counts))
    checked = _Fsck(log, types_at(history.newest.marks.get(Mark.STASH_VERSION)), findings)
    checked.run(history, every_state=every_state)
    _check_orphans(log, history, present, findings)
    return Report(findings.all(log.uri), entries, checked.file_count, checked.row_count, dict(findings.counts))


def _check_orphans(log: Log, history: History, present: set[str], findings: Findings) -> None:
    if not history.whole:
        findings.unchecked(log.uri, "files that nothing refers to were not looked for: not all of the log can be read")
        return
    for path in sorted(present - history.files().keys()):
        findings.add(Code.ORPHAN, path, "no state that is retained refers to it", SWEEP, Severity.SWEEPABLE)


@dataclass(slots=True)
class _Tally:
    """What the rows in a collection's live files add up to, by hashes alone."""

    uniques: tuple[Counter[bytes], ...]
    referred: tuple[Counter[bytes], ...]
    whole: bool = True
    """Every file could be read."""
    sums: Counter[bytes] = field(default_factory=Counter)
    """By key and value."""
    said: dict[bytes, tuple[int, int, bytes]] = field(default_factory=dict)
    """The newest that the tail says of each key: ts, diff and row."""
    suspects: list[tuple[bytes, Finding]] = field(default_factory=list)
    """Findings about rows, which count if the row is live."""

    @property
    def keys(self) -> Counter[bytes]:
        counts: Counter[bytes] = Counter()
        for row, count in self.sums.items():
            counts[row[:_KEY_BYTES]] += count
        return counts


@dataclass(slots=True)
class _Fsck:
    log: Log
    types: Types
    findings: Findings
    file_count: int = 0
    row_count: int = 0
    _sums: dict[str, Counter[bytes]] = field(default_factory=dict)
    """By path: what the rows of each file that could be read add up to."""
    _tallies: dict[str, _Tally] = field(default_factory=dict)

    def run(self, history: History, *, every_state: bool) -> None:
        born = replay(self.log, history, self.findings)
        newest = history.newest
        for name in sorted({file.collection for file in newest.files.values()}):
            uniques, references = self.types.constraints.uniques_of(name), self.types.constraints.references_of(name)
            self._tallies[name] = _Tally(tuple(Counter() for _ in uniques), tuple(Counter() for _ in references))
            if self.types.known and name not in {*self.types.registry.by_name, *self.types.others}:
                self.findings.add(Code.COLLECTION, f"`{name}`", "it is not known at this version", OTHER_BUILD)
        for path, file in (history.files() if every_state else newest.files).items():
            self._check_file(file, born.get(path), live=path in newest.files)
        for name, tally in self._tallies.items():
            self._check_sums(name, tally, newest)
            self._check_uniques(name, tally, newest)
            self._check_references(name, tally, newest)
        self._check_fence(newest)
        self._check_version(newest)
        if every_state:
            self._check_states(history)

    def _check_file(self, file: DataFile, born: tuple[int, int] | None, *, live: bool) -> None:
        self.file_count += 1
        rows = self._read(file)
        if rows is None:
            if live:
                self._tallies[file.collection].whole = False
            return
        self.row_count += rows.num_rows
        found = pc.min_max(rows["ts"])
        ts = found["min"].as_py(), found["max"].as_py()
        if ts != (file.ts_min, file.ts_max):
            what = f"its rows are of ts {ts[0]} to {ts[1]}, the log says {file.ts_min} to {file.ts_max}"
            self.findings.add(Code.TS, file.path, what, RESTORE)
        elif born is not None and not born[0] <= ts[0] <= ts[1] <= born[1]:
            what = f"its rows are of ts {ts[0]} to {ts[1]}, and must be of {born[0]} to {born[1]}"
            self.findings.add(Code.TS, file.path, what, RESTORE)
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

    def _read(self, file: DataFile) -> pa.Table | None:
        """The rows of a file, if they can be worked with."""
        try:
            rows = self.log.read(file)
        except MissingFileError as error:
            self.findings.add(Code.MISSING, file.path, error.what, RESTORE_FILE)
            return None
        except CorruptFileError as error:
            self.findings.add(Code.CORRUPT, file.path, error.what, RESTORE_FILE)
            return None
        except Exception as error:  # noqa: BLE001 - whatever a file makes a reader do, the others are still checked
            self.findings.add(Code.UNREADABLE, file.path, f"it cannot be read: {error}", RESTORE_FILE)
            return None
        try:
            check_rows(file.collection, file.kind, rows)
        except InvalidChangeError as error:
            self.findings.add(Code.CONTENT, file.path, error.reason, RESTORE)
        usable = rows.schema.equals(ROWS) and rows.num_rows and not any(column.null_count for column in rows.columns)
        return rows if usable else None

    def _tally(self, file: DataFile, batch: pa.RecordBatch, start: int) -> None:
        tally = self._tallies[file.collection]
        if file.kind is FileKind.TAIL:
            for key, value, ts, diff in _pylists(batch, "key", "value", "ts", "diff"):
                row = _row(key, value)
                tally.said[row[:_KEY_BYTES]] = max(tally.said.get(row[:_KEY_BYTES], (-1, 0, b"")), (ts, diff, row))
        collection = self.types.registry.by_name.get(file.collection)
        others = self.types.others.get(file.collection)
        if collection is not None:
            for side, message in (("key", collection.key_type), ("value", collection.value_type)):
                self._suspect(file, batch, start, strange_messages(message, batch[side]), f"its {side}")
            self._count(collection, tally, batch)
        elif others is not None:
            self._suspect(file, batch, start, strange_rows(others, batch), "it")

    def _suspect(
        self,
        file: DataFile,
        batch: pa.RecordBatch,
        start: int,
        strange: dict[int, tuple[Code, str]],
        whose: str,
    ) -> None:
        """Keep what is strange about some rows of a batch until it is known whether they are live."""
        for position, (code, reason) in strange.items():
            key, value = (batch[name][position].as_py() for name in ("key", "value"))
            where = f"`{file.collection}` {named(self.types.registry.by_name.get(file.collection), key)}"
            what = f"{whose}, row {start + position} of {file.path}: {reason}"
            repair = WRITE_AGAIN if code is Code.UNFAITHFUL and whose == "its value" else RESTORE
            suspect = Finding(code, Severity.ERROR, where, what, repair)
            self._tallies[file.collection].suspects.append((_row(key, value), suspect))

    def _count(self, collection: Collection, tally: _Tally, batch: pa.RecordBatch) -> None:
        """Take in what the rows have that must be unique or be there."""
        uniques = list(zip(tally.uniques, self.types.constraints.uniques_of(collection.name), strict=True))
        references = list(zip(tally.referred, self.types.constraints.references_of(collection.name), strict=True))
        if not uniques and not references:
            return
        for key, value, diff in _pylists(batch, "key", "value", "diff"):
            try:
                decoded = collection.decode(key, value)
            except DecodeError:
                continue
            for counts, unique in uniques:
                counts[unique_digest(unique, *decoded)] += diff
            for counts, reference in references:
                for referred in referred_keys(reference, self.types.registry, *decoded):
                    counts[digest(referred)] += diff

    def _check_sums(self, name: str, tally: _Tally, newest: State) -> None:
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
            key for key, (_, diff, row) in tally.said.items() if (tally.sums[row] if diff > 0 else 1 - keys[key]) != 1
        } - wrong
        for key, row in self._rows_by_key(name, newest, wrong | disorderly).items():
            where = f"`{name}` {named(self.types.registry.by_name.get(name), row)}"
            if key in wrong:
                counts = sorted(count for row, count in tally.sums.items() if row[:_KEY_BYTES] == key and count)
                what = f"its values are there {', '.join(map(str, counts))} times; one may be there, once"
                self.findings.add(Code.MULTIPLICITY, where, what, RESTORE)
            else:
                self.findings.add(
                    Code.ORDER, where, "the newest row of its tail is not what its rows add up to", RESTORE
                )

    def _check_uniques(self, name: str, tally: _Tally, newest: State) -> None:
        for counts, unique in zip(tally.uniques, self.types.constraints.uniques_of(name), strict=True):
            doubled = {hashed for hashed, count in counts.items() if count > 1}
            if not doubled or not tally.whole:
                continue
            rows: dict[bytes, list[str]] = {}
            for key, value in self._decoded(name, newest):
                if (hashed := unique_digest(unique, key, value)) in doubled:
                    rows.setdefault(hashed, []).append(text(key))
            for alike in rows.values():
                what = f"rows agree in {', '.join(unique.paths)}: {'; '.join(alike)}"
                self.findings.add(Code.DUPLICATE, f"`{name}` {alike[0]}", what, CHANGE_ROWS)

    def _check_references(self, name: str, tally: _Tally, newest: State) -> None:
        for counts, reference in zip(tally.referred, self.types.constraints.references_of(name), strict=True):
            target = self._tallies.get(reference.target)
            there = {key for key, count in target.keys.items() if count > 0} if target else set()
            lost = {hashed for hashed, count in counts.items() if count > 0} - there
            if not lost or not tally.whole:
                continue
            if target and not target.whole:
                what = f"references to `{reference.target}` were not checked: not all of its files can be read"
                self.findings.unchecked(f"`{name}` {reference.path}", what)
                continue
            for key, value in self._decoded(name, newest):
                for referred in referred_keys(reference, self.types.registry, key, value):
                    if digest(referred) in lost:
                        absent = f"`{reference.target}` {named(self.types.registry.named(reference.target), referred)}"
                        what = f"{reference.path} refers to {absent}, which is not there"
                        self.findings.add(Code.DANGLING, f"`{name}` {text(key)}", what, MEND_REFERENCE)

    def _check_fence(self, newest: State) -> None:
        if not self._judgeable("fence_token"):
            return
        tokens = [value for _, value in self._decoded("fence_token", newest)]
        row = max((Fence(token.deploy_generation, token.epoch) for token in tokens), default=Fence(0, 0))  # type: ignore[attr-defined]
        if row != newest.fence:
            what = f"the row says {tuple(row)}, the marks of the log {tuple(newest.fence)}"
            self.findings.add(Code.FENCE, "`fence_token`", what, TAKE_OVER)

    def _check_version(self, newest: State) -> None:
        mark = newest.marks.get(Mark.STASH_VERSION)
        if mark is None or not self._judgeable("config"):
            return
        for key, value in self._decoded("config", newest):
            if key.name == "stash_version" and value.number != mark:  # type: ignore[attr-defined]
                what = f"the row says {value.number}, the mark of the log {mark}"  # type: ignore[attr-defined]
                self.findings.add(Code.VERSION, "`config` stash_version", what, RESTORE)

    def _judgeable(self, name: str) -> bool:
        return name in self.types.registry.by_name and (name not in self._tallies or self._tallies[name].whole)

    def _check_states(self, history: History) -> None:
        """Whether rows add up at every retained ts, and no consolidation changed one."""
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
                    self.findings.add(Code.CONSOLIDATION, f"entry {version}", what, RESTORE)
                odd = [r for r in delta if {sums[prefix + r], sums[prefix + r[:_KEY_BYTES]]} - {0, 1}]
                if odd:
                    wrong.add(name)
                    what = f"{len(odd)} rows of `{name}` are there other than not or once, or with several values"
                    self.findings.add(Code.MULTIPLICITY, f"ts {version}", what, RESTORE)

    def _stored(self, name: str, newest: State) -> Iterator[tuple[bytes, bytes]]:
        """Every row in the live files of a collection that can be read, live or not."""
        for file in newest.files.values():
            if file.collection == name and file.path in self._sums:
                for batch in bounded_batches(self.log.read(file, ["key", "value"])):
                    yield from ((key, value) for key, value in _pylists(batch, "key", "value"))

    def _decoded(self, name: str, newest: State) -> Iterator[tuple[Message, Message]]:
        """The live rows of a collection that can be decoded."""
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

    def _rows_by_key(self, name: str, newest: State, wanted: set[bytes]) -> dict[bytes, bytes]:
        if not wanted:
            return {}
        return {hashed: key for key, _ in self._stored(name, newest) if (hashed := digest(key)) in wanted}


def _pylists(batch: pa.RecordBatch, *names: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(batch[name].to_pylist() for name in names), strict=True)


def _row(key: bytes, value: bytes) -> bytes:
    return digest(key) + digest(value)
