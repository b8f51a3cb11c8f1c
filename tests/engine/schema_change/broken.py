"""Rules of online schema change, each broken on purpose: what the world must notice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import pytest

from catalog.engine.log.protocol import DataFile, Row
from catalog.engine.schema_change import derive, maintenance, owner, rows, steps, transaction, undoing
from catalog.engine.schema_change.building import Chunk, build_chunk, filled_base
from catalog.engine.schema_change.derive import RowImage
from catalog.engine.schema_change.layers import LayeredView
from catalog.engine.schema_change.operations import drop_table
from catalog.engine.schema_change.operations.context import Planning
from catalog.engine.schema_change.plan import Plan, Stage, StageKind
from catalog.engine.schema_change.planner import plan_statement
from catalog.engine.schema_change.replica import TablesReplica, Touched
from catalog.engine.schema_change.rows import RowCodec, RowValues
from catalog.engine.schema_change.schema import Element, ElementKind, State, TableSchema
from catalog.engine.schema_change.statements import DropTable, Statement
from catalog.engine.schema_change.steps import Owned
from catalog.engine.schema_change.transaction import TableTransaction
from catalog.engine.schema_change.types import Value
from catalog.engine.schema_change.validating import FoundViolation, find_violators
from catalog.errors import TransactionConflictError
from tests.engine.schema_change.world import READING, RULES, STEPS, WRITING, Doing

Break = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Where:
    """The worlds in which a broken rule is looked for."""

    first_seed: int
    rules: Mapping[Doing, int] = field(default_factory=lambda: RULES)
    meeting_rates: tuple[float, ...] = ()
    steps: int = STEPS


EARLIER = 2
"""Versions before the one that should be read."""


def earlier(view: LayeredView, back: int = EARLIER) -> LayeredView:
    version = max(view.state.version - back, 1)
    return LayeredView(view.cache, view.cache.log.state(version))


def a_build_reads_before_the_close(patch: pytest.MonkeyPatch) -> None:
    build = build_chunk

    def broken(log: Any, view: LayeredView, codec: RowCodec, element: Element, **more: Any) -> Chunk:  # noqa: ANN401 - passed on
        return build(log, earlier(view), codec, element, **more)

    patch.setattr(owner, "build_chunk", broken)


def validation_reads_before_the_close(patch: pytest.MonkeyPatch) -> None:
    find = find_violators

    def broken(replica: TablesReplica, view: LayeredView, schema: TableSchema, element: Element) -> Any:  # noqa: ANN401 - passed on
        return find(replica, earlier(view, 6), schema, element)

    patch.setattr(owner, "find_violators", broken)


def built_entries_outrank_later_changes(patch: pytest.MonkeyPatch) -> None:
    build = build_chunk

    def broken(log: Any, view: LayeredView, codec: RowCodec, element: Element, **more: Any) -> Chunk:  # noqa: ANN401 - passed on
        late = LayeredView(view.cache, replace(view.state, version=log.head(0)))
        return build(log, late, codec, element, **more)

    patch.setattr(owner, "build_chunk", broken)


def tombstones_go_while_an_index_is_built(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(maintenance, "keeps_tombstones", lambda *_: False)


def an_entry_is_removed_only_once_the_index_is_built(patch: pytest.MonkeyPatch) -> None:
    def broken(codec: RowCodec, images: Iterable[RowImage], ts: int) -> dict[str, list[Row]]:
        found = derive.derived_rows(codec, images, ts)
        unbuilt = {e.collection for e in codec.schema.elements if e.kind is ElementKind.INDEX and not e.built}
        return {name: [row for row in own if row[3] > 0 or name not in unbuilt] for name, own in found.items()}

    patch.setattr(transaction, "derived_rows", broken)


def writers_do_not_maintain_an_index_that_is_built(patch: pytest.MonkeyPatch) -> None:
    def broken(codec: RowCodec, images: Iterable[RowImage], ts: int) -> dict[str, list[Row]]:
        found = derive.derived_rows(codec, images, ts)
        unbuilt = {e.collection for e in codec.schema.elements if e.kind is ElementKind.INDEX and not e.built}
        return {name: own for name, own in found.items() if name not in unbuilt}

    patch.setattr(transaction, "derived_rows", broken)


def writers_do_not_fill_a_column_that_is_filled(patch: pytest.MonkeyPatch) -> None:
    def broken(schema: TableSchema, row: RowValues, now: datetime) -> dict[int, Value]:
        unfinished = {column.id for column in schema.columns if column.state is not State.PUBLIC}
        return {
            number: value for number, value in derive.completed(schema, row, now).items() if number not in unfinished
        }

    patch.setattr(transaction, "completed", broken)


def a_lookup_by_an_index_that_is_gone_counts(patch: pytest.MonkeyPatch) -> None:
    def broken(self: TableTransaction, replica: TablesReplica) -> None:
        for touched in replica.touched_since(self.view.state.version):
            if self._depends_on(replica, touched):
                raise TransactionConflictError(self.view.state.version, replica.state.version)

    patch.setattr(TableTransaction, "_require_unchanged", broken)


def files_of_gone_elements_stay(patch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> list[DataFile]:
        return []

    patch.setattr(steps, "_files_gone", broken)


def _without(part: str) -> Break:
    """Return a rule that leaves a part of what was read out of the conflict set."""

    def break_rule(patch: pytest.MonkeyPatch) -> None:
        depends = TableTransaction._depends_on  # noqa: SLF001

        def broken(self: TableTransaction, replica: TablesReplica, touched: Touched) -> bool:
            held: set[object] = getattr(self, part)
            kept = set(held)
            held.clear()
            try:
                return depends(self, replica, touched)
            finally:
                held |= kept

        patch.setattr(TableTransaction, "_depends_on", broken)

    return break_rule


def keys_are_outside_the_conflict_set(patch: pytest.MonkeyPatch) -> None:
    _without("_read")(patch)


def prefixes_are_outside_the_conflict_set(patch: pytest.MonkeyPatch) -> None:
    _without("_prefixes")(patch)


def scans_are_outside_the_conflict_set(patch: pytest.MonkeyPatch) -> None:
    _without("_scanned")(patch)


def steps_are_made_by_whoever_was_the_owner(patch: pytest.MonkeyPatch) -> None:
    def broken(replica: TablesReplica, owned: Owned, *_: object) -> object:
        return steps.change_row(replica, owned.id)

    patch.setattr(steps, "owned_row", broken)


def violators_are_not_looked_at_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(owner, "violation_at", lambda *_: FoundViolation(("some row",)))


def nothing_is_validated(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(owner, "find_violators", lambda *_: [])


def _reordered(patch: pytest.MonkeyPatch, order: Callable[[list[Stage]], list[Stage]]) -> None:
    plan = plan_statement

    def broken(planning: Planning, statement: Statement) -> Plan:
        planned = plan(planning, statement)
        return replace(planned, stages=tuple(order(list(planned.stages))))

    patch.setattr(owner, "plan_statement", broken)


def an_index_is_announced_before_its_column_is_filled(patch: pytest.MonkeyPatch) -> None:
    def order(stages: list[Stage]) -> list[Stage]:
        fills = [stage for stage in stages if stage.kind is StageKind.REORGANISE]
        others = [stage for stage in stages if stage.kind is not StageKind.REORGANISE]
        return [*others[:-1], *fills, *others[-1:]]

    _reordered(patch, order)


def a_rule_is_enforced_before_its_index_is_complete(patch: pytest.MonkeyPatch) -> None:
    def order(stages: list[Stage]) -> list[Stage]:
        builds = [stage for stage in stages if stage.kind is StageKind.BUILD]
        others = [stage for stage in stages if stage.kind is not StageKind.BUILD]
        return [*others[:-1], *builds, *others[-1:]]

    _reordered(patch, order)


def the_item_goes_before_the_table_refuses(patch: pytest.MonkeyPatch) -> None:
    plan = drop_table.plan

    def broken(planning: Planning, statement: DropTable) -> Plan:
        planned = plan(planning, statement)
        refuses, item, gone = planned.stages
        return replace(planned, stages=(item, refuses, gone))

    patch.setattr(drop_table, "plan", broken)


def rows_that_are_referred_to_may_go(patch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Iterator[None]:
        return iter(())

    patch.setattr(derive, "_abandoned", broken)


def rows_do_not_say_their_version(patch: pytest.MonkeyPatch) -> None:
    encode = rows._encoded  # noqa: SLF001

    def broken(message: Any, columns: Any, row: RowValues, _also: Mapping[str, int] | None = None) -> bytes:  # noqa: ANN401 - passed on
        return encode(message, columns, row)

    patch.setattr(rows, "_encoded", broken)


def a_fill_is_not_made_again_after_a_lost_race(patch: pytest.MonkeyPatch) -> None:
    fill, made = filled_base, dict[tuple[int, int, int], Any]()

    def broken(log: Any, view: LayeredView, codec: RowCodec, fence: Any) -> Any:  # noqa: ANN401 - passed on
        place = id(log), codec.schema.id, codec.schema.cur
        if place not in made:
            made[place] = fill(log, view, codec, fence)
        return made[place]

    patch.setattr(owner, "filled_base", broken)


def undo_leaves_the_schema(patch: pytest.MonkeyPatch) -> None:
    draft = steps._schema_draft  # noqa: SLF001

    def broken(replica: TablesReplica, number: int, row: Any, schemas: Any) -> Any:  # noqa: ANN401 - passed on
        return draft(replica, number, row, {} if row.status in steps.UNDONE else schemas)

    patch.setattr(steps, "_schema_draft", broken)


def undo_leaves_the_item(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(undoing, "take_back", lambda *_: None)


BROKEN: dict[Break, Where] = {
    a_build_reads_before_the_close: Where(16),
    validation_reads_before_the_close: Where(5),
    built_entries_outrank_later_changes: Where(16),
    tombstones_go_while_an_index_is_built: Where(16),
    an_entry_is_removed_only_once_the_index_is_built: Where(3),
    writers_do_not_maintain_an_index_that_is_built: Where(0),
    writers_do_not_fill_a_column_that_is_filled: Where(41),
    a_lookup_by_an_index_that_is_gone_counts: Where(21, READING, (0.0, 0.1), 80),
    files_of_gone_elements_stay: Where(6),
    keys_are_outside_the_conflict_set: Where(1, READING, (0.0, 0.1), 80),
    prefixes_are_outside_the_conflict_set: Where(13, READING, (0.0, 0.1), 80),
    scans_are_outside_the_conflict_set: Where(12, READING, (0.0, 0.1), 80),
    steps_are_made_by_whoever_was_the_owner: Where(2),
    violators_are_not_looked_at_again: Where(33, WRITING, (0.4,)),
    nothing_is_validated: Where(4),
    an_index_is_announced_before_its_column_is_filled: Where(16),
    a_rule_is_enforced_before_its_index_is_complete: Where(1),
    the_item_goes_before_the_table_refuses: Where(7),
    rows_that_are_referred_to_may_go: Where(17),
    rows_do_not_say_their_version: Where(66),
    a_fill_is_not_made_again_after_a_lost_race: Where(9, WRITING, (0.4,)),
    undo_leaves_the_schema: Where(2),
    undo_leaves_the_item: Where(32),
}
"""Each broken rule; the seeds are those at which it was found first."""
