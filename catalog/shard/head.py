"""The newest state of a shard that this process knows, and what it holds: schemas and batches.

Follows the log and never writes. States are replaced as a whole, so any number of threads may look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from catalog.errors import MissingFileError, NoSuchVersionError, RetiredError, ShardFinalizedError
from catalog.log.maintenance import require_retained
from catalog.log.protocol import DataFile, Log, State
from catalog.shard import batches, sequence
from catalog.shard.batches import Batch, describe_batch
from catalog.shard.sequence import Registered, read_registered

FINALIZED = "finalized"
"""The collection whose one row says that a shard is given up."""

_Known = TypeVar("_Known")


@dataclass(slots=True)
class Head:
    log: Log
    state: State
    _registered: dict[str, Registered] = field(default_factory=dict)
    _batches: dict[str, Batch] = field(default_factory=dict)

    @classmethod
    def open(cls, log: Log) -> Head:
        return cls(log, log.state(log.verify()))

    @property
    def finalized(self) -> bool:
        return any(file.collection == FINALIZED for file in self.state.files.values())

    def follow(self) -> State:
        """Take in what others have committed, finalised or not."""
        state = self.state
        try:
            for commit in self.log.commits(state.version + 1, self.log.head(state.version)):
                state = state.after(commit)
        except RetiredError:
            state = self.log.state(self.log.head(state.version))
        self.state = state
        return state

    def catch_up(self) -> State:
        state = self.follow()
        if self.finalized:
            raise ShardFinalizedError(self.log.uri)
        return state

    def at(self, ts: int) -> State:
        """The state at a ts that is retained and known to be there."""
        if ts > self.state.version:
            raise NoSuchVersionError(self.log.uri, ts, self.state.version)
        require_retained(self.log, self.state, ts)
        return self.state if ts == self.state.version else self.log.state(ts)

    def sequence(self, state: State) -> tuple[Registered, ...]:
        with self.there(state.version):
            found = list(_known(self._registered, state, sequence.COLLECTION, self._read_registered))
        return tuple(sorted(found, key=lambda registered: registered.id))

    def latest(self, state: State) -> Registered | None:
        return next(reversed(self.sequence(state)), None)

    def batches(self, state: State) -> tuple[Batch, ...]:
        """In the order of their runs, and within each of their places."""
        with self.there(state.version):
            found = list(_known(self._batches, state, batches.COLLECTION, lambda file: describe_batch(self.log, file)))
        return tuple(sorted(found, key=lambda batch: (batch.file.ts_min, batch.run.id, batch.position)))

    @contextmanager
    def there(self, ts: int) -> Iterator[None]:
        """Tell files that are gone with their shard or their retention from those that are lost."""
        try:
            yield
        except MissingFileError:
            require_retained(self.log, self.catch_up(), ts)
            raise

    def _read_registered(self, file: DataFile) -> Registered:
        return read_registered(self.log, file)


def _known(
    cache: dict[str, _Known], state: State, collection: str, read: Callable[[DataFile], _Known]
) -> Iterator[_Known]:
    """What each file of a collection holds; files never change, so each is read once while it is there."""
    files: Mapping[str, DataFile] = {p: file for p, file in state.files.items() if file.collection == collection}
    if len(cache) > 2 * len(files) + _SPARE:
        cache.clear()
    for path, file in files.items():
        if path not in cache:
            cache[path] = read(file)
        yield cache[path]


_SPARE = 64
