"""Rows of the engine that contradict the marks of the log, which are what the engine goes by.

fsck, doctor and repair judge a store by this one list. Where the mark says what the row should be, repair writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from catalog.engine.base.fence import Fence
from catalog.engine.log.protocol import LogState
from catalog.engine.migrate.recorder import RunState
from catalog.engine.migrate.system_rows import SystemRows
from catalog.engine.stash.registry import key_text
from catalog.engine.stash.transaction import RowChange

RowsOf = Callable[[str], Iterable[tuple[Any, Any]]]
"""Returns the rows of an engine collection that can be decoded."""
_MENDER = "catalog repair"


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A row of an engine collection that is not what the log says."""

    collection: str
    key: str
    found: str
    is_mendable: bool = True
    """The log says what the row should be."""

    def __str__(self) -> str:
        return f"`{self.collection}` {self.key}: {self.found}"


def contradictions(state: LogState, rows_of: RowsOf) -> list[Contradiction]:
    """Return every row of the engine that contradicts a state."""
    return [*_of_fence(state, rows_of), *_of_version(state, rows_of), *_of_events(state, rows_of)]


def mended(journal: SystemRows) -> list[RowChange]:
    """Return the changes after which the rows say what the log says."""
    token, config = journal.registry.named("fence_token"), journal.registry.named("config")
    fence, version = journal.state.fence, journal.state.stash_version
    changes: list[RowChange] = []
    if any(_of_fence(journal.state, journal.rows)):
        keys = (key for key, _ in journal.rows("fence_token") if key.scope != "store")  # type: ignore[attr-defined]
        changes += [journal.change(key, None) for key in keys]
        value = token.value_type(deploy_generation=fence.generation, epoch=fence.epoch, holder=_MENDER)
        changes.append(journal.change(token.key_type(scope="store"), value))
    if any(_of_version(journal.state, journal.rows)):
        changes.append(journal.change(config.key_type(name="stash_version"), config.value_type(number=version)))
    return changes


def _of_fence(state: LogState, rows_of: RowsOf) -> Iterator[Contradiction]:
    found, mark = None, tuple(state.fence)
    for key, value in rows_of("fence_token"):
        if key.scope == "store":
            found = Fence(value.deploy_generation, value.epoch)
        else:
            yield Contradiction("fence_token", key_text(key), "there is one fence, that of the store")
    if found is None and state.fence.epoch:
        yield Contradiction(
            "fence_token", '{"scope": "store"}', f"there is no row, and the marks of the log say {mark}"
        )
    elif found is not None and found != state.fence:
        what = f"the row says {tuple(found)}, the marks of the log {mark}"
        yield Contradiction("fence_token", '{"scope": "store"}', what)


def _of_version(state: LogState, rows_of: RowsOf) -> Iterator[Contradiction]:
    mark = state.stash_version
    if mark is None:
        return
    stored = [value.number for key, value in rows_of("config") if key.name == "stash_version"]
    if stored != [mark]:
        says = (
            f"the row says {stored[0]}, the mark of the log {mark}"
            if stored
            else f"there is no row, the mark is {mark}"
        )
        yield Contradiction("config", '{"name": "stash_version"}', says)


def _of_events(state: LogState, rows_of: RowsOf) -> Iterator[Contradiction]:
    newest = state.stash_version or 0
    for key, value in rows_of("migration_event"):
        if value.state not in set(RunState):
            what = f"{value.state} is no state of a run"
        elif value.state == RunState.MIGRATED and value.version > newest:
            what = f"it says that {value.name} was applied, and the mark of the log is version {newest}"
        else:
            continue
        yield Contradiction("migration_event", key_text(key), what, is_mendable=False)
