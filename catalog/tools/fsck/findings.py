"""Findings of a check of a store, each with its repair: plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

_LISTED_MAX = 1000
"""Findings of one code that are listed; the others are only counted."""
_NAMED_MAX = 5
"""Places that a note names; the others are only counted."""


class FsckCode(StrEnum):
    """Code of a finding; it never changes its meaning."""

    IDENTITY = "F001"
    """`store.json` is missing or cannot be read."""
    NO_LOG = "F101"
    ENTRY = "F102"
    """An entry is missing, damaged, foreign or too new."""
    STATE = "F103"
    """A retained state cannot be read from any checkpoint and the entries after it."""
    CHECKPOINT = "F104"
    """The checkpoint and the entries lead to different states."""
    SEQUENCE = "F105"
    """An entry does not fit those before it."""
    DAMAGED_CHECKPOINT = "F106"
    """A checkpoint cannot be read, or an entry names another state; opening skips it if it can do without it."""
    NO_DIGEST = "F107"
    """Entries of a build that wrote no digests: damage to them may go unnoticed."""
    MISSING = "F201"
    CORRUPT = "F202"
    UNREADABLE = "F203"
    CONTENT = "F204"
    """A file is intact, but holds rows that must not be written."""
    TS = "F205"
    ORPHAN = "F206"
    COLLECTION = "F301"
    MULTIPLICITY = "F302"
    """The diffs of a row add up to neither 0 nor 1, or its key has several values."""
    ORDER = "F303"
    """The newest row of a key in the tail contradicts the sum of its diffs."""
    CONSOLIDATION = "F304"
    """A consolidation changed rows."""
    UNDECODABLE = "F305"
    UNFAITHFUL = "F306"
    """A message does not encode to the bytes it was decoded from."""
    UNDECLARED = "F307"
    """An enum has a value that the types do not declare."""
    DUPLICATE = "F401"
    DANGLING = "F402"
    FENCE = "F403"
    VERSION = "F404"
    UNKNOWN_VERSION = "F405"
    """The store is at a version that this build does not know, so its rows were not checked."""
    OTHER_TYPES = "F406"
    """The store was written with other types of its version than this build has, so its rows were not checked."""
    SHARD = "F501"
    """The shard of a builtin is missing, or was finalised."""
    BATCH = "F502"
    """A schema or a batch of a shard cannot be read."""
    SCHEMA = "F503"
    """The latest schema of a builtin's shard is not the recorded one."""
    UNUSED = "F504"
    """Nothing refers to a shard, and it was not finalised."""
    TABLE = "F601"
    """A schema, a schema change or another row of the engine's own in the log of tables cannot be read."""
    TABLE_ROWS = "F602"
    """Rows of a table cannot be decoded, or an index or a constraint does not hold."""
    NO_ITEM = "F603"
    """No item names a table, and no unfinished change explains that."""
    NO_TABLE = "F604"
    """An item was made with a table that is not there, and no unfinished change explains that."""
    NO_SCHEMA = "F605"
    """No schema names the element that a collection of tables belongs to."""
    ABANDONED = "F606"
    """The process of a schema change or of a bulk write shows no sign of life."""
    UNCHECKED = "F901"
    """A part could not be checked, because of another finding."""


MEANINGS: Mapping[FsckCode, str] = {
    FsckCode.IDENTITY: "the identity of the store is missing or unreadable",
    FsckCode.NO_LOG: "there is no log",
    FsckCode.ENTRY: "log entries that are missing, damaged, foreign or too new",
    FsckCode.STATE: "retained states that cannot be read",
    FsckCode.CHECKPOINT: "a checkpoint that contradicts the entries",
    FsckCode.SEQUENCE: "log entries that contradict those before them",
    FsckCode.DAMAGED_CHECKPOINT: "checkpoints that cannot be read",
    FsckCode.NO_DIGEST: "log entries without a digest",
    FsckCode.MISSING: "missing files",
    FsckCode.CORRUPT: "files that changed since they were written",
    FsckCode.UNREADABLE: "unreadable files",
    FsckCode.CONTENT: "files with invalid rows",
    FsckCode.TS: "files with a wrong ts",
    FsckCode.ORPHAN: "files that nothing refers to",
    FsckCode.COLLECTION: "rows of a collection that this version does not have",
    FsckCode.MULTIPLICITY: "duplicated rows, or rows deleted more often than inserted",
    FsckCode.ORDER: "rows whose newest change contradicts their sum",
    FsckCode.CONSOLIDATION: "rows that a consolidation changed",
    FsckCode.UNDECODABLE: "rows that cannot be decoded",
    FsckCode.UNFAITHFUL: "rows that encode to other bytes",
    FsckCode.UNDECLARED: "rows with an enum value that the types do not declare",
    FsckCode.DUPLICATE: "duplicate values of unique fields",
    FsckCode.DANGLING: "references to missing rows",
    FsckCode.FENCE: "a fence that differs from the log",
    FsckCode.VERSION: "a version that differs from the log",
    FsckCode.UNKNOWN_VERSION: "a version that this build does not know",
    FsckCode.OTHER_TYPES: "types that are not those of this build",
    FsckCode.SHARD: "builtins whose shard is missing",
    FsckCode.BATCH: "unreadable schemas or batches of shards",
    FsckCode.SCHEMA: "builtins whose shard has another schema",
    FsckCode.UNUSED: "shards that nothing refers to",
    FsckCode.TABLE: "schemas and changes of tables that cannot be read",
    FsckCode.TABLE_ROWS: "rows, indexes or constraints of tables that do not hold",
    FsckCode.NO_ITEM: "tables without an item",
    FsckCode.NO_TABLE: "items without their table",
    FsckCode.NO_SCHEMA: "collections of tables that no schema names",
    FsckCode.ABANDONED: "schema changes and bulk writes without a living process",
    FsckCode.UNCHECKED: "parts that could not be checked",
}
"""Heading for the findings of each code."""


class Severity(StrEnum):
    """Weight of a finding; only errors make a check fail."""

    ERROR = "error"
    SWEEPABLE = "sweepable"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class FsckFinding:
    code: FsckCode
    severity: Severity
    where: str
    what: str
    repair: str
    """If it can be repaired, and how."""


@dataclass(frozen=True, slots=True)
class FsckReport:
    findings: tuple[FsckFinding, ...]
    entries: int
    files: int
    rows: int
    counts: Mapping[FsckCode, int] = field(default_factory=dict)
    """Number of findings by code, listed or not."""

    @property
    def ok(self) -> bool:
        return all(finding.severity is not Severity.ERROR for finding in self.findings)


RESTORE = "cannot be repaired from this store: restore a copy of it"
RESTORE_FILE = "cannot be repaired from this store: restore this file, or a copy of the store"
REPAIR_ENTRY = (
    "can be repaired if its content can be proven: `catalog repair` restores it, or says what would be lost; "
    "otherwise restore a copy of the store"
)
NEEDS_NO_DIGEST = "needs no repair: every commit of this build has a digest, which vouches for all that is before it"
SPARE = "needs no repair: no readable state depends on it, and maintenance will expire it"
CHECKPOINT_AGAIN = (
    "can be repaired if the entries are right: set the checkpoint and the pointer to it aside, and checkpoint again; "
    "otherwise restore the entries, or a copy of the store"
)
CHECKPOINT_ANEW = (
    "can be repaired while the entries before it exist: checkpoint again at that version; "
    "otherwise restore this checkpoint, or a copy of the store"
)
SWEEP = "can be repaired: maintenance deletes it once no process can commit it any more"
CHANGE_ROWS = "can be repaired: change or delete all but one of these rows in a transaction"
MEND_REFERENCE = "can be repaired: insert the missing row, or change the row that refers to it, in a transaction"
WRITE_AGAIN = "can be repaired: write the row again in a transaction; fields that this build does not know are lost"
WRITE_DECLARED = "can be repaired: give the field a value that its type declares, in a transaction"
OTHER_BUILD = "cannot be checked by this build: check the store with a build of the version that wrote it"
WRITE_MARKS = "can be repaired: `catalog repair` writes the row as the log has it, and so does the next leader"
RESTORE_SHARD = "cannot be repaired from this store: restore this folder, or a copy of the store"
NEWER_BUILD = "needs no repair: a newer build registered it and did not finish; start that build, or a later one"
REMOVE_SHARD = "can be repaired: remove this folder when no process of any build uses the store"
COMPACT_AWAY = "can be repaired: `catalog debug compact` removes its files"
DELETE_ITEM = "can be repaired: delete the item in a transaction, or restore a copy of the store"
ADOPT_CHANGE = "needs no repair: the next leader takes it up, and so does `catalog ddl adopt`"
CHANGE_ENDS_IT = "needs no repair: it can no longer commit once a schema change of its table has removed it"
REPAIR_FIRST = "repair the other findings and check again"


@dataclass(slots=True)
class FsckFindings:
    """Findings of one check, as they are collected."""

    listed: list[FsckFinding] = field(default_factory=list)
    counts: Counter[FsckCode] = field(default_factory=Counter)
    notes: dict[str, list[str]] = field(default_factory=dict)
    """By cause: the places that were not checked."""

    def add(self, code: FsckCode, where: str, what: str, repair: str, severity: Severity = Severity.ERROR) -> None:
        self.counts[code] += 1
        if self.counts[code] <= _LISTED_MAX:
            self.listed.append(FsckFinding(code, severity, where, what, repair))

    def take(self, others: FsckFindings, prefix: str) -> None:
        """Add the findings of a part of the store."""
        for finding in others.listed:
            self.add(finding.code, f"{prefix}{finding.where}", finding.what, finding.repair, finding.severity)
        self.counts += others.counts - Counter(finding.code for finding in others.listed)  # those that are not listed
        for cause, places in others.notes.items():
            self.notes.setdefault(cause, []).extend(f"{prefix}{place}" for place in places)

    def unchecked(self, where: str, cause: str) -> None:
        self.notes.setdefault(cause, []).append(where)

    def all(self, uri: str) -> tuple[FsckFinding, ...]:
        more = ((code, count - _LISTED_MAX) for code, count in self.counts.items() if count > _LISTED_MAX)
        notes = {cause: _some(places) for cause, places in self.notes.items()}
        notes |= {f"{count} more of {code} are not listed": uri for code, count in more}
        return (
            *self.listed,
            *(
                FsckFinding(FsckCode.UNCHECKED, Severity.NOTE, where, cause, REPAIR_FIRST)
                for cause, where in notes.items()
            ),
        )


def _some(places: list[str]) -> str:
    more = len(places) - _NAMED_MAX
    return ", ".join(places[:_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
