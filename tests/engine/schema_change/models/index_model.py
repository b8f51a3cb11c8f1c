"""Model of CREATE INDEX and DROP INDEX: one key, two values, short transactions, one bulk write, two owners.

`ts` counts the commits that change rows; commits of steps have none of their own. That is coarser than the log, where
every commit has a ts, so more ties are met here than there. No short transaction comes after the index is gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from tests.engine.schema_change.models.search import Model, Step

VALUES = ("a", "b")
WRITES = 3
NO_TS = -1

Row = str | None
"""The value of the one key; None: no row."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules of the protocol. Each may be broken by setting its flag to False."""

    overtaken_bulk_write_derives_again: bool = True
    build_reads_after_close: bool = True
    build_files_are_dated_read_ts: bool = True
    rebased_changes_win_ties: bool = True
    tombstones_stay_while_building: bool = True
    tombstone_even_without_entry: bool = True
    element_counts_from_close: bool = True
    rebase_takes_the_image_at_head: bool = True
    rebase_removes_its_own_first_entry: bool = True
    files_of_gone_elements_are_left_out: bool = True
    files_of_elements_not_closed_are_left_out: bool = True
    chunk_checks_owner_epoch: bool = True


class Stage(StrEnum):
    """How far the change is; the element's state in parentheses."""

    SUBMITTED = "submitted"  # (absent)
    ANNOUNCED = "announced"  # (DELETE)
    CLOSED = "closed"  # (WRITE)
    BUILT = "built"  # (WRITE, built)
    SUCCEEDED = "succeeded"  # (PUBLIC)
    UNDONE = "undone"  # (gone)
    DROPPED = "dropped"  # (gone)


GONE = (Stage.UNDONE, Stage.DROPPED)
RUNNING = (Stage.SUBMITTED, Stage.ANNOUNCED, Stage.CLOSED, Stage.BUILT)


class Entry(NamedTuple):
    """The winning change of an entry: the greatest ts wins, then +1 over -1. A diff of -1 is a tombstone."""

    ts: int
    diff: int


Entries = tuple[Entry | None, Entry | None]
"""What the index stores, by value. All files taken together: what does not win is never seen again."""
Diffs = tuple[int, int]
"""Changes of entries, by value: +1, -1 or 0."""


class Kind(StrEnum):
    UPSERT = "upsert b"
    UPDATE = "update to b what is there"
    DELETE = "delete"


class Phase(StrEnum):
    IDLE = "idle"
    PINNED = "pinned"
    DERIVED = "derived"
    OVER = "over"


class Bulk(NamedTuple):
    """A bulk write: its row in the log (`registered`, `version`) and what its process holds."""

    kind: Kind
    phase: Phase = Phase.IDLE
    registered: bool = False
    version: int = 0
    ts: int = 0
    before: Row = None
    """The row that it replaces, as of `ts`."""
    row: Row = None
    """The row in its files."""
    diffs: Diffs | None = None
    """The index's changes in its files; None: it knows no index."""


class State(NamedTuple):
    bulk: Bulk
    row: Row
    oracle: Row
    ts: int = 0
    writes: int = 0
    stage: Stage = Stage.SUBMITTED
    cur: int = 0
    min: int = 0
    since: int = 0
    entries: Entries = (None, None)
    read_ts: int = NO_TS
    read_row: Row = None
    """The row at read_ts."""
    owner_epoch: int = 1
    late_chunk: int = 0
    """Epoch of a former owner that still holds the files of a chunk; 0: none."""


# The functions that commits share.


def derive(rules: Rules, before: Row, after: Row, entries: Entries) -> Diffs:
    """Tombstone of the old entry, whether or not it is there, and the new entry."""
    a, b = (
        1 if value == after else -1 if value == before and (rules.tombstone_even_without_entry or is_live(entry)) else 0
        for value, entry in zip(VALUES, entries, strict=True)
    )
    return a, b


def is_live(entry: Entry | None) -> bool:
    return entry is not None and entry.diff > 0


def stored(entries: Entries, diffs: Diffs, ts: int) -> Entries:
    a, b = (
        entry if diff == 0 else Entry(ts, diff) if entry is None else max(entry, Entry(ts, diff))
        for entry, diff in zip(entries, diffs, strict=True)
    )
    return a, b


def counts(rules: Rules, s: State) -> bool:
    """An element counts from its close on, for everybody."""
    known = s.stage not in GONE and s.stage is not Stage.SUBMITTED
    return known and s.since <= (s.min if rules.element_counts_from_close else s.cur)


# Short transactions.


def write(rules: Rules, s: State) -> Iterator[Step[State]]:
    """A short transaction derives in the commit loop, under the schema of the state that it is committed on."""
    if s.writes == WRITES or s.stage in GONE:
        return
    for after in (*VALUES, None):
        if after is None and s.row is None:
            continue
        entries = s.entries
        if counts(rules, s):
            entries = stored(entries, derive(rules, s.row, after, entries), s.ts + 1)
        notes = ("commit in ADJACENT",) if s.min < s.cur else ()
        after_write = s._replace(row=after, oracle=after, ts=s.ts + 1, writes=s.writes + 1, entries=entries)
        yield Step(f"write {after}" if after else "delete", after_write, notes)


# The bulk write.


def pin(_rules: Rules, s: State) -> Iterator[Step[State]]:
    if s.bulk.phase is Phase.IDLE:
        bulk = s.bulk._replace(phase=Phase.PINNED, registered=True, version=s.cur, ts=s.ts, before=s.row)
        notes = ("pinned in ADJACENT",) if s.min < s.cur else ()
        yield Step("bulk write pins", s._replace(bulk=bulk), notes)


def derive_bulk(rules: Rules, s: State) -> Iterator[Step[State]]:
    """Make the files under the schema of the pinned version, which may know the index before it counts."""
    b = s.bulk
    if b.phase is Phase.PINNED:
        row = bulk_result(b.kind, b.before)
        knows = 0 < s.since <= b.version
        diffs = derive(rules, b.before, row, s.entries) if knows else None
        yield Step("bulk write derives", s._replace(bulk=b._replace(phase=Phase.DERIVED, row=row, diffs=diffs)))


def bulk_result(kind: Kind, before: Row) -> Row:
    if kind is Kind.DELETE or (kind is Kind.UPDATE and before is None):
        return None
    return "b"


def rebase(rules: Rules, s: State) -> Iterator[Step[State]]:
    """Rebase by a job, ahead of the commit."""
    if s.bulk.phase is Phase.DERIVED and s.bulk.registered and s.ts > s.bulk.ts:
        yield Step("bulk write rebases", s._replace(bulk=rebased(rules, s, s.bulk)), ("rebased by a job",))


def rebased(rules: Rules, s: State, b: Bulk) -> Bulk:
    """Look up, derive and check again the rows that were touched after the bulk write's ts.

    The new changes have the same ts as those in the files, so they must win the tie; and they must take back
    the entry that the files add, because the row may have become another one.
    """
    before = s.row if rules.rebase_takes_the_image_at_head else b.before
    row = bulk_result(b.kind, s.row)
    diffs = b.diffs
    if diffs is not None:
        own = derive(rules, b.row if rules.rebase_removes_its_own_first_entry else None, row, s.entries)
        above = over(derive(rules, before, row, s.entries), own)
        diffs = over(above, diffs) if rules.rebased_changes_win_ties else over(diffs, above)
    if not rules.rebased_changes_win_ties and b.row is not None:
        row = b.row
    return b._replace(ts=s.ts, before=before, row=row, diffs=diffs)


def over(above: Diffs, below: Diffs) -> Diffs:
    return above[0] or below[0], above[1] or below[1]


def commit_bulk(rules: Rules, s: State) -> Iterator[Step[State]]:
    b = s.bulk
    over_bulk = Bulk(b.kind, Phase.OVER)
    if b.phase is not Phase.DERIVED:
        return
    if not b.registered:
        yield Step("bulk write is refused", s._replace(bulk=over_bulk), ("bulk write expired",))
        return
    notes = ["commit in ADJACENT"] if s.min < s.cur else []
    lacks = counts(rules, s) and b.version < s.min and b.diffs is None
    if lacks and rules.overtaken_bulk_write_derives_again:
        b = b._replace(diffs=derive(rules, b.before, b.row, s.entries))
        notes.append("overtaken bulk write derived again")
    if s.ts > b.ts:
        b = rebased(rules, s, b)
        notes.append("rebased in the commit loop")
    diffs = b.diffs
    if diffs is not None and s.stage in GONE and rules.files_of_gone_elements_are_left_out:
        notes.append("files of a gone element left out")
        diffs = None
    not_closed = s.stage is Stage.ANNOUNCED and not counts(rules, s)
    if diffs is not None and not_closed and rules.files_of_elements_not_closed_are_left_out:
        notes.append("files of an element not closed left out")
        diffs = None
    entries = s.entries if diffs is None else stored(s.entries, diffs, s.ts + 1)
    oracle = bulk_result(b.kind, s.oracle)
    after = s._replace(bulk=over_bulk, row=b.row, oracle=oracle, ts=s.ts + 1, entries=entries)
    yield Step("bulk write commits", after, tuple(notes))


# Steps of the change, each by its owner.


def advance(_rules: Rules, s: State) -> Iterator[Step[State]]:
    """ADVANCE, and CLOSE in the same commit if no live bulk write pins the table.

    Another bulk write, of which only the pin is modelled, may always be there.
    """
    if s.stage is Stage.SUBMITTED:
        cur = s.cur + 1
        yield Step("ADVANCE", s._replace(stage=Stage.ANNOUNCED, cur=cur, since=cur))
        if not s.bulk.registered:
            yield Step("ADVANCE and CLOSE", s._replace(stage=Stage.CLOSED, cur=cur, min=cur, since=cur), ("STRICT",))


def close(_rules: Rules, s: State) -> Iterator[Step[State]]:
    """CLOSE once no pin is below cur, or when patience is over; a bulk write that shows no life is struck off."""
    if s.stage is Stage.ANNOUNCED:
        closed = s._replace(stage=Stage.CLOSED, min=s.cur)
        if s.bulk.registered and s.bulk.version < s.cur:
            yield Step("forced CLOSE", closed, ("forced close",))
            yield Step("CLOSE strikes the bulk write off", closed._replace(bulk=s.bulk._replace(registered=False)))
        else:
            yield Step("CLOSE", closed)


def choose_read_ts(rules: Rules, s: State) -> Iterator[Step[State]]:
    may_read = s.stage is Stage.CLOSED or (s.stage is Stage.ANNOUNCED and not rules.build_reads_after_close)
    if may_read and s.read_ts == NO_TS:
        yield Step("BUILD reads", s._replace(read_ts=s.ts, read_row=s.row))


def commit_chunk(rules: Rules, s: State) -> Iterator[Step[State]]:
    """The chunk's files are a function of read_ts alone, so the moment at which they are made does not matter."""
    if s.stage is Stage.CLOSED and s.read_ts != NO_TS:
        notes = ("chunk committed under later changes",) if s.ts > s.read_ts else ()
        yield Step("chunk commits", forget(add_chunk(rules, s)._replace(stage=Stage.BUILT)), notes)


def add_chunk(rules: Rules, s: State) -> State:
    """Add the layer files of the build."""
    ts = s.read_ts if rules.build_files_are_dated_read_ts else s.ts + 1
    diffs = derive(rules, None, s.read_row, s.entries)
    return s._replace(entries=stored(s.entries, diffs, ts), ts=max(s.ts, ts))


def forget(s: State) -> State:
    """Forget what can no longer matter, so that fewer states differ: read_ts and dates, once no chunk is to come."""
    if s.stage in RUNNING[:3] or s.late_chunk:
        return s
    a, b = (entry and Entry(0, entry.diff) for entry in s.entries)
    return s._replace(read_ts=NO_TS, read_row=None, entries=(a, b), owner_epoch=1)


def publish(_rules: Rules, s: State) -> Iterator[Step[State]]:
    if s.stage is Stage.BUILT:
        yield Step("PUBLIC", s._replace(stage=Stage.SUCCEEDED, cur=s.cur + 1, min=s.cur + 1))


def take_over(_rules: Rules, s: State) -> Iterator[Step[State]]:
    """Raise owner_epoch, because the owner seems dead or because somebody else cancels; the former one holds a chunk.

    It has the same read_ts and goes on, so in other stages a takeover changes nothing that is modelled.
    """
    if s.stage is Stage.CLOSED and s.read_ts != NO_TS and s.owner_epoch == 1:
        yield Step("takeover", s._replace(owner_epoch=2, late_chunk=1), ("takeover",))


def commit_late_chunk(rules: Rules, s: State) -> Iterator[Step[State]]:
    """A former owner wakes up and commits its chunk, if the owner_epoch at the head is the one that it knows."""
    if s.late_chunk:
        if rules.chunk_checks_owner_epoch and s.late_chunk != s.owner_epoch:
            yield Step("late chunk is refused", forget(s._replace(late_chunk=0)), (f"late chunk when {s.stage.value}",))
        else:
            yield Step("late chunk commits", forget(add_chunk(rules, s)._replace(late_chunk=0)))


def undo(_rules: Rules, s: State) -> Iterator[Step[State]]:
    """Undo, in one commit, from any stage before PUBLIC, whatever is pinned."""
    if s.stage in RUNNING:
        yield Step("undo", removed(s, Stage.UNDONE), (f"undo from {s.stage.value}",))


def drop(_rules: Rules, s: State) -> Iterator[Step[State]]:
    if s.stage is Stage.SUCCEEDED:
        yield Step("drop", removed(s, Stage.DROPPED), ("drop with a pin",) if s.bulk.registered else ())


def removed(s: State, stage: Stage) -> State:
    """Remove the element with its files; it is not announced, since it gives writers nothing to derive or check."""
    return forget(s._replace(stage=stage, cur=s.cur + 1, min=s.cur + 1, entries=(None, None)))


def fold(rules: Rules, s: State) -> Iterator[Step[State]]:
    """Fold the index. A tombstone goes only at the bottom, and never while the element is being built."""
    has_tombstone = any(entry is not None and entry.diff < 0 for entry in s.entries)
    is_built = s.stage in (Stage.BUILT, Stage.SUCCEEDED)
    if has_tombstone and (is_built or not rules.tombstones_stay_while_building):
        a, b = (entry if is_live(entry) else None for entry in s.entries)
        yield Step("fold", s._replace(entries=(a, b)), ("fold dropped a tombstone",))


# Promises.


def versions_are_adjacent(s: State) -> bool:
    """At most two versions live, cur - min is 0 or 1, and no element is of a version to come."""
    return 0 <= s.cur - s.min <= 1 and s.since <= s.cur


def rows_equal_the_oracle(s: State) -> bool:
    """Every committed write is there whole: the stored row is the one that the writes leave in the order of commits."""
    return s.row == s.oracle


def complete_index_equals_derived_rows(s: State) -> bool:
    """An index that is built or PUBLIC has an entry for the row and no other: none is missing, none dangles."""
    if s.stage not in (Stage.BUILT, Stage.SUCCEEDED):
        return True
    return all(is_live(entry) == (value == s.row) for value, entry in zip(VALUES, s.entries, strict=True))


def gone_element_has_no_files(s: State) -> bool:
    """Nothing is left of an element that was undone or dropped, and nothing comes back."""
    return s.stage not in GONE or s.entries == (None, None)


def everything_ends(s: State) -> bool:
    """At rest the change is terminal and the bulk write has ended: no step waits for ever."""
    return s.stage not in RUNNING and s.bulk.phase is Phase.OVER and not s.bulk.registered


def index_model(rules: Rules) -> Model[State]:
    of_writers = (write, pin, derive_bulk, rebase, commit_bulk, fold)
    of_owners = (advance, close, choose_read_ts, commit_chunk, publish, take_over, commit_late_chunk, undo, drop)
    return Model(
        initial=tuple(State(Bulk(kind), row, row) for kind in Kind for row in (None, *VALUES)),
        moves=tuple(partial(move, rules) for move in of_writers + of_owners),
        state_promises=(
            versions_are_adjacent,
            rows_equal_the_oracle,
            complete_index_equals_derived_rows,
            gone_element_has_no_files,
        ),
        rest_promises=(everything_ends,),
    )
