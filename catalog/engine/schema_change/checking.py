"""The check of a table: every complete index against its rows both ways, and every public constraint against them.

Rows and entries of one state are read in the order of keys, a part at a time; only findings are held. An index is
compared by sums of digests, which need no lookups; only if they differ is every row and every entry looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b

from catalog.engine.schema_change.derive import stored_row
from catalog.engine.schema_change.layers import LayeredView
from catalog.engine.schema_change.replica import TablesReplica
from catalog.engine.schema_change.row_text import row_key_text
from catalog.engine.schema_change.rows import RowCodec, RowValues
from catalog.engine.schema_change.schema import STORING, Element, ElementKind, State, TableSchema
from catalog.engine.schema_change.types import Value
from catalog.engine.schema_change.validating import (
    KEYS_MAX,
    VIOLATORS_MAX,
    find_violators,
    rule_text,
    violation_at,
)
from catalog.errors import UndecodableRowError

Advance = Callable[[int, int], None]
"""Is told how many rows and entries were read, and of how many."""
_TELL_EVERY = 1000
_DIGEST_BYTES = 16
_MODULUS = 1 << 8 * _DIGEST_BYTES
_NO_INDEX = frozenset({ElementKind.UNIQUE, ElementKind.FOREIGN_KEY})
"""Kinds of constraints that are judged by an index."""
_REBUILD = "drop it and create it again; writes go on meanwhile"


@dataclass(frozen=True, slots=True)
class TableFinding:
    """Something that does not hold, and the rows for which it does not."""

    element: str
    """The index or the constraint; of rows themselves, the table."""
    what: str
    count: int
    is_least: bool
    """True if there may be more."""
    keys: tuple[str, ...]
    """Of some of the rows, as JSON."""
    fix: str


@dataclass(frozen=True, slots=True)
class TableReport:
    table: str
    ts: int
    rows: int
    indexes: tuple[str, ...]
    constraints: tuple[str, ...]
    unfinished: tuple[str, ...]
    """Indexes that are being built and constraints that are being validated; they need not hold yet."""
    findings: tuple[TableFinding, ...]

    @property
    def ok(self) -> bool:
        return not self.findings


def check_table(replica: TablesReplica, schema: TableSchema, advance: Advance | None = None) -> TableReport:
    """Check a table at the newest state that a replica has seen."""
    check = _TableCheck(replica, replica.view, schema, replica.codecs.of(schema), advance)
    indexes, constraints, unfinished = _divided(schema)
    check.begin(indexes, constraints)
    rows, sums = check.rows(indexes)
    for index in indexes:
        check.index(index, sums[index.id])
    for constraint in constraints:
        check.constraint(constraint)
    return TableReport(
        schema.name,
        replica.state.version,
        rows,
        tuple(index.name for index in indexes),
        tuple(constraint.name for constraint in constraints),
        tuple(element.name for element in unfinished),
        tuple(check.findings()),
    )


def _divided(schema: TableSchema) -> tuple[list[Element], list[Element], list[Element]]:
    """Return the complete indexes, the public constraints, and what is on its way to either."""
    indexes: list[Element] = []
    constraints: list[Element] = []
    unfinished: list[Element] = []
    for element in schema.elements:
        if element.id == schema.primary.id:
            continue
        is_public = element.state is State.PUBLIC
        leads_here = element.support in {0, schema.primary.id}
        if element.kind is ElementKind.INDEX and leads_here and schema.counts(element) and (is_public or element.built):
            indexes.append(element)
        elif element.kind not in STORING and is_public:
            constraints.append(element)
        else:
            unfinished.append(element)
    return indexes, constraints, unfinished


@dataclass(slots=True)
class _Found:
    fix: str
    count: int = 0
    keys: list[str] = field(default_factory=list)
    is_least: bool = False

    def add(self, key: str) -> None:
        self.count += 1
        if key and len(self.keys) < KEYS_MAX:
            self.keys.append(key)


@dataclass(slots=True)
class _TableCheck:
    replica: TablesReplica
    view: LayeredView
    schema: TableSchema
    codec: RowCodec
    advance: Advance | None
    _total: int = 0
    _done: int = 0
    _unreadable: bool = False
    _found: dict[tuple[str, str], _Found] = field(default_factory=dict)

    def begin(self, indexes: list[Element], constraints: list[Element]) -> None:
        """Count what there is to read."""
        of_rows = sum(constraint.kind is not ElementKind.UNIQUE for constraint in constraints)
        self._total = self._stored(self.schema.collection) * (1 + of_rows)
        self._total += sum(self._stored(index.collection) for index in indexes)

    def rows(self, indexes: list[Element]) -> tuple[int, dict[int, int]]:
        """Check every row by itself; return how many there are, and the digests of the entries they should have."""
        count, sums = 0, dict.fromkeys((index.id for index in indexes), 0)
        for key, row in self._rows():
            count += 1
            if row is None:
                self._unreadable = True
                self._add(self.schema.name, "rows cannot be decoded", _raw(key), "restore the table from a copy")
                continue
            if any(row.get(number) is None for number in self.schema.primary.columns):
                text = row_key_text(self.schema, row)
                self._add(self.schema.name, "rows have NULL in their primary key", text, "delete these rows")
            elif self.codec.key(row) != key:
                text = f"{row_key_text(self.schema, row)} stored as {_raw(key)}"
                self._add(self.schema.name, "keys are not stored in their one form", text, "delete these rows")
            for index in indexes:
                sums[index.id] += _digest(*stored_row(self.codec, index, row))
        return count, sums

    def index(self, index: Element, expected: int) -> None:
        """Compare an index with its rows."""
        entries = self._counted(self.view.rows(index.collection))
        if (sum(_digest(key, value) for key, value in entries) - expected) % _MODULUS:
            self._rows_without_entry(index)
            self._entries_without_row(index)

    def constraint(self, element: Element) -> None:
        """Look for rows that violate a constraint."""
        rule = rule_text(self.schema, element)
        if element.kind in _NO_INDEX and self.schema.element_by_id(element.support) is None:
            self._add(element.name, f"{rule} has no index to be judged by", "", "drop the constraint and add it again")
            return
        if self._unreadable:
            self._add(element.name, f"{rule} cannot be checked", "", "restore the rows that cannot be decoded first")
            return
        violators = find_violators(self.replica, self.view, self.schema, element)
        for violator in violators:
            found = violation_at(self.replica, self.view, self.schema, element, violator)
            if found is not None:
                self._add(element.name, f"{rule} does not hold", "; ".join(found.keys), "correct or delete these rows")
        if len(violators) == VIOLATORS_MAX:
            self._found[element.name, f"{rule} does not hold"].is_least = True
        if element.kind is not ElementKind.UNIQUE:
            self._tell(self._stored(self.schema.collection))

    def findings(self) -> Iterator[TableFinding]:
        for (element, what), found in self._found.items():
            yield TableFinding(element, what, found.count, found.is_least, tuple(found.keys), found.fix)

    def _rows_without_entry(self, index: Element) -> None:
        for _, row in self._rows():
            if row is None:
                continue
            name, entry = stored_row(self.codec, index, row)
            found = self.view.get(index.collection, name)
            if found is None:
                self._add(index.name, "rows have no entry", row_key_text(self.schema, row), _REBUILD)
            elif found != entry:
                self._add(index.name, "entries hold other values", row_key_text(self.schema, row), _REBUILD)

    def _entries_without_row(self, index: Element) -> None:
        for key, _ in self.view.rows(index.collection):
            try:
                entry = self.codec.key_values(key, index)
            except UndecodableRowError:
                self._add(index.name, "entries cannot be decoded", _raw(key), _REBUILD)
                continue
            row_key = self.codec.key(entry)
            stored = self.view.get(self.schema.collection, row_key)
            row = None if stored is None else self._row(row_key, stored)
            if stored is None:
                self._add(index.name, "entries have no row", row_key_text(self.schema, entry), _REBUILD)
            elif row is not None and stored_row(self.codec, index, row)[0] != key:
                self._add(index.name, "entries are of earlier values", row_key_text(self.schema, entry), _REBUILD)

    def _rows(self) -> Iterator[tuple[bytes, RowValues | None]]:
        """Yield every row by its key; none for one that cannot be decoded."""
        for key, value in self._counted(self.view.rows(self.schema.collection)):
            yield key, self._row(key, value)

    def _row(self, key: bytes, value: bytes) -> dict[int, Value] | None:
        try:
            return self.codec.row(key, value)
        except (UndecodableRowError, ValueError, ArithmeticError):  # the latter of values that no type holds
            return None

    def _counted(self, rows: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
        count = 0
        for count, row in enumerate(rows, 1):
            if count % _TELL_EVERY == 0:
                self._tell(_TELL_EVERY)
            yield row
        self._tell(count % _TELL_EVERY)

    def _tell(self, count: int) -> None:
        self._done = min(self._done + count, self._total)
        if self.advance is not None:
            self.advance(self._done, self._total)

    def _stored(self, collection: str) -> int:
        return sum(file.rows for file in self.view.files_of(collection))

    def _add(self, element: str, what: str, key: str, fix: str) -> None:
        self._found.setdefault((element, what), _Found(fix)).add(key)


def _digest(key: bytes, value: bytes) -> int:
    content = len(key).to_bytes(4) + key + value
    return int.from_bytes(blake2b(content, digest_size=_DIGEST_BYTES).digest())


def _raw(key: bytes) -> str:
    return f"0x{key[:32].hex()}"
