"""A log of tables beside a dictionary that says what it must hold at every version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from unittest.mock import patch

from catalog.engine.base.fence import Fence
from catalog.engine.log.data_files import rows_table
from catalog.engine.log.protocol import CommitRequest, FileKind, Log, LogState, Operation, Row
from catalog.engine.schema_change.folding import FoldingPolicy, fold, merge_tails, spill
from catalog.engine.schema_change.layers import LayerCache, LayeredView
from catalog.engine.schema_change.tails import ADDED, FOLDED, REMOVED, Change
from tests.engine.log.places import Place, change, created

FENCE = Fence(0, 0)
ROWS = "e12"
OTHER = "e13"
KEYS = (b"", b"a", b"aa", b"ab", b"ab\x00", b"ab\xff", b"b", b"b\xff", b"b\xff\xff", b"c", b"\xff", b"\xff\xff")
RANGES = ((b"", None), (b"a", b"b"), (b"aa", b"ab\xff"), (b"b", None), (b"bb", b"bc"), (b"c", b"a"))


@contextmanager
def small_pieces(few_rows_max: int = 512) -> Iterator[None]:
    """Make row groups of two rows and files of few, so that a dozen keys are spread over many."""
    pieces = {
        "catalog.engine.log.data_files.FEW_ROWS_MAX": 0,
        "catalog.engine.log.data_files._LAYER_GROUP_ROWS_MAX": 2,
        "catalog.engine.log.data_files._GROUP_ROWS_MAX": 3,
        "catalog.engine.schema_change.folding.FILE_BYTES_MAX": 60,
        "catalog.engine.schema_change.layers._FEW_ROWS_MAX": few_rows_max,
        "catalog.engine.schema_change.layers._FEW_KEYS_MAX": 1,
    }
    with ExitStack() as stack:
        for name, number in pieces.items():
            stack.enter_context(patch(name, number))
        yield


def value_at(key: bytes, ts: int) -> bytes:
    return b"%b@%d" % (key, ts)


@dataclass
class Layered:
    """One process that commits to a log of tables and follows it."""

    log: Log
    state: LogState
    view: LayeredView
    model: dict[bytes, Change] = field(default_factory=dict)
    past: list[tuple[LogState, dict[bytes, Change]]] = field(default_factory=list)

    @classmethod
    def at(cls, place: Place) -> Layered:
        log, state = created(place)
        return cls(log, state, LayeredView(LayerCache(log), state))

    def write(self, *, added: Iterable[bytes] = (), removed: Iterable[bytes] = (), told: bool = True) -> None:
        """Commit a transaction; a removed key that is added again is both, as an update is."""
        ts = self.state.version + 1
        rows: list[Row] = [(key, b"old", ts, -1) for key in sorted(set(removed))]
        rows += [(key, value_at(key, ts), ts, 1) for key in sorted(set(added))]
        if rows:
            file = self.log.write_tail(ROWS, FENCE, rows)
            self.commit(change(file), {ROWS: rows} if told else None)
            self._apply((key, (ts, ADDED if diff > 0 else REMOVED, value)) for key, value, _, diff in rows)

    def layer(self, ts: int, added: Iterable[bytes], removed: Iterable[bytes] = ()) -> None:
        """Commit a layer that is dated at an earlier ts, as the build of an index does, or at that of its commit."""
        diffs = {**dict.fromkeys(removed, -1), **dict.fromkeys(added, 1)}
        for key in [key for key, (at, rank, value) in self.model.items() if (at, rank) == (ts, ADDED)]:
            if self.model[key][2] != value_at(key, ts):
                diffs.pop(key, None)  # two values at one ts: no writer makes that
        if diffs:
            rows = [(key, value_at(key, ts), ts, diffs[key]) for key in sorted(diffs)]
            file = self.log.write(ROWS, FileKind.LAYER, FENCE, rows_table(rows))
            self.commit(change(file, operation=Operation.LOAD))
            self._apply((key, (ts, ADDED if diff > 0 else REMOVED, value)) for key, value, _, diff in rows)

    def spill(self) -> None:
        self.commit(spill(self.log, self.view, ROWS, FENCE))
        self._keep()

    def merge(self, policy: FoldingPolicy | None = None) -> None:
        self.commit(merge_tails(self.log, self.view, ROWS, FENCE, policy))
        self._keep()

    def fold(self, *, keep_tombstones: bool) -> None:
        version = self.state.version
        self.commit(fold(self.log, self.view, ROWS, FENCE, keep_tombstones=keep_tombstones))
        if keep_tombstones:
            self.model = {key: (ts, min(rank, ADDED), value) for key, (ts, rank, value) in self.model.items()}
        else:
            live = {key: value for key, (_, rank, value) in self.model.items() if rank > REMOVED}
            self.model = {key: (version, FOLDED, value) for key, value in live.items()}
        self._keep()

    def commit(self, request: CommitRequest, own: dict[str, list[Row]] | None = None) -> None:
        self.state = self.state.after(self.log.compare_and_append(self.state, request))
        self.view = self.view.after(self.state, own)

    def check(self) -> None:
        """Compare this process, and a new one, with the dictionary at every version."""
        check_view(self.view, self.model)
        for state, model in self.past:
            check_view(LayeredView(self.view.cache, state), model)

    def _apply(self, changed: Iterable[tuple[bytes, Change]]) -> None:
        for key, (ts, rank, value) in changed:
            self.model[key] = max(self.model.get(key, (-1, 0, b"")), (ts, rank, value if rank else b""))
        self._keep()

    def _keep(self) -> None:
        self.past.append((self.state, dict(self.model)))


def check_view(view: LayeredView, model: dict[bytes, Change]) -> None:
    """Compare every way to read with a dictionary."""
    live = {key: value for key, (_, rank, value) in sorted(model.items()) if rank > REMOVED}
    keys = {*KEYS, *model, b"no such key"}
    assert {key: found for key in sorted(keys) if (found := view.get(ROWS, key)) is not None} == live
    for first, before in RANGES:
        wanted = [(key, value) for key, value in live.items() if first <= key and (before is None or key < before)]
        assert list(view.rows(ROWS, first, before)) == wanted
        tables = list(view.tables(ROWS, first, before))
        assert [pair for table in tables for pair in zip(*table.to_pydict().values(), strict=True)] == wanted
        assert all(table.num_rows for table in tables)
    for prefix in KEYS:
        assert list(view.prefixed(ROWS, prefix)) == [(k, value) for k, value in live.items() if k.startswith(prefix)]
    dated = {key: (ts, value if rank else None) for key, (ts, rank, value) in model.items()}
    assert view.dated(ROWS, keys) == dated
    assert view.dated(ROWS, KEYS[:1]) == {key: found for key, found in dated.items() if key == KEYS[0]}
    assert view.get(OTHER, b"a") is None
    assert list(view.rows(OTHER)) == []
