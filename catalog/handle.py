"""An open store, in whatever mode: what callers read and write through."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self, TypeVar, overload

from google.protobuf.message import Message

from catalog.builtin.keeping import Keeper
from catalog.errors import ClosedError, LegacyRowsError, ReadOnlyError, RetiredError, UnknownCollectionError
from catalog.log.protocol import Mark
from catalog.notices import Closed, Observer, ignore
from catalog.project import Place
from catalog.stash.collections import Registry
from catalog.stash.heartbeat import Heartbeat
from catalog.stash.stash import Stash
from catalog.stash.transaction import Transaction
from catalog.stash.view import View

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from catalog.builtin.measures import Measure

_Key = TypeVar("_Key", bound=Message)
_ID_BLOCK = 64


class Mode(StrEnum):
    LEADER = "leader"
    """Takes over, fences everyone before it, initialises and upgrades."""
    MEMBER = "member"
    """Joins the present leader; writes, never upgrades."""
    READ_ONLY = "read-only"
    """Never writes the stash."""
    SAVEPOINT = "savepoint"
    """Writes to a scratch copy, which is gone afterwards."""
    DEBUG = "debug"
    """Reads at the store's own version, with that version's types."""


class Catalog:
    """An open store."""

    def __init__(  # noqa: PLR0913 - what an opening hands over
        self,
        stash: Stash,
        mode: Mode,
        place: Place,
        *,
        keeper: Keeper | None = None,
        heartbeat: Heartbeat | None = None,
        scratch: Path | None = None,
        copied_ts: int | None = None,
        rebuild: Callable[[], Catalog] | None = None,
        observer: Observer = ignore,
    ) -> None:
        self._stash, self._mode, self._place = stash, mode, place
        self._keeper, self._heartbeat, self._scratch = keeper, heartbeat, scratch
        self._copied_ts, self._rebuild, self._observer = copied_ts, rebuild, observer
        self._ids: dict[str, tuple[int, int]] = {}
        self._is_closed = False

    @property
    def version(self) -> int:
        """The version of the types that the rows have."""
        return self._stash.head.state.marks[Mark.STASH_VERSION]

    @property
    def epoch(self) -> int:
        """How many leaders the store has had."""
        return self._stash.head.state.fence.epoch

    @property
    def deploy_generation(self) -> int:
        """That of the present leader."""
        return self._stash.head.state.fence.generation

    @property
    def ts(self) -> int:
        """The ts that is shown; of a store that is upgraded in a scratch copy, that of the store itself."""
        return self._stash.ts if self._rebuild is None or self._copied_ts is None else self._copied_ts

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Commits on exit, rolls back on an exception."""
        self._require_writable()
        with self._stash.transaction() as transaction:
            yield transaction

    @overload
    def rows(self, key_type: type[_Key], as_of: None = None) -> Iterator[tuple[_Key, Message]]: ...

    @overload
    def rows(self, key_type: type[Message], as_of: int) -> Iterator[tuple[Message, Message]]: ...

    def rows(self, key_type: type[Message], as_of: int | None = None) -> Iterator[tuple[Message, Message]]:
        """Every row of the collection that a type of key names, now or at a ts, in the order of keys.

        At a ts before the store's version changed, rows have the types of the version of then; the collection may be
        named by its key's type of now or of then.
        """
        view = self._view(as_of)
        registry = self._registry(view)
        is_of_then = key_type in {collection.key_type for collection in registry.by_name.values()}
        known = registry if is_of_then else self._stash.head.registry
        named = registry.named(known.of_key(key_type).name)
        return (named.decode(key, value) for key, value in view.rows(named.name))

    def _view(self, as_of: int | None) -> View:
        self._require_open()
        if self._rebuild is not None and as_of is not None and as_of != self.ts:
            raise RetiredError(self._place.uri, as_of, self.ts)  # the copy begins there
        return self._stash.view(None if self._rebuild is not None else as_of)

    def _registry(self, view: View) -> Registry:
        """The types that rows had at a ts."""
        project, present = self._place.project, self._stash.head
        version = view.state.marks.get(Mark.STASH_VERSION)
        if version is None or version == present.serves:
            return present.registry
        if project.minimum <= version < project.first_proto:
            raise LegacyRowsError(present.log.uri, view.state.version, version, project.first_proto)
        return Registry.of(project.types(version))

    def table(self, name: str, as_of: int | None = None) -> pa.Table:
        """Every row of a collection as typed columns: `key` and `value`, structs of their fields at that ts."""
        import pyarrow as pa  # noqa: PLC0415 - callers that want messages need no Arrow

        from catalog.codec import bounded_batches, codec_for  # noqa: PLC0415

        view = self._view(as_of)
        collection = self._registry(view).named(name)
        key, value = codec_for(collection.key_type.DESCRIPTOR), codec_for(collection.value_type.DESCRIPTOR)
        types = pa.schema([("key", pa.struct(list(key.schema))), ("value", pa.struct(list(value.schema)))])
        batches = [
            pa.record_batch([key.decode(batch["key"]), value.decode(batch["value"])], schema=types)
            for batch in bounded_batches(view.table(name))
        ]
        return pa.Table.from_batches(batches, schema=types)

    def dataframe(self, name: str, as_of: int | None = None, spark: SparkSession | None = None) -> DataFrame:
        """A collection as a Spark DataFrame of typed columns, at a ts; by default what this catalog shows now."""
        from catalog.datasource import dataframe  # noqa: PLC0415 - whoever asks for no frame needs no pyspark
        from catalog.spark.session import local_session  # noqa: PLC0415

        session = spark if spark is not None else local_session()
        place, at = self._place, self._view(as_of).state.version
        return dataframe(session, place.uri, place.options, name, at, project=place.project.name)

    def feed(
        self, name: str, since: int | Literal["now"] | None = None, spark: SparkSession | None = None
    ) -> DataFrame:
        """The changes of a collection after a ts as a stream of Spark; by default its rows first, then every change."""
        from catalog.datasource import feed  # noqa: PLC0415 - as in `dataframe`
        from catalog.spark.session import local_session  # noqa: PLC0415

        self._require_open()
        session, place = spark if spark is not None else local_session(), self._place
        return feed(session, place.uri, place.options, name, since, project=place.project.name)

    @property
    def builtins(self) -> tuple[str, ...]:
        """The names of the collections that the software brings along."""
        return () if self._keeper is None else self._keeper.names

    def builtin(self, name: str) -> pa.Table:
        """The rows of a builtin. A leader brings it up to date first; to others it is as a leader left it."""
        keeper = self._kept()
        if keeper is None:
            raise UnknownCollectionError(name, ())
        return keeper.table(name)

    def measures(self) -> tuple[Measure, ...]:
        """How many rows and bytes each collection had, and when that was measured; the oldest first."""
        keeper = self._kept()
        return () if keeper is None else keeper.measures()

    def _kept(self) -> Keeper | None:
        self._require_open()
        if self._keeper is not None and self._mode is Mode.LEADER:
            self._keeper.follow()
        return self._keeper

    def subscribe(self, key_type: type[_Key], since: int) -> Iterator[tuple[Message, Message, int, int]]:
        """Every change after a ts up to the newest: key, value, ts, diff. Ask again from the last ts for more."""
        self._require_open()
        return self._stash.subscribe(key_type, since)

    def refresh(self) -> int:
        """See what others have committed; answer the newest ts. A scratch copy of an older store is made again."""
        self._require_open()
        if self._rebuild is None:
            return self._stash.refresh()
        fresh = self._rebuild()
        self._release()
        self.__dict__.update(fresh.__dict__)
        return self.ts

    def allocate(self, name: str) -> int:
        """A new id; ids come in blocks, in commits of their own, so there may be gaps."""
        self._require_writable()
        following, end = self._ids.get(name, (0, 0))
        if following == end:
            following = self._stash.allocate(name, _ID_BLOCK)
            end = following + _ID_BLOCK
        self._ids[name] = (following + 1, end)
        return following

    def _require_writable(self) -> None:
        self._require_open()
        if self._mode in {Mode.READ_ONLY, Mode.DEBUG}:
            raise ReadOnlyError(self._mode)

    def _require_open(self) -> None:
        if self._is_closed:
            raise ClosedError(self._place.uri)

    def close(self) -> None:
        """Let whoever waits lead; nothing can be read or written through this any more."""
        was_open = not self._is_closed
        self._release()
        if was_open:
            self._observer(Closed(self.version))

    def _release(self) -> None:
        self._is_closed = True
        if self._heartbeat is not None:
            self._heartbeat.stop()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
