"""The tables of an open store: what `catalog.tables` is.

Definitions are schema changes, which this process carries out or leaves to others; rows are read and written by
transactions, and in bulk through `Table`.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from catalog.engine.schema_change import tables_pb2 as pb
from catalog.engine.schema_change.change import SchemaChange, Waiting
from catalog.engine.schema_change.names import Names
from catalog.engine.schema_change.owner import Owner
from catalog.engine.schema_change.plan import Ids, Plan
from catalog.engine.schema_change.replica import SCHEMA_CHANGE, TablesReplica
from catalog.engine.schema_change.schema import TableSchema, TableState
from catalog.engine.schema_change.signs import LifeThread, Signs
from catalog.engine.schema_change.steps import RUN, ChangeStatus, change_row, note, put_change
from catalog.engine.schema_change.store import Draft, TablesStore
from catalog.engine.schema_change.table import Table
from catalog.engine.schema_change.transaction import TableTransaction
from catalog.engine.schema_change.undoing import undo_change
from catalog.errors import CatalogError
from catalog.errors.tables import ChangeStatusError, SchemaChangedError, UnknownTableError

PATIENCE_S = 60.0
_ROWS = 64
"""Values of a hidden key that are taken at once."""


@dataclass(slots=True)
class Tables:
    """The tables of an environment.

    >>> catalog.tables.execute("CREATE TABLE orders (id BIGINT, amount DECIMAL(10,2), PRIMARY KEY (id))")
    >>> with catalog.tables.transaction() as tx:
    ...     tx.insert("orders", {"id": 1, "amount": "9.90"})
    """

    store: TablesStore
    names: Names
    signs: Signs
    owner_name: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}")
    _row_ids: dict[int, tuple[int, int]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _closing: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    @property
    def ts(self) -> int:
        return self.store.ts

    def refresh(self) -> int:
        """Read what others have committed; return the newest ts."""
        return self.store.refresh()

    def __getitem__(self, name: str) -> Table:
        return Table(self, self.schema(name).id)

    def __iter__(self) -> Iterator[str]:
        self.store.refresh()
        return iter(sorted(s.name for s in self.store.replica.schemas.values() if s.state is TableState.PUBLIC))

    def __contains__(self, name: str) -> bool:
        return self.names.table_id(name) in self.store.replica.schemas

    def schema(self, name: str) -> TableSchema:
        """Return the newest schema of a table."""
        self.store.refresh()
        return self.schema_of(self._table_id(name))

    def schema_of(self, number: int) -> TableSchema:
        found = self.store.replica.schemas.get(number)
        if found is None:
            raise UnknownTableError(str(number), tuple(self))
        if found.state is not TableState.PUBLIC:
            raise SchemaChangedError(found.name, self.ts, "it is being created or dropped")
        return found

    @contextmanager
    def transaction(self) -> Iterator[TableTransaction]:
        """Begin a transaction that commits on exit, and does nothing on an exception."""
        self.store.refresh()
        replica = self.store.replica
        transaction = TableTransaction(replica.view, replica.schemas, replica.codecs, self._table_id, self.next_row)
        try:
            yield transaction
            if transaction.has_changes:
                self.store.commit(transaction.draft)
        finally:
            transaction.end()

    def plan(self, statement: str) -> Plan:
        """Return the stages that a statement would have now; nothing is written."""
        self.store.refresh()
        return self._owner().plan(statement, self.store.replica, 0, Ids(1))

    def execute(
        self, statement: str, *, patience_s: float = PATIENCE_S, hold: bool = False, rows_per_s: int = 0
    ) -> SchemaChange:
        """Carry out a statement that defines something, and wait for its end; raise if it fails."""
        change = self._submitted(statement, patience_s, hold=hold, rows_per_s=rows_per_s)
        self._run(change.id)
        return change.result()

    def submit(
        self,
        statement: str,
        *,
        patience_s: float = PATIENCE_S,
        hold: bool = False,
        rows_per_s: int = 0,
        detach: bool = False,
    ) -> SchemaChange:
        """Begin a schema change; a thread of this process carries it out, unless it is detached for another one."""
        change = self._submitted(statement, patience_s, hold=hold, rows_per_s=rows_per_s)
        if not detach:
            self._start(change.id)
        return change

    def change(self, number: int) -> SchemaChange:
        """Return a schema change by its number."""
        return SchemaChange(number, self, self.change_message(number))

    def changes(self, *, ended: bool = False) -> list[SchemaChange]:
        """Return the schema changes that are not over, or all that are known, the oldest first."""
        self.store.refresh()
        found = [SchemaChange(number, self, row) for number, row in self.store.replica.changes().items()]
        return [change for change in found if ended or not change.is_over]

    def adopt(self) -> list[SchemaChange]:
        """Take up and carry out the changes that nobody carries out; return them."""
        return [self.carry_out(change.id) for change in self.unattended()]

    def unattended(self) -> list[SchemaChange]:
        """Return the changes that nobody carries out: without an owner, or with one that shows no sign of life.

        A process that stops in order is its owner no longer; one that was killed is known after a while of watching.
        """
        waiting = [c for c in self.changes() if c.status not in {ChangeStatus.PAUSED, ChangeStatus.HOLDING}]
        signs = [f"change-{change.id}" for change in waiting]
        dead = {*self.signs.dead(signs)}
        return [change for change, sign in zip(waiting, signs, strict=True) if not change.owner or sign in dead]

    def carry_out(self, number: int) -> SchemaChange:
        """Carry a change out in this thread until it is over, paused or held; return it."""
        self._run(number)
        return self.change(number)

    def pause(self, number: int) -> None:
        """Stop a change after its present step."""
        self._set_status(number, ChangeStatus.PAUSED, "paused")

    def resume(self, number: int, *, detach: bool = False) -> None:
        """Let a paused or held change go on, in a thread of this process unless it is left to another one."""
        self._set_status(number, ChangeStatus.RUNNING, "resumed")
        if not detach:
            self._start(number)

    def cancel(self, number: int) -> None:
        """Undo a change: nothing is left of it; refused once it is visible."""
        undo_change(self.store, self.names, number, ChangeStatus.CANCELLED)

    def change_message(self, number: int) -> pb.SchemaChangeValue:
        self.store.refresh()
        return change_row(self.store.replica, number)

    def waiting_on(self, row: pb.SchemaChangeValue) -> tuple[Waiting, ...]:
        """Return the bulk writes of earlier versions that pin the tables of a change."""
        schemas, tables = self.store.replica.schemas, {image.table for image in row.images}
        found = []
        for name, write in self.store.replica.bulk_writes().items():
            for pin in write.pins:
                schema = schemas.get(pin.table)
                if schema is not None and pin.table in tables and pin.version < schema.cur:
                    rows = int(self.signs.facts(name).get("rows", 0))
                    found.append(Waiting(write.who, schema.name, pin.version, write.began_ms, rows))
        return tuple(found)

    def pause_for(self, seconds: float) -> None:
        """Wait for some time, or until these tables are closed."""
        self._closing.wait(seconds)

    def close(self) -> None:
        """Stop the changes that threads of this process carry out; others can take them up."""
        self._closing.set()
        for thread in self._threads:
            thread.join()

    def _submitted(self, statement: str, patience_s: float, *, hold: bool, rows_per_s: int) -> SchemaChange:
        self.plan(statement)  # raises what is wrong with it, before anything is written
        number = self.store.allocate("schema_change")
        options = pb.ChangeOptions(patience_ms=int(patience_s * 1000), hold=hold, rows_per_s=rows_per_s)

        def draft(replica: TablesReplica) -> Draft:
            row = pb.SchemaChangeValue(
                statement=statement,
                status=pb.STATUS_PENDING,
                options=options,
                submitted_ms=replica.log.now_ms(),
            )
            return Draft(rows={SCHEMA_CHANGE: put_change(replica, number, row)})

        self.store.commit(draft)
        return self.change(number)

    def _owner(self) -> Owner:
        return Owner(self.store, self.names, self.signs, self.owner_name, self.pause_for)

    def _run(self, number: int) -> None:
        with LifeThread(self.signs, f"change-{number}"):
            try:
                status = self._owner().run(number, self._closing.is_set)
            except BaseException as error:
                self._leave(number, error.what if isinstance(error, CatalogError) else type(error).__name__)
                raise
            if status in {*RUN, ChangeStatus.PENDING}:
                self._leave(number, "its process closed the tables")

    def _leave(self, number: int, reason: str) -> None:
        """Tell that this process no longer carries a change out, so that another one takes it up at once."""

        def draft(replica: TablesReplica) -> Draft | None:
            row = change_row(replica, number)
            if ChangeStatus(row.status).is_over or row.owner != self.owner_name:
                return None
            note(row, replica.log.now_ms(), f"stopped: {reason}")
            row.owner = ""
            return Draft(rows={SCHEMA_CHANGE: put_change(replica, number, row)})

        with suppress(CatalogError):  # its sign of life ends, which tells the same
            self.store.commit(draft)

    def _start(self, number: int) -> None:
        thread = threading.Thread(target=self._run_quietly, args=(number,), name=f"change-{number}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _run_quietly(self, number: int) -> None:
        """Carry out a change in a thread; what stops it is told by its row, or it is taken up by another owner."""
        with suppress(CatalogError):
            self._run(number)

    def _set_status(self, number: int, status: ChangeStatus, text: str) -> None:
        allowed = (
            {*RUN, ChangeStatus.PENDING}
            if status is ChangeStatus.PAUSED
            else {ChangeStatus.PAUSED, ChangeStatus.HOLDING}
        )

        def draft(replica: TablesReplica) -> Draft | None:
            row = change_row(replica, number)
            if ChangeStatus(row.status) not in allowed:
                raise ChangeStatusError(number, text, ChangeStatus(row.status).name)
            row.status = status if row.stages or status is ChangeStatus.PAUSED else ChangeStatus.PENDING  # type: ignore[assignment]
            note(row, replica.log.now_ms(), text)
            return Draft(rows={SCHEMA_CHANGE: put_change(replica, number, row)})

        self.store.commit(draft)

    def _table_id(self, name: str) -> int:
        found = self.names.table_id(name)
        if found is None or found not in self.store.replica.schemas:
            raise UnknownTableError(name, tuple(s.name for s in self.store.replica.schemas.values()))
        return found

    def next_row(self, table: int) -> int:
        """Return a new value of the hidden key of a table, from a block of this process."""
        with self._lock:
            following, end = self._row_ids.get(table, (0, 0))
            if following == end:
                following = self.take_rows(table, _ROWS)
                end = following + _ROWS
            self._row_ids[table] = (following + 1, end)
            return following

    def take_rows(self, table: int, count: int) -> int:
        """Take so many new values of the hidden key of a table; return the first."""
        return self.store.allocate(f"row_{table}", count)
