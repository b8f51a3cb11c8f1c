"""Model of a unique constraint: two keys, two values, short transactions and one bulk write.

The index goes to `built` first, then the constraint goes through CHECK and VALIDATE. How the index is built is the
business of `index_model`: here BUILD is one move. A write or a bulk write that is a duplicate is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import NamedTuple

from tests.engine.schema_change.models.search import Model, Step

KEYS = (0, 1)
VALUES = ("x", "y")
WRITES = 3

Rows = tuple[str | None, str | None]
"""The value of each key; None: no row."""
Entries = frozenset[tuple[str, int]]
"""Live entries of the index: the value, which is the prefix, and the key."""
NONE: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules of the protocol. Each may be broken by setting its flag to False."""

    overtaken_bulk_write_derives_again: bool = True
    overtaken_bulk_write_checks_again: bool = True
    bulk_write_looks_again_at_touched_prefixes: bool = True
    validate_reads_after_close: bool = True
    violators_are_looked_at_again: bool = True
    index_is_complete_before_unique_is_enforced: bool = True


class Stage(IntEnum):
    SUBMITTED = 0
    INDEX_ANNOUNCED = 1
    INDEX_CLOSED = 2
    INDEX_BUILT = 3
    CHECK_ANNOUNCED = 4
    CHECK_CLOSED = 5
    SUCCEEDED = 6
    UNDONE = 7


INDEX_VERSION = 1
CHECK_VERSION = 2
MAINTAINED = range(Stage.INDEX_CLOSED, Stage.UNDONE)
"""Stages in which the index counts, so that everybody keeps it."""
COMPLETE = range(Stage.INDEX_BUILT, Stage.UNDONE)
ENFORCED = range(Stage.CHECK_CLOSED, Stage.UNDONE)
RUNNING = range(Stage.SUBMITTED, Stage.SUCCEEDED)


class Bulk(NamedTuple):
    """A bulk write that sets keys to values: its pin, the rows as of its ts, and what was touched since then."""

    changes: Rows
    """The value that it gives to each key; None: it leaves the key alone."""
    pinned: bool = False
    over: bool = False
    version: int = 0
    seen: Rows = (None, None)
    touched_keys: frozenset[int] = NONE
    touched_prefixes: frozenset[str] = frozenset()


class State(NamedTuple):
    bulk: Bulk
    rows: Rows
    writes: int = 0
    stage: Stage = Stage.SUBMITTED
    cur: int = 0
    min: int = 0
    entries: Entries = frozenset()
    written_since_close: frozenset[int] = NONE
    """Keys that were written since the constraint was closed."""
    violators: frozenset[int] | None = None
    """Keys that VALIDATE found; None: it has not read."""
    failure: frozenset[int] | None = None
    """Keys that the failed change names; None: it was not ended by a violation."""


# The functions that commits share.


def derive(rows: Rows) -> Entries:
    return frozenset((value, key) for key, value in zip(KEYS, rows, strict=True) if value is not None)


def is_maintained(s: State) -> bool:
    return s.stage in MAINTAINED


def is_enforced(rules: Rules, s: State) -> bool:
    """A constraint counts from its close on, which comes after its index is complete."""
    return s.stage in (ENFORCED if rules.index_is_complete_before_unique_is_enforced else MAINTAINED)


def duplicates(entries: Entries, rows: Rows) -> frozenset[int]:
    """Answer the keys of `rows` whose prefix another key has, by the evidence of the index and of `rows` themselves."""
    others = {(value, key) for value, key in entries if rows[key] is None} | derive(rows)
    return frozenset(
        key
        for key, value in zip(KEYS, rows, strict=True)
        if value is not None and any(prefix == value and holder != key for prefix, holder in others)
    )


def violating(rows: Rows) -> frozenset[int]:
    return frozenset(KEYS) if rows[0] is not None and rows[0] == rows[1] else NONE


def committed(rules: Rules, s: State, rows: Rows, keys: frozenset[int], *, with_entries: bool) -> State:
    """Answer the state after a commit that writes `keys`."""
    entries = s.entries
    if with_entries:
        kept = {(value, key) for value, key in entries if key not in keys}
        entries = frozenset(kept | {(value, key) for value, key in derive(rows) if key in keys})
    bulk = s.bulk
    if bulk.pinned:
        prefixes = {prefix for key in keys for prefix in (s.rows[key], rows[key]) if prefix is not None}
        bulk = bulk._replace(
            touched_keys=bulk.touched_keys | keys, touched_prefixes=bulk.touched_prefixes | frozenset(prefixes)
        )
    written = s.written_since_close | keys if is_enforced(rules, s) else s.written_since_close
    return s._replace(rows=rows, entries=entries, bulk=bulk, written_since_close=written)


# Short transactions.


def write(rules: Rules, s: State) -> Iterator[Step[State]]:
    if s.writes == WRITES or s.stage is Stage.UNDONE:
        return
    for key in KEYS:
        for value in (*VALUES, None):
            if value == s.rows[key]:
                continue
            rows = (value, s.rows[1]) if key == 0 else (s.rows[0], value)
            alone: Rows = (value, None) if key == 0 else (None, value)
            if is_enforced(rules, s) and duplicates(s.entries, alone):
                yield Step(f"write {key}={value} is refused", s, ("write refused as duplicate",))
                continue
            after = committed(rules, s, rows, frozenset({key}), with_entries=is_maintained(s))
            notes = ("commit in ADJACENT",) if s.min < s.cur else ()
            yield Step(f"write {key}={value}", after._replace(writes=s.writes + 1), notes)


# The bulk write.


def pin(_rules: Rules, s: State) -> Iterator[Step[State]]:
    """Pin, and derive and check as of the pinned ts. The outcome depends on that ts alone, so it is one move."""
    if not s.bulk.pinned and not s.bulk.over:
        notes = ("pinned in ADJACENT",) if s.min < s.cur else ()
        bulk = s.bulk._replace(pinned=True, version=s.cur, seen=s.rows)
        yield Step("bulk write pins", s._replace(bulk=bulk), notes)


def commit_bulk(rules: Rules, s: State) -> Iterator[Step[State]]:
    b = s.bulk
    if not b.pinned:
        return
    after = s._replace(bulk=Bulk(b.changes, over=True))
    notes = ["commit in ADJACENT"] if s.min < s.cur else []
    if b.version < s.min and is_maintained(s):
        notes.append("overtaken bulk write")
    if is_enforced(rules, s) and bulk_duplicates(rules, s, notes):
        yield Step("bulk write is refused", after, (*notes, "bulk write refused as duplicate"))
        return
    knows_index = b.version >= INDEX_VERSION or rules.overtaken_bulk_write_derives_again
    keys = frozenset(key for key in KEYS if b.changes[key] is not None)
    after = committed(rules, after, bulk_rows(s.rows, b), keys, with_entries=is_maintained(s) and knows_index)
    yield Step("bulk write commits", after, tuple(notes))


def bulk_rows(rows: Rows, b: Bulk) -> Rows:
    return b.changes[0] or rows[0], b.changes[1] or rows[1]


def bulk_duplicates(rules: Rules, s: State, notes: list[str]) -> frozenset[int]:
    """Answer the keys of the bulk write that are duplicates at the head.

    One that pinned the constraint has checked everything as of its ts, so it looks again only at what was touched
    since; one that was overtaken by it looks at everything.
    """
    b = s.bulk
    at_head = duplicates(s.entries, b.changes)
    if b.version < CHECK_VERSION:
        return at_head if rules.overtaken_bulk_write_checks_again else NONE
    as_of_ts = duplicates(derive(b.seen), b.changes)
    again = set(b.touched_keys)
    if rules.bulk_write_looks_again_at_touched_prefixes:
        again |= {key for key in KEYS if b.changes[key] in b.touched_prefixes}
    if as_of_ts & again - at_head:
        notes.append("duplicate of the bulk write gone at the head")
    return frozenset(at_head & again | as_of_ts - again)


# Steps of the change.


def announce(_rules: Rules, s: State) -> Iterator[Step[State]]:
    """ADVANCE, and CLOSE in the same commit if no live bulk write pins the table; another one may always be there."""
    if s.stage in (Stage.SUBMITTED, Stage.INDEX_BUILT):
        announced = s._replace(stage=Stage(s.stage + 1), cur=s.cur + 1)
        yield Step(f"ADVANCE to {announced.stage.name}", announced)
        if not s.bulk.pinned:
            yield Step(f"ADVANCE and CLOSE from {s.stage.name}", closed(announced), ("STRICT",))


def close(_rules: Rules, s: State) -> Iterator[Step[State]]:
    if s.stage in (Stage.INDEX_ANNOUNCED, Stage.CHECK_ANNOUNCED):
        forced = s.bulk.pinned and s.bulk.version < s.cur
        yield Step(f"CLOSE from {s.stage.name}", closed(s), ("forced close",) if forced else ())


def closed(s: State) -> State:
    return s._replace(stage=Stage(s.stage + 1), min=s.cur)


def build(_rules: Rules, s: State) -> Iterator[Step[State]]:
    """BUILD, as one move: entries of all rows that were not written since the close are added."""
    if s.stage is Stage.INDEX_CLOSED:
        yield Step("BUILD", s._replace(stage=Stage.INDEX_BUILT, entries=s.entries | derive(s.rows)))


def validate(rules: Rules, s: State) -> Iterator[Step[State]]:
    """VALIDATE reads neighbours in the index at a ts after the close."""
    may_read = s.stage is Stage.CHECK_CLOSED or (
        s.stage is Stage.CHECK_ANNOUNCED and not rules.validate_reads_after_close
    )
    if may_read and s.violators is None:
        prefixes = [value for value, _ in s.entries]
        found = frozenset(key for value, key in s.entries if prefixes.count(value) > 1)
        yield Step("VALIDATE reads", s._replace(violators=found), ("violators found",) if found else ())


def conclude(rules: Rules, s: State) -> Iterator[Step[State]]:
    """No violator: PUBLIC. Else each is looked at again at the head, in the loop of the failing commit."""
    if s.stage is not Stage.CHECK_CLOSED or s.violators is None:
        return
    if not s.violators:
        done = s._replace(stage=Stage.SUCCEEDED, cur=s.cur + 1, min=s.cur + 1, violators=None)
        yield Step("PUBLIC", done)
    elif rules.violators_are_looked_at_again and not s.violators & violating(s.rows):
        yield Step("VALIDATE again", s._replace(violators=None), ("violators gone at the second look",))
    else:
        yield Step("fail", removed(s, s.violators), ("failed by a violation",))


def undo(_rules: Rules, s: State) -> Iterator[Step[State]]:
    """Undo by cancel: constraint and index go in one commit."""
    if s.stage in RUNNING:
        yield Step("undo", removed(s, None), (f"undo from {s.stage.name}",))


def removed(s: State, failure: frozenset[int] | None) -> State:
    cur = s.cur + 1
    gone = s._replace(stage=Stage.UNDONE, cur=cur, min=cur, entries=frozenset(), violators=None, failure=failure)
    return gone._replace(written_since_close=NONE)


# Promises.


def versions_are_adjacent(s: State) -> bool:
    """At most two versions live, and they are adjacent: cur - min is 0 or 1."""
    return 0 <= s.cur - s.min <= 1


def complete_index_equals_derived_rows(s: State) -> bool:
    """An index that is built or PUBLIC has exactly the entries of the rows."""
    return s.stage not in COMPLETE or s.entries == derive(s.rows)


def public_constraint_holds(s: State) -> bool:
    """No two keys have one value once the constraint is PUBLIC."""
    return s.stage is not Stage.SUCCEEDED or not violating(s.rows)


def closed_constraint_holds_for_rows_written_since(s: State) -> bool:
    """A row written since the close is no duplicate of any other."""
    return not violating(s.rows) & s.written_since_close


def undone_element_has_no_entries(s: State) -> bool:
    """Nothing is left of an element that was undone, and nothing comes back."""
    return s.stage is not Stage.UNDONE or not s.entries


def failure_names_violators(before: State, step: Step[State]) -> bool:
    """A change that fails by a violation names keys that do violate at the ts at which it fails."""
    return step.move != "fail" or step.state.failure == violating(before.rows) != NONE


def refusal_has_a_reason(before: State, step: Step[State]) -> bool:
    """A write is refused only if it would be a duplicate once committed: there is no false duplicate."""
    if "bulk write refused as duplicate" in step.notes:
        return bool(violating(bulk_rows(before.rows, before.bulk)))
    if "write refused as duplicate" in step.notes:
        key, value = step.move.removeprefix("write ").removesuffix(" is refused").split("=")
        return before.rows[1 - int(key)] == value
    return True


def everything_ends(s: State) -> bool:
    """At rest the change is terminal and the bulk write has ended: no step waits for ever."""
    return s.stage not in RUNNING and s.bulk.over


def unique_model(rules: Rules) -> Model[State]:
    moves = (write, pin, commit_bulk, announce, close, build, validate, conclude, undo)
    bulk_writes: tuple[Rows, ...] = (("x", None), ("x", "y"), ("x", "x"))
    rows: tuple[Rows, ...] = ((None, None), ("x", None), (None, "x"), ("x", "x"), ("y", "x"))
    return Model(
        initial=tuple(State(Bulk(changes), start) for changes in bulk_writes for start in rows),
        moves=tuple(partial(move, rules) for move in moves),
        state_promises=(
            versions_are_adjacent,
            complete_index_equals_derived_rows,
            public_constraint_holds,
            closed_constraint_holds_for_rows_written_since,
            undone_element_has_no_entries,
        ),
        step_promises=(failure_names_violators, refusal_has_a_reason),
        rest_promises=(everything_ends,),
    )
