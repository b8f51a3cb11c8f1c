"""What a check of a stash can find, and whether and how each can be repaired: plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

_LISTED_MAX = 1000
"""Findings of one code that are listed; the others are only counted."""
_NAMED_MAX = 5
"""Places that a note names; the others are only counted."""


class Code(StrEnum):
    """What was found. A code never changes its meaning."""

    IDENTITY = "F001"
    """`store.json` is missing or cannot be read."""
    NO_LOG = "F101"
    ENTRY = "F102"
    """An entry is missing, damaged, foreign or too new."""
    STATE = "F103"
    """No checkpoint and entries lead to a state that is retained."""
    CHECKPOINT = "F104"
    """The checkpoint and the entries lead to different states."""
    SEQUENCE = "F105"
    """An entry does not fit those before it."""
    DAMAGED_CHECKPOINT = "F106"
    """A checkpoint cannot be read; opening steps over it, as long as the entries before it are there."""
    MISSING = "F201"
    CORRUPT = "F202"
    UNREADABLE = "F203"
    CONTENT = "F204"
    """A file is what was written, and should not have been."""
    TS = "F205"
    ORPHAN = "F206"
    COLLECTION = "F301"
    MULTIPLICITY = "F302"
    """A row is there other than not or once, or its key has several values."""
    ORDER = "F303"
    """The newest that the tail says of a row is not what its rows add up to."""
    CONSOLIDATION = "F304"
    """A consolidation changed rows."""
    UNDECODABLE = "F305"
    UNFAITHFUL = "F306"
    """A message does not encode to the bytes it was decoded from."""
    DUPLICATE = "F401"
    DANGLING = "F402"
    FENCE = "F403"
    VERSION = "F404"
    UNKNOWN_VERSION = "F405"
    """The store is at a version that this build does not know, so its rows were not checked."""
    SHARD = "F501"
    """A builtin's shard is not there, or was given up."""
    BATCH = "F502"
    """A schema or a batch of a shard cannot be read."""
    SCHEMA = "F503"
    """The latest schema of a builtin's shard is not the recorded one."""
    UNUSED = "F504"
    """Nothing refers to a shard, and nobody gave it up."""
    UNCHECKED = "F901"
    """Something could not be checked, because of another finding."""


MEANINGS: Mapping[Code, str] = {
    Code.IDENTITY: "the store does not say what it is",
    Code.NO_LOG: "there is no log",
    Code.ENTRY: "log entries that are missing, damaged, foreign or too new",
    Code.STATE: "a retained state that nothing leads to",
    Code.CHECKPOINT: "a checkpoint that contradicts the entries",
    Code.SEQUENCE: "log entries that do not fit those before them",
    Code.DAMAGED_CHECKPOINT: "checkpoints that cannot be read",
    Code.MISSING: "files that are missing",
    Code.CORRUPT: "files that are not what was written",
    Code.UNREADABLE: "files that cannot be read",
    Code.CONTENT: "files of wrong content",
    Code.TS: "files of a wrong ts",
    Code.ORPHAN: "files that nothing refers to",
    Code.COLLECTION: "rows of a collection that this version does not have",
    Code.MULTIPLICITY: "rows that are there other than not or once",
    Code.ORDER: "rows whose tail is in disorder",
    Code.CONSOLIDATION: "rows that a consolidation changed",
    Code.UNDECODABLE: "rows that are no message",
    Code.UNFAITHFUL: "rows that are not what they encode to",
    Code.DUPLICATE: "rows that agree where they must not",
    Code.DANGLING: "references to rows that are not there",
    Code.FENCE: "a fence other than the log's",
    Code.VERSION: "a version other than the log's",
    Code.UNKNOWN_VERSION: "a version that this build does not know",
    Code.SHARD: "builtins whose shard is not there",
    Code.BATCH: "schemas or batches of shards that cannot be read",
    Code.SCHEMA: "builtins whose shard has another schema",
    Code.UNUSED: "shards that nothing refers to",
    Code.UNCHECKED: "what could not be checked",
}
"""What each code stands for, as a heading."""


class Severity(StrEnum):
    ERROR = "error"
    SWEEPABLE = "sweepable"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    code: Code
    severity: Severity
    where: str
    what: str
    repair: str
    """Whether it can be repaired, and how."""


@dataclass(frozen=True, slots=True)
class Report:
    findings: tuple[Finding, ...]
    entries: int
    files: int
    rows: int
    counts: Mapping[Code, int] = field(default_factory=dict)
    """Of findings by code, listed or not."""

    @property
    def ok(self) -> bool:
        return all(finding.severity is not Severity.ERROR for finding in self.findings)


RESTORE = "cannot be repaired from what is here: restore a copy of the store"
RESTORE_FILE = "cannot be repaired from what is here: restore this file, or a copy of the store"
SET_ASIDE = (
    "can be repaired if the machine stopped while it was written: it was never acknowledged, set it aside; "
    "else restore a copy of the store"
)
SPARE = "needs no repair: nothing that can still be read depends on it, and it will be expired"
CHECKPOINT_AGAIN = (
    "can be repaired if the entries are right: set the checkpoint and the pointer to it aside and checkpoint again; "
    "else restore the entries, or a copy of the store"
)
CHECKPOINT_ANEW = (
    "can be repaired while the entries before it are there: checkpoint again at that version; "
    "else restore this checkpoint, or a copy of the store"
)
SWEEP = "can be repaired: maintenance sweeps it once nobody can commit it any more"
CHANGE_ROWS = "can be repaired: change or delete all but one of these rows in a transaction"
MEND_REFERENCE = (
    "can be repaired: insert the row that is referred to, or change the one that refers to it, in a transaction"
)
WRITE_AGAIN = "can be repaired: write the row again in a transaction; what this build does not know of it is lost"
OTHER_BUILD = "cannot be judged by this build: check the store with one of the version that wrote it"
TAKE_OVER = "can be repaired: open the store as leader, which writes both anew"
RESTORE_SHARD = "cannot be repaired from what is here: restore this folder, or a copy of the store"
NEWER_BUILD = "needs no repair: a newer build registered it and did not finish; start that build, or a later one"
REMOVE_SHARD = "can be repaired: remove this folder, once no process of any build uses the store"
REPAIR_FIRST = "repair the other findings and check again"


@dataclass(slots=True)
class Findings:
    """Those of one check, as they are made."""

    listed: list[Finding] = field(default_factory=list)
    counts: Counter[Code] = field(default_factory=Counter)
    notes: dict[str, list[str]] = field(default_factory=dict)
    """By cause: where something was not checked."""

    def add(self, code: Code, where: str, what: str, repair: str, severity: Severity = Severity.ERROR) -> None:
        self.counts[code] += 1
        if self.counts[code] <= _LISTED_MAX:
            self.listed.append(Finding(code, severity, where, what, repair))

    def take(self, others: Findings, prefix: str) -> None:
        """Take in what was found in a part of the store."""
        for finding in others.listed:
            self.add(finding.code, f"{prefix}{finding.where}", finding.what, finding.repair, finding.severity)
        for cause, places in others.notes.items():
            self.notes.setdefault(cause, []).extend(f"{prefix}{place}" for place in places)

    def unchecked(self, where: str, cause: str) -> None:
        self.notes.setdefault(cause, []).append(where)

    def all(self, uri: str) -> tuple[Finding, ...]:
        more = ((code, count - _LISTED_MAX) for code, count in self.counts.items() if count > _LISTED_MAX)
        notes = {cause: _some(places) for cause, places in self.notes.items()}
        notes |= {f"{count} more of {code} are not listed": uri for code, count in more}
        return (
            *self.listed,
            *(Finding(Code.UNCHECKED, Severity.NOTE, where, cause, REPAIR_FIRST) for cause, where in notes.items()),
        )


def _some(places: list[str]) -> str:
    more = len(places) - _NAMED_MAX
    return ", ".join(places[:_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
