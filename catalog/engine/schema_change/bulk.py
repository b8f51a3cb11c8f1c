"""Bulk writes: many rows of one table in one commit, whatever is written or changed meanwhile.

A bulk write registers by a row of its own, so that schema changes wait for it and nothing is retired that it reads. It
derives files from the state of its registration, and commits them on a later one. Rows that others touched in between
are derived again, and they alone; all of them only if the schema of now asks for more than the files have.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import InitVar, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from catalog.engine.log.protocol import Operation
from catalog.engine.schema_change import tables_pb2 as pb
from catalog.engine.schema_change.bulk_conflicts import is_overtaken, touched_keys
from catalog.engine.schema_change.bulk_rows import DerivedRows, with_files
from catalog.engine.schema_change.bulk_verb import Verb
from catalog.engine.schema_change.derive import Evidence, check_images
from catalog.engine.schema_change.evaluation import evaluate_row
from catalog.engine.schema_change.pending import translated
from catalog.engine.schema_change.replica import BULK_WRITE, TablesReplica, schemas_of
from catalog.engine.schema_change.row_text import row_key_text
from catalog.engine.schema_change.rows import RowValues
from catalog.engine.schema_change.schema import TableSchema, TableState
from catalog.engine.schema_change.signs import LifeThread
from catalog.engine.schema_change.store import Draft, put
from catalog.engine.schema_change.types import Value
from catalog.errors import CatalogError
from catalog.errors.tables import BulkWriteExpiredError, SchemaChangedError, UnfitFrameError

if TYPE_CHECKING:
    from catalog.engine.schema_change.layers import LayeredView
    from catalog.engine.schema_change.tables import Tables

REBASED_MAX = 10_000
"""Rows that are derived again as rows of a tail, which every process holds in memory; more of them become files."""


@dataclass(slots=True)
class BulkWrite:
    """A bulk write under way, from its registration to its commit."""

    tables: Tables
    table: int
    verb: Verb
    columns: frozenset[int]
    """The columns that its rows set."""
    id: str = field(default_factory=lambda: f"bulk-{uuid.uuid4().hex}")
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    made_for: InitVar[TableSchema | None] = None
    known: TableSchema = field(init=False)
    """The schema that its rows were made for; by default that of now."""
    derived: DerivedRows = field(init=False)
    _rows: list[RowValues] = field(default_factory=list)

    def __post_init__(self, made_for: TableSchema | None) -> None:
        self.known = made_for or self.tables.schema_of(self.table)

    def pin(self) -> None:
        """Register at the newest version of the schema; rows are read as of this very commit, which changes none."""

        def draft(replica: TablesReplica) -> Draft:
            value = pb.BulkWriteValue(
                pins=[pb.Pin(table=self.table, version=self._present(replica.schemas, replica.state.version).cur)],
                read_ts=replica.state.version + 1,
                who=self.tables.owner_name,
                began_ms=replica.log.now_ms(),
            )
            return Draft(rows={BULK_WRITE: put(replica, BULK_WRITE, pb.BulkWriteKey(id=self.id), value)})

        store = self.tables.store
        view = store.view_at(store.commit(draft))
        self.derived = self._derived(view, schemas_of(view))

    def release(self) -> None:
        """Remove the registration of a write that will not be committed."""

        def draft(replica: TablesReplica) -> Draft | None:
            rows = put(replica, BULK_WRITE, pb.BulkWriteKey(id=self.id), None)
            return Draft(rows={BULK_WRITE: rows}) if rows else None

        self.tables.store.commit(draft)

    def derive(self, rows: Iterable[RowValues]) -> None:
        """Write the layers of some of its rows; each key comes once."""
        asked = list(rows)
        self.derived.add(self._keyed(asked, self.derived), self.tables.store.state.fence)
        self._rows += asked

    def check(self) -> None:
        """Check every constraint over all that was derived."""
        self.derived.check(self.tables.store.replica.codecs)

    def draft(self, replica: TablesReplica) -> Draft:
        """Return the commit for the newest state; rows that others touched since are derived and checked again."""
        if replica.message(BULK_WRITE, pb.BulkWriteKey(id=self.id), pb.BulkWriteValue) is None:
            raise BulkWriteExpiredError(self.known.name, self.id)
        present = self._present(replica.schemas, replica.state.version)
        touched = None if self._lacks(replica, present) else touched_keys(replica, self.derived, present)
        if touched is None or len(touched) > REBASED_MAX:
            self._begin_again(replica)
            touched = set()
        counted = {element.collection for element in present.stores}
        files = {name: own for name, own in self.derived.files.items() if name in counted}
        images, rows = self.derived.rebased(replica.view, replica.codecs.of(present), sorted(touched))
        evidence = Evidence(with_files(replica.view, files))
        evidence.apply(rows)
        check_images(replica.schemas, replica.codecs, evidence, images)
        rows[BULK_WRITE] = put(replica, BULK_WRITE, pb.BulkWriteKey(id=self.id), None)
        details = {"rows": str(len(self.derived.given)), "verb": self.verb.value}
        return Draft(Operation.LOAD, rows, tuple(file for own in files.values() for file in own), details=details)

    def _present(self, schemas: Mapping[int, TableSchema], ts: int) -> TableSchema:
        found = schemas.get(self.table)
        if found is None or found.state is not TableState.PUBLIC:
            raise SchemaChangedError(self.known.name, ts, "it is being dropped")
        found.require_known_features()
        return found

    def _derived(self, view: LayeredView, schemas: Mapping[int, TableSchema]) -> DerivedRows:
        schema = self._present(schemas, view.state.version)
        return DerivedRows(self.verb, self.now, view, schemas, self.tables.store.replica.codecs.of(schema))

    def _lacks(self, replica: TablesReplica, present: TableSchema) -> bool:
        """Tell if its files cannot become part of the newest state, whatever rows were touched."""
        return bool(self._gone(present)) or is_overtaken(replica, self.derived, present)

    def _begin_again(self, replica: TablesReplica) -> None:
        """Derive and check all rows at the newest state; if another commit comes first, they are only rebased."""
        derived = self._derived(replica.view, replica.schemas)
        derived.add(self._keyed(self._rows, derived), replica.state.fence)
        derived.check(replica.codecs)
        self.derived = derived

    def _gone(self, schema: TableSchema) -> frozenset[int]:
        """Return the columns that its rows set and the schema does not have; keys alone matter to a removal."""
        if self.verb is Verb.DELETE:
            return frozenset()
        return self.columns - {column.id for column in schema.written}

    def _keyed(self, rows: Iterable[RowValues], derived: DerivedRows) -> Iterator[tuple[bytes, RowValues]]:
        """Yield rows by their keys, as the schema of a state has them."""
        schema, codec, gone = derived.schema, derived.codec, self._gone(derived.schema)
        ended = gone & {column.id for column in self.known.columns if column.hidden}
        for row in rows:
            values = dict(row)
            if gone:
                kept = {number: value for number, value in row.items() if number not in ended}
                values = translated(schema, self.known, kept, derived.view.state.version)
            self._complete_key(schema, values)
            yield codec.key(values), values

    def _complete_key(self, schema: TableSchema, values: dict[int, Value]) -> None:
        """Give a row the defaults of its key; refuse a key that lacks something."""
        for column in schema.key_columns():
            default = None if self.verb is Verb.DELETE else column.write_default
            if column.id not in values and default is None:
                raise UnfitFrameError(schema.name, f"the column {column.name} is missing")
            if column.id not in values and default is not None:
                values[column.id] = evaluate_row(default, {}, self.now)
            if values[column.id] is None:
                raise UnfitFrameError(schema.name, f"the key {row_key_text(schema, values)} has a NULL")


def write_rows(tables: Tables, schema: TableSchema, verb: Verb, rows: list[dict[int, Value]]) -> int:
    """Write rows in one commit; return its ts. Without rows there is no commit, and the ts is the present one."""
    if not rows:
        return tables.ts
    columns = frozenset(number for row in rows for number in row)
    write = BulkWrite(tables, schema.id, verb, columns, made_for=schema)
    with LifeThread(tables.signs, write.id):
        try:
            write.pin()
            write.derive(rows)
            write.check()
            return tables.store.commit(write.draft)
        except BaseException:
            with suppress(CatalogError):  # the sign of life ends, and the next schema change removes it
                write.release()
            raise
