"""The check of the tables of a store: their log and files, their rows, indexes and constraints, and their names.

Reads only. Files are checked by themselves; rows through the same view that every reader has, and only if the files
are whole. Others may write meanwhile: a table and its name are looked at again if either log has moved on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from google.protobuf.message import DecodeError, Message

from catalog.engine.log.place import StorePlace
from catalog.engine.log.protocol import Log
from catalog.engine.schema_change import tables_pb2 as pb
from catalog.engine.schema_change.checking import check_table
from catalog.engine.schema_change.maintenance import orphaned_collections
from catalog.engine.schema_change.names import table_items
from catalog.engine.schema_change.replica import (
    BULK_WRITE,
    CONFIG,
    FENCE_TOKEN,
    ID_ALLOC,
    SCHEMA_CHANGE,
    TABLE,
    TablesReplica,
)
from catalog.engine.schema_change.signs import StoredSigns
from catalog.engine.schema_change.steps import RUN, ChangeStatus
from catalog.engine.schema_change.stored_schema import table_schema
from catalog.engine.stash.stash import Stash
from catalog.engine.storage.layout import TABLES, has_tables
from catalog.errors import CatalogError, NoStoreError, RetiredError, VersionChangedError
from catalog.tools.fsck.files import check_orphans, check_settled, check_ts, present_files, read_file
from catalog.tools.fsck.findings import (
    ADOPT_CHANGE,
    CHANGE_ENDS_IT,
    COMPACT_AWAY,
    DELETE_ITEM,
    RESTORE,
    FsckCode,
    FsckFindings,
    FsckReport,
    Severity,
)
from catalog.tools.fsck.log import read_history, replay

_ATTEMPTS_MAX = 10
_ENGINE_ROWS: Final[dict[str, tuple[type[Message], type[Message]]]] = {
    TABLE: (pb.TableKey, pb.TableValue),
    SCHEMA_CHANGE: (pb.SchemaChangeKey, pb.SchemaChangeValue),
    BULK_WRITE: (pb.BulkWriteKey, pb.BulkWriteValue),
    CONFIG: (pb.ConfigKey, pb.ConfigValue),
    FENCE_TOKEN: (pb.FenceTokenKey, pb.FenceTokenValue),
    ID_ALLOC: (pb.IdAllocKey, pb.IdAllocValue),
}


def check_tables(
    place: StorePlace, stash: Stash | None, findings: FsckFindings, *, every_state: bool = False
) -> Iterator[FsckReport]:
    """Check the tables of a store, and their names if the stash can be read; yield nothing if there are none."""
    log, own = place.tables_log(), FsckFindings()
    if not has_tables(place.storage) or _is_unmade(log):
        return
    yield check_settled(log, lambda found: _check_files(log, found, every_state=every_state), own)
    if any(finding.severity is Severity.ERROR for finding in own.listed):
        own.unchecked("rows", "rows, indexes and names of tables were not checked: not all of the log can be read")
    else:
        _check_content(place, log, stash, own)
    findings.take(own, f"{TABLES}/")


def _is_unmade(log: Log) -> bool:
    """Tell if the maker of a log was stopped before its first entry, and nothing is lost."""
    try:
        log.verify()
    except NoStoreError:
        return next(iter(log.files()), None) is None
    except CatalogError:
        return False
    return False


def _check_files(log: Log, findings: FsckFindings, *, every_state: bool) -> tuple[int, int, int]:
    present = present_files(log, findings)
    history, entries = read_history(log, findings)
    if history is None:
        return entries, 0, 0
    born = replay(log, history, findings)
    files = history.files() if every_state else history.newest.files
    count = 0
    for path, file in files.items():
        rows = read_file(log, file, findings)
        if rows is not None:
            count += rows.num_rows
            check_ts(file, rows, born.get(path), findings)
    check_orphans(log, history, present, findings)
    return entries, len(files), count


def _check_content(place: StorePlace, log: Log, stash: Stash | None, findings: FsckFindings) -> None:
    """Check rows and names at the newest state; a newer one if that is retired or the names changed meanwhile."""
    for attempt in range(1, _ATTEMPTS_MAX + 1):
        own = FsckFindings()
        try:
            replica = TablesReplica.open(log)
            check = _Content(replica, StoredSigns(place.storage), own)
            moved = check.run(stash)
        except RetiredError:
            moved = True
        except VersionChangedError:
            own.unchecked("names", "names of tables were not checked: the version of the store changed meanwhile")
            moved = False
        except CatalogError as error:
            own.add(FsckCode.TABLE, "", f"rows cannot be read: {error.what}", RESTORE)
            moved = False
        if not moved or attempt == _ATTEMPTS_MAX:
            findings.take(own, "")
            return


@dataclass(slots=True)
class _Content:
    replica: TablesReplica
    signs: StoredSigns
    findings: FsckFindings

    def run(self, stash: Stash | None) -> bool:
        """Check everything at one state; tell if names have to be looked at again."""
        if not self._check_engine_rows():
            self.findings.unchecked("rows", "rows of tables were not checked: a row of the engine's own is damaged")
            return False
        for schema in self.replica.schemas.values():
            for found in check_table(self.replica, schema).findings:
                count = f"{'at least ' if found.is_least else ''}{found.count:,}"
                keys = f": {'; '.join(found.keys)}" if found.keys else ""
                what, where = f"{found.what} ({count}){keys}", f"{schema.name} `{found.element}`"
                self.findings.add(FsckCode.TABLE_ROWS, where, what, f"can be repaired: {found.fix}")
        for name in orphaned_collections(self.replica):
            what = "it belongs to no element of any schema"
            self.findings.add(FsckCode.NO_SCHEMA, f"`{name}`", what, COMPACT_AWAY, Severity.SWEEPABLE)
        self._note_abandoned()
        return stash is not None and self._check_names(stash)

    def _check_engine_rows(self) -> bool:
        """Check that every row of the engine's own can be decoded, and every schema be used; tell if that is so."""
        view, is_sound = self.replica.view, True
        for name, (key_type, value_type) in _ENGINE_ROWS.items():
            for key, value in view.rows(name):
                try:
                    key_type.FromString(key)
                    message = value_type.FromString(value)
                    if isinstance(message, pb.TableValue):
                        schema = table_schema(0, message)
                        self.replica.codecs.of(schema)
                except (DecodeError, CatalogError, ValueError, LookupError, StopIteration) as error:
                    is_sound = False
                    what = f"it cannot be read: {error.what if isinstance(error, CatalogError) else error!r}"
                    self.findings.add(FsckCode.TABLE, f"`{name}` {key.hex()}", what, RESTORE)
        return is_sound

    def _note_abandoned(self) -> None:
        for number, row in self.replica.changes().items():
            status = ChangeStatus(row.status)
            if status in {*RUN, ChangeStatus.PENDING} and not self.signs.facts(f"change-{number}"):
                what = f"it is {status.name}, and {row.owner or 'no process'} shows no sign of life for it"
                where = f"schema change {number}"
                self.findings.add(FsckCode.ABANDONED, where, what, ADOPT_CHANGE, Severity.NOTE)
        for name, write in self.replica.bulk_writes().items():
            if not self.signs.facts(name):
                what = f"{write.who or 'its process'} shows no sign of life; no ts from {write.read_ts} on is retired"
                self.findings.add(FsckCode.ABANDONED, name, what, CHANGE_ENDS_IT, Severity.NOTE)

    def _check_names(self, stash: Stash) -> bool:
        """Check that tables and the items that name them belong together; tell if a log has moved on since."""
        ts, own = stash.refresh(), FsckFindings()
        items = table_items(stash)
        if items is None:
            return False
        changes = self.replica.changes()
        unfinished = [row for row in changes.values() if not ChangeStatus(row.status).is_over]
        concerned = {image.table for row in unfinished for image in row.images} | {row.new_table for row in unfinished}
        schemas = self.replica.schemas
        for number in sorted(schemas.keys() - items.keys() - concerned):
            where, what = f"{schemas[number].name}", f"no item of the stash has its id, {number}"
            own.add(FsckCode.NO_ITEM, where, what, RESTORE)
        made = {row.new_table for row in changes.values()} - concerned
        for number in sorted((items.keys() & made) - schemas.keys()):
            what = f"the item {number} was made with a table, which is not there"
            own.add(FsckCode.NO_TABLE, items[number], what, DELETE_ITEM)
        if own.counts and (stash.refresh() != ts or self.replica.log.head(self.replica.state.version) != self._ts):
            return True
        self.findings.take(own, "")
        return False

    @property
    def _ts(self) -> int:
        return self.replica.state.version
