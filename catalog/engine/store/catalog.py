"""An open store, in any mode: the object through which callers read and write."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, TypeVar, overload

from google.protobuf.message import Message

from catalog.engine.base.process import require_opener
from catalog.engine.base.public_call import PublicMembers, public_call
from catalog.engine.builtins.tables import BuiltinTables
from catalog.engine.log.place import StorePlace
from catalog.engine.log.protocol import AppTxn
from catalog.engine.stash.arguments import (
    collection_by_name,
    collection_of_key_type,
    require_session,
    require_text,
    require_ts,
)
from catalog.engine.stash.recorded_types import require_types
from catalog.engine.stash.registry import Collection, Registry
from catalog.engine.stash.stash import Stash
from catalog.engine.stash.transaction import Transaction
from catalog.engine.stash.view import View
from catalog.engine.storage.heartbeat import Heartbeat
from catalog.errors import (
    ClosedError,
    LegacyRowsError,
    ReadOnlyError,
    RetiredError,
    UnknownAllocatorError,
    UnknownCollectionError,
)
from catalog.events import Closed, Observer, ignore

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from catalog.engine.base.scratch_folder import ScratchFolder
    from catalog.engine.builtins.store_metrics import StoreMetric
    from catalog.engine.schema_change.tables import Tables

_Key = TypeVar("_Key", bound=Message)
_ID_BLOCK = 64


class Mode(StrEnum):
    """A way to open a store."""

    LEADER = "leader"
    """Takes over, fences every earlier process, initialises and upgrades."""
    MEMBER = "member"
    """Joins the present leader; writes, never upgrades."""
    READ_ONLY = "read-only"
    """Never writes the stash."""
    SAVEPOINT = "savepoint"
    """Writes to a scratch copy, which is removed afterwards."""
    DEBUG = "debug"
    """Reads at the store's own version, with that version's types."""


class Catalog(PublicMembers):
    """An open store.

    >>> with open_catalog("/var/lib/environment") as catalog, catalog.transaction() as tx:
    ...     tx.insert(RoleKey(id=catalog.allocate("role")), RoleValue(name="reader"))
    """

    elsewhere = dict.fromkeys(
        ("insert", "update", "upsert", "delete", "get", "commit"),
        "begin a transaction, which has it: `with catalog.transaction() as tx`",
    )

    def __init__(  # noqa: PLR0913 - what an opening hands over
        self,
        stash: Stash,
        mode: Mode,
        place: StorePlace,
        *,
        builtins: BuiltinTables | None = None,
        tables_at: StorePlace | None = None,
        heartbeat: Heartbeat | None = None,
        scratch: ScratchFolder | None = None,
        copied_ts: int | None = None,
        rebuild: Callable[[], Catalog] | None = None,
        observer: Observer = ignore,
    ) -> None:
        self._stash, self._mode, self._place = stash, mode, place
        self._builtins, self._heartbeat, self._scratch = builtins, heartbeat, scratch
        self._tables_at = tables_at or place
        self._copied_ts, self._rebuild, self._observer = copied_ts, rebuild, observer
        self._ids: dict[str, tuple[int, int]] = {}
        self._ids_lock = Lock()
        self._tables: Tables | None = None
        self._is_closed = False
        self._opened_by = os.getpid()

    @property
    def version(self) -> int:
        """The version of the types that the rows have."""
        return self._stash.state.app_txns[AppTxn.STASH_VERSION]

    @property
    def epoch(self) -> int:
        """The number of leaders that the store has had."""
        return self._stash.state.fence.epoch

    @property
    def deploy_generation(self) -> int:
        """The deploy generation of the present leader."""
        return self._stash.state.fence.generation

    @property
    def ts(self) -> int:
        """The ts whose rows are shown; if they come from an upgraded scratch copy, the ts of the store itself."""
        return self._stash.ts if self._rebuild is None or self._copied_ts is None else self._copied_ts

    @public_call
    def transaction(self) -> AbstractContextManager[Transaction]:
        """Begin a transaction that commits on exit and rolls back on an exception."""
        return _TransactionBlock(self._transaction)

    @contextmanager
    def _transaction(self) -> Iterator[Transaction]:
        self._require_writable()
        with self._stash.transaction() as transaction:
            yield transaction
            self._require_open()

    @overload
    def rows(self, key_type: type[_Key], as_of: None = None) -> Iterator[tuple[_Key, Message]]: ...

    @overload
    def rows(self, key_type: type[Message], as_of: int) -> Iterator[tuple[Message, Message]]: ...

    @public_call
    def rows(self, key_type: type[Message], as_of: int | None = None) -> Iterator[tuple[Message, Message]]:
        """Return every row of the collection of a key type, now or at a ts, in the order of keys.

        At a ts before the version of the store changed, rows have the types of that earlier version; the collection may
        be named by its present or its earlier key type.
        """
        view = self._view("catalog.rows", as_of)
        registry = self._registry(view)
        is_earlier = any(key_type is collection.key_type for collection in registry.by_name.values())
        known = registry if is_earlier else self._stash.registry
        named = registry.named(collection_of_key_type(known, "catalog.rows", key_type).name)
        return self._decoded(view, named)

    def _decoded(self, view: View, collection: Collection) -> Iterator[tuple[Message, Message]]:
        for key, value in view.rows(collection.name):
            if self._is_closed:
                raise ClosedError(self._place.uri)
            yield collection.decode(key, value)

    def _view(self, call: str, as_of: int | None) -> View:
        self._require_open()
        if as_of is not None:
            require_ts(call, "as_of", as_of)
        if self._rebuild is not None and as_of is not None and as_of != self.ts:
            raise RetiredError(self._place.uri, as_of, self.ts)  # the copy begins there
        return self._stash.view(None if self._rebuild is not None else as_of)

    def _registry(self, view: View) -> Registry:
        """Return the types that rows had at a ts; refuse them if another build had other types at that version."""
        project, present = self._place.project, self._stash.replica
        version = view.state.stash_version
        if view is not present.view:
            require_types(project, view)
        if version is None or version == present.row_version:
            return present.registry
        if project.minimum <= version < project.first_proto:
            raise LegacyRowsError(present.log.uri, view.state.version, version, project.first_proto)
        return Registry.of(project.types(version))

    @public_call
    def table(self, name: str, as_of: int | None = None) -> pa.Table:
        """Return every row of a collection as typed columns: `key` and `value`, structs of their fields at that ts."""
        import pyarrow as pa  # noqa: PLC0415 - callers that want messages need no Arrow

        from catalog.engine.codec import bounded_batches, codec_for  # noqa: PLC0415

        view = self._view("catalog.table", as_of)
        collection = collection_by_name(self._registry(view), "catalog.table", name)
        key, value = codec_for(collection.key_type.DESCRIPTOR), codec_for(collection.value_type.DESCRIPTOR)
        types = pa.schema([("key", pa.struct(list(key.schema))), ("value", pa.struct(list(value.schema)))])
        batches = [
            pa.record_batch([key.decode(batch["key"]), value.decode(batch["value"])], schema=types)
            for batch in bounded_batches(view.table(name))
        ]
        return pa.Table.from_batches(batches, schema=types)

    @public_call
    def dataframe(self, name: str, as_of: int | None = None, spark: SparkSession | None = None) -> DataFrame:
        """Return a collection as a Spark DataFrame of typed columns, at a ts; by default at the present one."""
        from catalog.engine.spark.datasource import dataframe  # noqa: PLC0415 - other calls need no pyspark
        from catalog.engine.spark.java_errors import java_errors  # noqa: PLC0415
        from catalog.engine.spark.session import local_session  # noqa: PLC0415

        view, place = self._view("catalog.dataframe", as_of), self._place
        collection_by_name(self._registry(view), "catalog.dataframe", name)
        require_session("catalog.dataframe", spark)
        with java_errors():
            session, at = spark or local_session(), view.state.version
            return dataframe(session, place.uri, place.options, name, at, project=place.project.name)

    @public_call
    def feed(
        self, name: str, since: int | Literal["now"] | None = None, spark: SparkSession | None = None
    ) -> DataFrame:
        """Return the changes of a collection after a ts as a Spark stream; by default its rows come first."""
        from catalog.engine.spark.datasource import feed  # noqa: PLC0415 - as in `dataframe`
        from catalog.engine.spark.java_errors import java_errors  # noqa: PLC0415
        from catalog.engine.spark.session import local_session  # noqa: PLC0415

        self._require_open()
        if since is not None:
            require_ts("catalog.feed", "since", since, "now")
        collection_by_name(self._stash.registry, "catalog.feed", name)
        require_session("catalog.feed", spark)
        with java_errors():
            session, place = spark or local_session(), self._place
            return feed(session, place.uri, place.options, name, since, project=place.project.name)

    @property
    def tables(self) -> Tables:
        """The tables of the environment, whose schemas change while they are written."""
        self._require_open()
        if self._tables is None:
            from catalog.engine.store.tables import open_tables  # noqa: PLC0415 - most programs have no tables

            is_writer = self._mode not in {Mode.READ_ONLY, Mode.DEBUG}
            leads = self._mode in {Mode.LEADER, Mode.SAVEPOINT}
            self._tables = open_tables(self._tables_at, self._stash, is_writer=is_writer, leads=leads)
        return self._tables

    @property
    def builtins(self) -> tuple[str, ...]:
        """The names of the builtin collections."""
        return () if self._builtins is None else self._builtins.names

    @public_call
    def builtin(self, name: str) -> pa.Table:
        """Return the rows of a builtin. A leader brings it up to date first; others read it as a leader left it."""
        tables = self._followed_builtins()
        require_text("catalog.builtin", "the name of a builtin", name, "'store_metrics'")
        if tables is None:
            raise UnknownCollectionError(name, ())
        return tables.table(name)

    @public_call
    def measures(self) -> tuple[StoreMetric, ...]:
        """Return how many rows and bytes each collection had whenever they were measured, the oldest first."""
        tables = self._followed_builtins()
        return () if tables is None else tables.measures()

    def _followed_builtins(self) -> BuiltinTables | None:
        self._require_open()
        if self._builtins is not None and self._mode is Mode.LEADER:
            self._builtins.follow()
        return self._builtins

    @public_call
    def subscribe(self, key_type: type[_Key], since: int) -> Iterator[tuple[Message, Message, int, int]]:
        """Return every change after a ts: key, value, ts, diff. Call again with the last ts for newer ones."""
        self._require_open()
        require_ts("catalog.subscribe", "since", since)
        collection_of_key_type(self._stash.registry, "catalog.subscribe", key_type)
        return self._stash.subscribe(key_type, since)

    @public_call
    def refresh(self) -> int:
        """Read what others have committed; return the newest ts. A scratch copy of an older store is made again."""
        self._require_open()
        if self._rebuild is None:
            return self._stash.refresh()
        fresh = self._rebuild()
        self._release()
        self.__dict__.update(fresh.__dict__)
        return self.ts

    @public_call
    def allocate(self, name: str) -> int:
        """Return a new id. Ids are reserved in blocks, in commits of their own, so there may be gaps.

        Any thread may call it. The name is that of a collection, or of a row of `id_alloc`.
        """
        self._require_writable()
        require_text("catalog.allocate", "the name of an allocator", name, "'item'")
        with self._ids_lock:
            following, end = self._ids.get(name, (0, 0))
            if following == end:
                self._require_allocator(name)
                following = self._stash.allocate(name, _ID_BLOCK)
                end = following + _ID_BLOCK
            self._ids[name] = (following + 1, end)
            return following

    def _require_allocator(self, name: str) -> None:
        """Refuse a name that has no allocator, even after what others have committed is read."""
        if name not in self._stash.allocators():
            self._stash.refresh()
            known = self._stash.allocators()
            if name not in known:
                raise UnknownAllocatorError(name, tuple(sorted(known)))

    def _require_writable(self) -> None:
        self._require_open()
        if self._mode in {Mode.READ_ONLY, Mode.DEBUG}:
            raise ReadOnlyError(self._mode)

    def _require_open(self) -> None:
        self._require_opener()
        if self._is_closed:
            raise ClosedError(self._place.uri)

    def _require_opener(self) -> None:
        require_opener(self._opened_by, f"the open catalog of {self._place.uri}")

    @public_call
    def close(self) -> None:
        """Close the catalog and release leadership; nothing can be read or written through it any more.

        A child that was forked from the process that opened it cannot: the leadership is not its own.
        """
        self._require_opener()
        if not self._is_closed:
            self._release()
            self._observer(Closed(self.version))

    def _release(self) -> None:
        self._is_closed = True
        if self._tables is not None:
            self._tables.close()
        if self._heartbeat is not None:
            self._heartbeat.stop()
        if self._scratch is not None:
            self._scratch.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class _TransactionBlock(PublicMembers, AbstractContextManager[Transaction]):
    """A transaction that `with` begins."""

    elsewhere = dict.fromkeys(
        ("get", "rows", "insert", "update", "upsert", "delete", "commit", "rollback"),
        "begin it first: `with catalog.transaction() as tx`",
    )

    def __init__(self, begin: Callable[[], AbstractContextManager[Transaction]]) -> None:
        self._begin = begin
        self._begun: list[AbstractContextManager[Transaction]] = []

    def __enter__(self) -> Transaction:
        self._begun.append(self._begin())
        return self._begun[-1].__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return self._begun.pop().__exit__(kind, error, traceback)
