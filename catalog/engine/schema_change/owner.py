"""The owner of schema changes: carries a plan out stage by stage, each step one commit that only the owner can make.

Any process may be the owner of a change; takeover raises its epoch, so that a late step of the former owner fails. A
violation undoes the change in one commit; a change that was stopped half way is carried on from its next chunk.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from catalog.engine.log.protocol import Operation, Row
from catalog.engine.schema_change import tables_pb2 as pb
from catalog.engine.schema_change.building import build_chunk, filled_base
from catalog.engine.schema_change.names import Names
from catalog.engine.schema_change.operations.context import Planning
from catalog.engine.schema_change.plan import Ids, Plan, Stage, StageKind
from catalog.engine.schema_change.planner import plan_statement
from catalog.engine.schema_change.replica import ID_ALLOC, SCHEMA_CHANGE, TABLE, TablesReplica
from catalog.engine.schema_change.schema import Element, TableSchema
from catalog.engine.schema_change.signs import Signs
from catalog.engine.schema_change.sql import parse_statement
from catalog.engine.schema_change.statements import CreateTable
from catalog.engine.schema_change.steps import (
    RUN,
    UNDONE,
    ChangeStatus,
    Owned,
    StoppedByOthersError,
    announce_draft,
    change_row,
    close_draft,
    edit_draft,
    finished_stage,
    next_stage,
    note,
    owned_row,
    put_change,
    row_draft,
    stage_of,
    undo_draft,
)
from catalog.engine.schema_change.store import Draft, TablesStore, put
from catalog.engine.schema_change.stored_plan import stage_messages
from catalog.engine.schema_change.stored_schema import table_message
from catalog.engine.schema_change.undoing import take_back, undo_change
from catalog.engine.schema_change.validating import KEYS_MAX, find_violators, rule_text, violation_at
from catalog.errors import CatalogError, RetryableError
from catalog.errors.tables import ChangeOvertakenError, ExpressionFailedError, RefusedChangeError

ELEMENTS = "element"
"""The allocator of the ids of elements."""


@dataclass(slots=True)
class Owner:
    store: TablesStore
    names: Names
    signs: Signs
    name: str
    """The host and the process, for people."""
    wait: Callable[[float], None] = time.sleep
    """Waits for a number of seconds, or less if somebody wants it to go on."""
    _waiting_since: dict[int, float] = field(default_factory=dict)

    def run(self, number: int, is_stopped: Callable[[], bool] = lambda: False) -> ChangeStatus:
        """Carry a change on until it is over, paused, or held, or this process is stopped; return its status.

        It is taken up once: an owner that was overtaken meanwhile leaves the change to the other one.
        """
        is_taken = False
        while True:
            row = self._row(number)
            status = ChangeStatus(row.status)
            if status.is_over or status in {ChangeStatus.PAUSED, ChangeStatus.HOLDING} or is_stopped():
                return status
            if is_taken and row.owner != self.name:
                raise ChangeOvertakenError(number, row.owner or "nobody")
            is_taken = True
            try:
                self.step(number)
            except StoppedByOthersError:
                continue

    def step(self, number: int) -> None:
        """Do the next thing that a change needs: take it up, begin it, or carry out a stage."""
        row = self._row(number)
        self.signs.show(f"change-{number}")
        if ChangeStatus(row.status) not in {*RUN, ChangeStatus.PENDING}:
            raise StoppedByOthersError
        if row.owner != self.name:
            self.adopt(number)
        elif ChangeStatus(row.status) is ChangeStatus.PENDING:
            self._begin(number, row)
        else:
            owned = Owned(number, row.owner_epoch, row.stage)
            try:
                self._carry_out(owned, row, stage_of(row))
            except ExpressionFailedError as error:
                self._fail(owned, pb.Failure(rule="expression", why=error.what, count=1))
            except RefusedChangeError as error:
                self._fail(owned, pb.Failure(rule="refused", why=error.what, count=1))

    def adopt(self, number: int) -> None:
        """Become the owner of a change; its former owner can no longer make a step of it."""

        def draft(replica: TablesReplica) -> Draft | None:
            row = change_row(replica, number)
            if ChangeStatus(row.status).is_over:
                return None
            row.owner, row.owner_epoch = self.name, row.owner_epoch + 1
            note(row, replica.log.now_ms(), f"owned by {self.name}")
            return Draft(rows={SCHEMA_CHANGE: put_change(replica, number, row)})

        self.store.commit(draft)

    def plan(self, statement: str, replica: TablesReplica, new_table: int, ids: Ids) -> Plan:
        """Return the plan of a statement under the newest schemas."""

        def has_rows(schema: TableSchema) -> bool:
            return next(replica.view.rows(schema.collection), None) is not None

        names = self.names
        planning = Planning(
            replica.schemas, names.table_id, names.canonical, ids, new_table, has_rows, replica.state.version
        )
        return plan_statement(planning, parse_statement(statement))

    def _row(self, number: int) -> pb.SchemaChangeValue:
        self.store.refresh()
        return change_row(self.store.replica, number)

    def _begin(self, number: int, known: pb.SchemaChangeValue) -> None:
        """Plan a change under the schemas of now, and mark its tables as its own; wait while another one has them."""
        blocked: list[int] = []
        new_table = known.new_table
        if not new_table and isinstance(parse_statement(known.statement), CreateTable):
            new_table = self.names.new_id()

        def draft(replica: TablesReplica) -> Draft | None:
            blocked.clear()
            row = change_row(replica, number)
            if ChangeStatus(row.status) is not ChangeStatus.PENDING or row.owner_epoch != known.owner_epoch:
                raise StoppedByOthersError
            ids = self._ids(replica)
            first = ids.following
            try:
                plan = self.plan(row.statement, replica, new_table, ids)
            except RetryableError:
                blocked.append(0)
                return None
            except CatalogError as error:
                return self._refused(replica, number, row, error)
            others = [s.change for t in plan.tables if (s := replica.schemas.get(t)) and s.change not in {0, number}]
            if others:
                blocked.extend(others)
                return None
            return self._begun(replica, number, row, plan, new_table, ids.following - first)

        self.store.commit(draft)
        if blocked:
            self.wait(0.2)

    def _begun(
        self, replica: TablesReplica, number: int, row: pb.SchemaChangeValue, plan: Plan, new_table: int, taken: int
    ) -> Draft:
        now_ms = replica.log.now_ms()
        row.stages.extend(stage_messages(held(plan.stages) if row.options.hold else plan.stages))
        row.new_table = new_table
        row.status = pb.STATUS_RUNNING
        rows: dict[str, list[Row]] = {}
        for table in plan.tables:
            schema = replica.schemas.get(table)
            row.images.append(pb.Image(table=table, before=None if schema is None else table_message(schema)))
            if schema is not None:
                message = table_message(schema)
                message.change = number
                rows.setdefault(TABLE, []).extend(put(replica, TABLE, pb.TableKey(id=table), message))
        for text in plan.notes:
            note(row, now_ms, text)
        if not plan.stages:
            row.status, row.ended_ms = pb.STATUS_SUCCEEDED, now_ms
        if taken:
            key = pb.IdAllocKey(name=ELEMENTS)
            following = pb.IdAllocValue(next_id=self._ids(replica).following + taken)
            rows[ID_ALLOC] = put(replica, ID_ALLOC, key, following)
        return Draft(Operation.TRANSACTION, {**rows, SCHEMA_CHANGE: put_change(replica, number, row)})

    def _refused(self, replica: TablesReplica, number: int, row: pb.SchemaChangeValue, error: CatalogError) -> Draft:
        row.status, row.ended_ms = pb.STATUS_FAILED, replica.log.now_ms()
        row.failure.CopyFrom(pb.Failure(rule=type(error).__name__, why=error.what, at_ts=replica.state.version))
        return Draft(rows={SCHEMA_CHANGE: put_change(replica, number, row)})

    def _ids(self, replica: TablesReplica) -> Ids:
        found = replica.message(ID_ALLOC, pb.IdAllocKey(name=ELEMENTS), pb.IdAllocValue)
        return Ids(found.next_id if isinstance(found, pb.IdAllocValue) else 1)

    def _carry_out(self, owned: Owned, row: pb.SchemaChangeValue, stage: Stage) -> None:
        match stage.kind:
            case StageKind.ANNOUNCE:
                following = next_stage(row)
                self.store.commit(lambda replica: announce_draft(replica, owned, stage, following))
            case StageKind.CLOSE:
                self._close(owned, row, stage)
            case StageKind.EDIT:
                self.store.commit(lambda replica: edit_draft(replica, owned, stage))
            case StageKind.BUILD:
                self._build(owned, row, stage)
            case StageKind.REORGANISE:
                self._reorganise(owned, stage)
            case StageKind.VALIDATE:
                self._validate(owned, stage)
            case StageKind.ITEM:
                self._item(owned, stage)
            case StageKind.HOLD:
                self._hold(owned, stage)

    def _close(self, owned: Owned, row: pb.SchemaChangeValue, stage: Stage) -> None:
        """Wait for bulk writes of the version before, for as long as the change has patience; then close."""
        tables = {image.table for image in row.images}
        pinning = {
            name: write
            for name, write in self.store.replica.bulk_writes().items()
            if any(pin.table in tables and self._is_behind(pin) for pin in write.pins)
        }
        dead = self.signs.dead(pinning)
        live = pinning.keys() - {*dead}
        since = self._waiting_since.setdefault(owned.id, time.monotonic())
        if live and (time.monotonic() - since) * 1000 < row.options.patience_ms:
            if ChangeStatus(row.status) is not ChangeStatus.WAITING:
                self._edit(owned, lambda row: setattr(row, "status", pb.STATUS_WAITING))
            self.wait(0.2)
            return
        self._waiting_since.pop(owned.id, None)
        self.store.commit(lambda replica: close_draft(replica, owned, stage, dead))

    def _is_behind(self, pin: pb.Pin) -> bool:
        schema = self.store.replica.schemas.get(pin.table)
        return schema is not None and pin.version < schema.cur

    def _build(self, owned: Owned, row: pb.SchemaChangeValue, stage: Stage) -> None:
        """Build one chunk of an element; the first step fixes the ts whose rows are read."""
        replica = self.store.replica
        schema, element = self._part(stage)
        if not row.read_ts:
            total = sum(file.rows for file in replica.view.files_of(schema.collection))

            def fix(row: pb.SchemaChangeValue) -> None:  # at the state that it is committed on: that one is retained
                row.read_ts, row.rows_total = replica.state.version, total

            self._edit(owned, fix)
            return
        fence = replica.state.fence
        codec = replica.codecs.of(schema)
        chunk = build_chunk(
            self.store.log, self.store.view_at(row.read_ts), codec, element, fence=fence, after=row.done_until
        )

        def done(row: pb.SchemaChangeValue) -> None:
            if chunk.rows:
                row.done_until = chunk.last
                row.rows_done += chunk.rows
                row.chunks_done.append(len(row.chunks_done))
            else:
                finished_stage(row, stage, replica.log.now_ms())

        self.store.commit(lambda replica: row_draft(replica, owned, done, chunk.files))
        if row.options.rows_per_s and chunk.rows:
            self.wait(chunk.rows / row.options.rows_per_s)

    def _reorganise(self, owned: Owned, stage: Stage) -> None:
        """Give every row what unfinished columns hold; files that were merged meanwhile are read again."""

        def draft(replica: TablesReplica) -> Draft:
            owned_row(replica, owned)
            schema = replica.schemas[stage.table]
            files, count = filled_base(self.store.log, replica.view, replica.codecs.of(schema), replica.state.fence)
            removes = tuple(replica.view.files_of(schema.collection))

            def done(row: pb.SchemaChangeValue) -> None:
                row.rows_done = row.rows_total = count
                finished_stage(row, stage, replica.log.now_ms())

            return row_draft(replica, owned, done, adds=files, removes=removes)

        self.store.commit(draft)

    def _validate(self, owned: Owned, stage: Stage) -> None:
        """Look for violators; go on if there are none, and fail if some still violate in the commit that says so."""
        replica = self.store.replica
        schema, element = self._part(stage)
        violators = find_violators(replica, replica.view, schema, element)
        if not violators:
            self.store.commit(
                lambda replica: row_draft(replica, owned, lambda row: finished_stage(row, stage, replica.log.now_ms()))
            )
            return

        def draft(replica: TablesReplica) -> Draft | None:
            owned_row(replica, owned)
            present = replica.schemas[stage.table]
            found = [violation_at(replica, replica.view, present, element, one) for one in violators]
            keys = [key for violation in found if violation is not None for key in violation.keys]
            if not keys:
                return None  # all were mended: validate again
            failure = pb.Failure(
                rule=rule_text(present, element),
                element=element.name,
                keys=keys[:KEYS_MAX],
                count=sum(violation is not None for violation in found),
                at_ts=replica.state.version,
                why=f"{element.name} does not hold",
            )
            return undo_draft(replica, owned.id, ChangeStatus.FAILED, failure=failure, owner=owned)

        self.store.commit(draft)

    def _item(self, owned: Owned, stage: Stage) -> None:
        """Change the item that names the table; doing it twice is doing it once."""
        items = [] if stage.item is None else [stage.item]
        try:
            for item in items:
                self.names.apply(item)
        except RetryableError:
            self.wait(0.2)
            return
        except CatalogError as error:
            self._fail(owned, pb.Failure(rule="item", why=error.what, count=1))
            return
        try:
            self._edit(owned, lambda row: finished_stage(row, stage, self.store.log.now_ms()))
        except (ChangeOvertakenError, StoppedByOthersError):
            if ChangeStatus(self._row(owned.id).status) in UNDONE:
                take_back(self.names, items)  # it was undone before this late owner changed the item
            raise

    def _hold(self, owned: Owned, stage: Stage) -> None:
        def hold(row: pb.SchemaChangeValue) -> None:
            finished_stage(row, stage, self.store.log.now_ms())
            if row.options.hold:
                row.status = pb.STATUS_HOLDING

        self._edit(owned, hold)

    def _edit(self, owned: Owned, edit: Callable[[pb.SchemaChangeValue], None]) -> None:
        self.store.commit(lambda replica: row_draft(replica, owned, edit))

    def _fail(self, owned: Owned, failure: pb.Failure) -> None:
        failure.at_ts = self.store.ts
        undo_change(self.store, self.names, owned.id, ChangeStatus.FAILED, failure=failure, owner=owned)

    def _part(self, stage: Stage) -> tuple[TableSchema, Element]:
        schema = self.store.replica.schemas[stage.table]
        element = schema.element_by_id(stage.element)
        if element is None:
            raise StoppedByOthersError
        return schema, element


def held(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """Return stages that stop before the first one that can no longer be undone."""
    at = next((number for number, stage in enumerate(stages) if stage.is_visible), len(stages))
    return (*stages[:at], Stage(StageKind.HOLD, "hold, until it is resumed or cancelled"), *stages[at:])
