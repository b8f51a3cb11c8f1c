"""The replica of a shard: its newest state, and the schemas and batches of any state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from catalog.engine.log.maintenance import require_retained
from catalog.engine.log.protocol import DataFile, Log, LogState
from catalog.engine.log.replica import LogReplica, newest_state, retired_if_missing
from catalog.engine.shard import batches, schema_registry
from catalog.engine.shard.batches import Batch, describe_batch
from catalog.engine.shard.schema import FINALIZED
from catalog.engine.shard.schema_registry import RegisteredSchema, read_registered
from catalog.errors import NoSuchVersionError, ShardFinalizedError

_SPARE = 64

_Content = TypeVar("_Content")


@dataclass(slots=True)
class ShardReplica(LogReplica):
    _registered: dict[str, RegisteredSchema] = field(default_factory=dict)
    _batches: dict[str, Batch] = field(default_factory=dict)

    @classmethod
    def open(cls, log: Log) -> ShardReplica:
        return cls(log, newest_state(log))

    @property
    def finalized(self) -> bool:
        return bool(self.state.files_of(FINALIZED))

    def require_usable(self) -> None:
        if self.finalized:
            raise ShardFinalizedError(self.log.uri)

    def at(self, ts: int) -> LogState:
        """Return the state at a ts; raise if it is retired, or later than the newest that was seen."""
        if ts > self.state.version:
            raise NoSuchVersionError(self.log.uri, ts, self.state.version)
        require_retained(self.log, self.state, ts)
        return self.state if ts == self.state.version else self.log.state(ts)

    def sequence(self, state: LogState) -> tuple[RegisteredSchema, ...]:
        """Return the schemas of a state in the order of their ids."""
        with self.retired_if_missing(state.version):
            found = _contents(
                self._registered, state.files_of(schema_registry.COLLECTION), partial(read_registered, self.log)
            )
            return tuple(sorted(found, key=lambda registered: registered.id))

    def latest(self, state: LogState) -> RegisteredSchema | None:
        return next(reversed(self.sequence(state)), None)

    def batches(self, state: LogState) -> tuple[Batch, ...]:
        """Return the batches of a state: by run, and in the order of each run."""
        with self.retired_if_missing(state.version):
            found = _contents(self._batches, state.files_of(batches.COLLECTION), partial(describe_batch, self.log))
            return tuple(sorted(found, key=lambda batch: (batch.file.ts_min, batch.run.id, batch.position)))

    def retired_if_missing(self, ts: int) -> AbstractContextManager[None]:
        """Tell files that are gone with their shard or their retention from files that are lost."""
        return retired_if_missing(self.log, ts, self.catch_up)


def _contents(
    cache: dict[str, _Content], files: list[DataFile], read: Callable[[DataFile], _Content]
) -> Iterator[_Content]:
    """Read the content of each file once: files never change."""
    if len(cache) > 2 * len(files) + _SPARE:
        cache.clear()
    for file in files:
        content = cache.get(file.path)
        if content is None:
            content = cache[file.path] = read(file)
        yield content
