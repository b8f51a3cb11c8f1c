"""The replica of a tables log: its newest state that this process has seen, the rows there, and the schemas of tables.

Commits are adopted one at a time and in order, so that a schema is always that of exactly the rows beside it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from google.protobuf.message import Message

from catalog.engine.base.fence import Fence
from catalog.engine.log.protocol import Commit, DataFile, FileKind, Log, LogState, Operation, Row
from catalog.engine.log.replica import LogReplica, newest_state, retired_if_missing
from catalog.engine.schema_change import tables_pb2 as pb
from catalog.engine.schema_change.layers import LayerCache, LayeredView
from catalog.engine.schema_change.rows import RowCodecs
from catalog.engine.schema_change.schema import TableSchema
from catalog.engine.schema_change.stored_schema import table_schema
from catalog.errors import FencedError, RetiredError, TransactionConflictError

TABLE, SCHEMA_CHANGE, BULK_WRITE = "table", "schema_change", "bulk_write"
CONFIG, FENCE_TOKEN, ID_ALLOC = "config", "fence_token", "id_alloc"
TABLES_COLLECTIONS = frozenset({TABLE, SCHEMA_CHANGE, BULK_WRITE, CONFIG, FENCE_TOKEN, ID_ALLOC})
"""The engine's own collections in a log of tables; every other one holds what an element stores."""
_RECENT_MAX = 1024
_SAME_ROWS = frozenset({Operation.REORGANISE, Operation.CONSOLIDATE, Operation.RETAIN, Operation.CLAIM, Operation.SEAL})
"""Operations whose layers and bases hold rows that were there before."""


@dataclass(frozen=True, slots=True)
class Touched:
    """The rows that one commit changed: keys by collection, and files with more of them than are listed."""

    keys: Mapping[str, frozenset[bytes]]
    files: tuple[DataFile, ...] = ()
    """Layers of a bulk write; a key is looked up in them."""


@dataclass(slots=True)
class TablesReplica(LogReplica):
    view: LayeredView
    codecs: RowCodecs = field(default_factory=RowCodecs)
    fence: Fence | None = None
    """The token that this process writes under; none if it only reads."""
    _schemas: dict[int, TableSchema] | None = None
    _recent: deque[tuple[int, Touched]] = field(default_factory=lambda: deque(maxlen=_RECENT_MAX))

    @classmethod
    def open(cls, log: Log) -> TablesReplica:
        state = newest_state(log)
        return cls(log, state, LayeredView(LayerCache(log), state))

    @property
    def schemas(self) -> Mapping[int, TableSchema]:
        """Return the schema of every table at the newest state."""
        if self._schemas is None:
            self._schemas = schemas_of(self.view)
        return self._schemas

    def restart(self, state: LogState) -> LogState:
        self.view, self.state = LayeredView(self.view.cache, state), state
        self._schemas = None
        self._recent.clear()
        return state

    def require_usable(self) -> None:
        """Refuse to go on under another generation of leaders."""
        if self.fence is not None and self.state.fence != self.fence:
            raise FencedError(self.fence, self.state.fence)

    def adopt(self, commit: Commit, before: LogState, own_rows: Mapping[str, Sequence[Row]] | None = None) -> LogState:
        """Move on to the state after a commit; return it. Of its own commit a process passes the tail rows."""
        state = before.after(commit)
        rows = self._tail_rows(commit) if own_rows is None else {name: list(own) for name, own in own_rows.items()}
        view = self.view.after(state, rows)
        keys = {name: frozenset(key for key, *_ in own) for name, own in rows.items()}
        layers = () if commit.operation in _SAME_ROWS else tuple(f for f in commit.adds if f.kind is not FileKind.TAIL)
        if TABLE in keys and self._schemas is not None:
            changed = dict(self._schemas)
            for key in keys[TABLE]:
                number, value = pb.TableKey.FromString(key).id, view.get(TABLE, key)
                changed.pop(number, None)
                if value is not None:
                    changed[number] = table_schema(number, pb.TableValue.FromString(value))
            self._schemas = changed
        self.view, self.state = view, state
        self._recent.append((commit.version, Touched(keys, layers)))
        self.require_usable()
        return state

    def _tail_rows(self, commit: Commit) -> dict[str, list[Row]]:
        if commit.operation is Operation.CONSOLIDATE:
            return {}
        rows: dict[str, list[Row]] = {}
        for file in commit.adds:
            if file.kind is FileKind.TAIL and file.ts_min == commit.version:  # others are merged from earlier ones
                rows.setdefault(file.collection, []).extend(self.log.rows(file))
        return rows

    def touched_since(self, version: int) -> Iterator[Touched]:
        """Yield what each commit after a version changed."""
        if version < self.state.frontier:
            raise TransactionConflictError(version, self.state.version)  # nobody knows any more
        known = {number: touched for number, touched in self._recent if number > version}
        for number in range(version + 1, self.state.version + 1):
            found = known.get(number)
            if found is None:
                try:
                    with retired_if_missing(self.log, number):
                        commit = self.log.commit(number)
                        rows = self._tail_rows(commit)
                except RetiredError as error:
                    raise TransactionConflictError(version, self.state.version) from error
                keys = {name: frozenset(key for key, *_ in own) for name, own in rows.items()}
                same = commit.operation in _SAME_ROWS
                found = Touched(keys, () if same else tuple(f for f in commit.adds if f.kind is not FileKind.TAIL))
            yield found

    def message(self, collection: str, key: Message, kind: type[Message]) -> Message | None:
        """Return the value of a row of the engine's own; none if there is none."""
        value = self.view.get(collection, key.SerializeToString(deterministic=True))
        return None if value is None else kind.FromString(value)

    def bulk_writes(self) -> dict[str, pb.BulkWriteValue]:
        """Return the bulk writes that are registered, by id."""
        return {
            pb.BulkWriteKey.FromString(key).id: pb.BulkWriteValue.FromString(value)
            for key, value in self.view.rows(BULK_WRITE)
        }

    def changes(self) -> dict[int, pb.SchemaChangeValue]:
        """Return every schema change by id, the oldest first."""
        found = {
            pb.SchemaChangeKey.FromString(key).id: pb.SchemaChangeValue.FromString(value)
            for key, value in self.view.rows(SCHEMA_CHANGE)
        }
        return dict(sorted(found.items()))


def schemas_of(view: LayeredView) -> dict[int, TableSchema]:
    """Return the schema of every table at the state of a view."""
    found = ((pb.TableKey.FromString(key).id, value) for key, value in view.rows(TABLE))
    return {number: table_schema(number, pb.TableValue.FromString(value)) for number, value in found}
