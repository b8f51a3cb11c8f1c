"""A schema change as its users see it: its status, its progress, and what can be done to it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from catalog.engine.schema_change import tables_pb2 as pb
from catalog.engine.schema_change.plan import Stage
from catalog.engine.schema_change.steps import ChangeStatus, is_revertible
from catalog.engine.schema_change.stored_plan import stages_of
from catalog.errors import TimedOutError
from catalog.errors.tables import SchemaChangeFailedError

if TYPE_CHECKING:
    from catalog.engine.schema_change.tables import Tables


@dataclass(frozen=True, slots=True)
class ChangeFailure:
    """The reason why a change failed; it is undone."""

    rule: str
    keys: tuple[str, ...]
    count: int
    at_ts: int
    why: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """A bulk write that a change waits for."""

    who: str
    table: str
    version: int
    since_ms: int
    rows: int
    """That it has written so far, as far as it told."""


@dataclass(slots=True)
class SchemaChange:
    """A handle of a schema change, from any process.

    >>> change = catalog.tables.submit("CREATE INDEX by_email ON customers (email)")
    >>> while not change.refresh().is_over:
    ...     change.wait(5)
    """

    id: int
    _tables: Tables = field(repr=False)
    _row: pb.SchemaChangeValue = field(repr=False)

    @property
    def statement(self) -> str:
        return self._row.statement

    @property
    def status(self) -> ChangeStatus:
        return ChangeStatus(self._row.status)

    @property
    def is_over(self) -> bool:
        return self.status.is_over

    @property
    def owner(self) -> str:
        return self._row.owner

    @property
    def stages(self) -> tuple[Stage, ...]:
        return stages_of(self._row)

    @property
    def stage(self) -> int:
        """The number of stages that are done."""
        return self._row.stage

    @property
    def can_be_cancelled(self) -> bool:
        return is_revertible(self._row)

    @property
    def rows_done(self) -> int:
        return self._row.rows_done

    @property
    def rows_total(self) -> int:
        """The rows that the present stage has to do, as stored; 0 if it does none."""
        return self._row.rows_total

    @property
    def patience_s(self) -> float:
        """The time that it waits for bulk writes of an earlier version, at most."""
        return self._row.options.patience_ms / 1000

    @property
    def submitted_ms(self) -> int:
        return self._row.submitted_ms

    @property
    def ended_ms(self) -> int | None:
        return self._row.ended_ms if self._row.HasField("ended_ms") else None

    @property
    def events(self) -> tuple[tuple[int, str], ...]:
        """The steps that were done: the time, and a text for people."""
        return tuple((event.at_ms, event.text) for event in self._row.events)

    @property
    def failure(self) -> ChangeFailure | None:
        if not self._row.HasField("failure"):
            return None
        own = self._row.failure
        return ChangeFailure(own.rule, tuple(own.keys), own.count, own.at_ts, own.why)

    @property
    def waiting_on(self) -> tuple[Waiting, ...]:
        """The bulk writes of an earlier version of the schema that it waits for."""
        return self._tables.waiting_on(self._row) if self.status is ChangeStatus.WAITING else ()

    def refresh(self) -> SchemaChange:
        """Read the change again; return it."""
        self._row = self._tables.change_message(self.id)
        return self

    def wait(self, timeout_s: float | None = None) -> SchemaChange:
        """Wait until the change is over, paused or held, or the time is; return it."""
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while not self.refresh().is_over and self.status not in {ChangeStatus.PAUSED, ChangeStatus.HOLDING}:
            left = 0.1 if end is None else min(0.1, end - time.monotonic())
            if left <= 0:
                break
            self._tables.pause_for(left)
        return self

    def result(self, timeout_s: float | None = None) -> SchemaChange:
        """Wait until the change is over; raise if it failed, or if the time is over first."""
        self.wait(timeout_s)
        failure = self.failure
        if self.status is ChangeStatus.FAILED and failure is not None:
            raise SchemaChangeFailedError(
                self.id, self.statement, failure.rule, failure.keys, failure.count, failure.why
            )
        if not self.is_over and self.status not in {ChangeStatus.PAUSED, ChangeStatus.HOLDING}:
            raise TimedOutError(f"schema change {self.id}", timeout_s or 0.0)
        return self

    def pause(self) -> SchemaChange:
        """Stop the change after its present step, until it is resumed."""
        return self._done(self._tables.pause)

    def resume(self) -> SchemaChange:
        """Let the change go on."""
        return self._done(self._tables.resume)

    def cancel(self) -> SchemaChange:
        """Undo the change; refused once it is visible."""
        return self._done(self._tables.cancel)

    def _done(self, act: Callable[[int], None]) -> SchemaChange:
        act(self.id)
        return self.refresh()
