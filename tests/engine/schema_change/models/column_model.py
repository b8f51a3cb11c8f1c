"""Model of a column: two keys in two ranges, short transactions, one bulk write, folds and reorganising chunks.

Three statements: ADD COLUMN computed from another (announced, closed, filled by two chunks), ADD COLUMN with a
constant default (one commit, nothing written), DROP COLUMN with a scrub (two chunks). Every row has a column x,
which each writer sets to a value of its own, and the column c. `ts` counts the commits that change rows, so what was
read after a close may have the ts of the last row before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import NamedTuple, TypeVar

from tests.engine.schema_change.models.search import Model, Step

T = TypeVar("T")
KEYS = (0, 1)
WRITES = 2
X_OF_WRITE, X_OF_BULK = 1, 2
DEFAULT = 9


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules of the protocol. Each may be broken by setting its flag to False."""

    overtaken_bulk_write_derives_again: bool = True
    reorganise_reads_after_close: bool = True
    folded_base_is_read_again: bool = True
    old_layers_go_with_the_last_chunk: bool = True
    layers_younger_than_a_chunk_stay: bool = True
    base_wins_ties: bool = True
    rebased_rows_win_ties: bool = True
    tombstone_stays_above_older_layers: bool = True
    chunk_fills_whatever_it_finds: bool = True
    schema_is_written: bool = True
    bulk_rows_keep_the_pinned_schema: bool = True
    rewriting_fills_in_the_initial_default: bool = True
    old_tail_goes_with_the_last_chunk: bool = True
    gone_bytes_are_dropped_from_the_start_of_the_scrub: bool = True


class Statement(StrEnum):
    ADD_COMPUTED = "add column c computed as x"
    ADD_DEFAULT = "add column c default 9"
    DROP_AND_SCRUB = "drop column c, scrub"


class Stage(StrEnum):
    SUBMITTED = "submitted"
    ANNOUNCED = "announced"
    CLOSED = "closed"
    """Of a scrub: it has begun."""
    DROPPED = "dropped"
    SUCCEEDED = "succeeded"


class Row(NamedTuple):
    x: int
    c: int | None
    """The bytes of c; None: the field is absent."""
    schema: int
    """`_schema`: the version under which the row was written."""


class Record(NamedTuple):
    """A row with its ts; None in place of the row: in the tail a tombstone, in a base or a layer no row."""

    ts: int
    row: Row | None


class Layer(NamedTuple):
    ts: int
    rows: tuple[Row | None, Row | None]


class Chunk(NamedTuple):
    """What a task has read and made, not committed yet."""

    record: Record
    base_was_folded: bool = False


class Bulk(NamedTuple):
    """A bulk write that sets x of both keys and leaves c as it is."""

    pinned: bool = False
    over: bool = False
    version: int = 0
    rows: tuple[Row, ...] = ()
    """The rows in its files, derived from those as of its ts under the pinned version."""
    touched: frozenset[int] = frozenset()


Fact = tuple[int, int | None] | None
"""x and c of a row as its writers meant it; None: no row."""


class State(NamedTuple):
    statement: Statement
    base: tuple[Record, Record]
    layers: tuple[Layer, ...]
    tail: tuple[Record | None, Record | None]
    oracle: tuple[Fact, Fact]
    ts: int
    bulk: Bulk = Bulk()
    writes: int = 0
    stage: Stage = Stage.SUBMITTED
    cur: int = 0
    min: int = 0
    chunk: Chunk | None = None
    chunks_done: int = 0
    first_read_ts: int = 0
    """The least ts that a chunk has read."""


# Lookup and the form of rows.


def lookup(rules: Rules, s: State, key: int) -> Row | None:
    """The greatest ts wins; at one ts a base, then the tail (so a rebased row), then a layer."""
    base_rank, tail_rank = (3 if rules.base_wins_ties else 0), (2 if rules.rebased_rows_win_ties else 0)
    row = s.base[key].row
    best = (-1, 0) if row is None else (s.base[key].ts, base_rank)
    for layer in s.layers:
        if layer.rows[key] is not None and (layer.ts, 1) > best:
            best, row = (layer.ts, 1), layer.rows[key]
    tail = s.tail[key]
    if tail is not None and (tail.ts, tail_rank) > best:
        row = tail.row
    return row


def is_public(s: State) -> bool:
    return (s.stage is Stage.SUBMITTED) if s.statement is Statement.DROP_AND_SCRUB else (s.stage is Stage.SUCCEEDED)


def since(s: State) -> int:
    """The version that announced the column."""
    return 0 if s.statement is Statement.DROP_AND_SCRUB else 1


def read_c(s: State, row: Row) -> int | None:
    """Absent from a row older than the column: the initial default. Absent from a newer row: NULL."""
    if row.c is None and row.schema < since(s) and s.statement is Statement.ADD_DEFAULT:
        return DEFAULT
    return row.c


def derive(rules: Rules, s: State, before: Row | None, x: int, version: int) -> Row:
    """Answer the row that a writer of a version makes; it fills in what the row before lacks."""
    c = before.c if before else None
    if s.statement is Statement.ADD_COMPUTED:
        c = x if version >= since(s) else c
    elif version < since(s) or (s.statement is Statement.DROP_AND_SCRUB and version > 0):
        c = None
    elif before is None:
        c = DEFAULT
    elif rules.rewriting_fills_in_the_initial_default:
        c = read_c(s, before)
    return Row(x, c, version if rules.schema_is_written else 0)


def head_row(rules: Rules, s: State, key: int, x: int) -> Row:
    """Answer the row as the commit loop derives it at the head. A column counts from its close on.

    Between ADVANCE and CLOSE nobody maintains the column, yet `_schema` is already cur: what a row of that version
    holds is not to be trusted, and the chunk derives it again.
    """
    before = lookup(rules, s, key)
    return derive(rules, s, before, x, s.min)._replace(schema=s.cur if rules.schema_is_written else 0)


def put(pair: tuple[T, T], key: int, new: T) -> tuple[T, T]:
    return (new, pair[1]) if key == 0 else (pair[0], new)


# Short transactions.


def write(rules: Rules, s: State) -> Iterator[Step[State]]:
    if s.writes == WRITES:
        return
    notes = ("commit in ADJACENT",) if s.min < s.cur else ()
    for key in KEYS:
        row, fact = lookup(rules, s, key), s.oracle[key]
        new = head_row(rules, s, key, X_OF_WRITE)
        yield Step(f"write {key}", written(s, key, new, (X_OF_WRITE, fact[1] if fact else DEFAULT)), notes)
        if row is None or fact is None:
            continue
        yield Step(f"delete {key}", written(s, key, None, None), notes)
        if s.statement is Statement.ADD_DEFAULT and is_public(s):
            null = head_row(rules, s, key, row.x)._replace(c=None)
            yield Step(f"set c of {key} to NULL", written(s, key, null, (fact[0], None)), ("NULL written",))


def written(s: State, key: int, row: Row | None, fact: Fact) -> State:
    bulk = s.bulk._replace(touched=s.bulk.touched | {key}) if s.bulk.pinned else s.bulk
    after = s._replace(ts=s.ts + 1, writes=s.writes + 1, bulk=bulk)
    return after._replace(tail=put(s.tail, key, Record(after.ts, row)), oracle=put(s.oracle, key, fact))


# The bulk write.


def pin(rules: Rules, s: State) -> Iterator[Step[State]]:
    if not s.bulk.pinned and not s.bulk.over:
        rows = tuple(derive(rules, s, lookup(rules, s, key), X_OF_BULK, s.cur) for key in KEYS)
        bulk = Bulk(pinned=True, version=s.cur, rows=rows)
        yield Step("bulk write pins", s._replace(bulk=bulk), ("pinned in ADJACENT",) if s.min < s.cur else ())


def commit_bulk(rules: Rules, s: State) -> Iterator[Step[State]]:
    """Commit the layer, and above it, with the same ts, the rows that were touched since the bulk write's ts."""
    b = s.bulk
    if not b.pinned:
        return
    notes = ["commit in ADJACENT"] if s.min < s.cur else []
    first, second = (bulk_row(rules, s, row, notes) for row in b.rows)
    after = s._replace(layers=(*s.layers, Layer(s.ts + 1, (first, second))), ts=s.ts + 1, bulk=Bulk(over=True))
    for key in KEYS:
        fact = s.oracle[key]
        after = after._replace(oracle=put(after.oracle, key, (X_OF_BULK, fact[1] if fact else DEFAULT)))
        if key in b.touched:
            notes.append("rebased")
            after = after._replace(tail=put(after.tail, key, Record(after.ts, head_row(rules, s, key, X_OF_BULK))))
    yield Step("bulk write commits", after, tuple(notes))


def bulk_row(rules: Rules, s: State, row: Row, notes: list[str]) -> Row:
    """Answer the row as it is committed: that of the pinned version, derived again if the bulk write was overtaken."""
    lacks = s.bulk.version < since(s) <= s.min and s.statement is Statement.ADD_COMPUTED
    if lacks and rules.overtaken_bulk_write_derives_again:
        notes.append("overtaken bulk write derived again")
        row = derive(rules, s, row, X_OF_BULK, s.cur)
    if not rules.bulk_rows_keep_the_pinned_schema:
        row = row._replace(schema=s.cur)
    begun = s.stage is Stage.CLOSED and rules.gone_bytes_are_dropped_from_the_start_of_the_scrub
    if (begun or s.stage is Stage.SUCCEEDED) and s.statement is Statement.DROP_AND_SCRUB and row.c is not None:
        notes.append("bytes of a gone column dropped")
        row = row._replace(c=None)
    return row


# Steps of the change.


def advance(_rules: Rules, s: State) -> Iterator[Step[State]]:
    """ADVANCE, and CLOSE in the same commit without pins; a default and a removal are not announced at all."""
    if s.stage is not Stage.SUBMITTED:
        return
    cur = s.cur + 1
    if s.statement is Statement.ADD_COMPUTED:
        yield Step("ADVANCE", s._replace(stage=Stage.ANNOUNCED, cur=cur))
        if not s.bulk.pinned:
            yield Step("ADVANCE and CLOSE", s._replace(stage=Stage.CLOSED, cur=cur, min=cur), ("STRICT",))
    else:
        stage = Stage.SUCCEEDED if s.statement is Statement.ADD_DEFAULT else Stage.DROPPED
        notes = ("overtook a pin",) if s.bulk.pinned else ()
        yield Step("one commit", s._replace(stage=stage, cur=cur, min=cur), notes)


def close(_rules: Rules, s: State) -> Iterator[Step[State]]:
    """CLOSE, or begin the scrub: once no pin is below cur, or when patience is over."""
    if s.stage in (Stage.ANNOUNCED, Stage.DROPPED):
        forced = s.bulk.pinned and s.bulk.version < s.cur
        move = "CLOSE" if s.stage is Stage.ANNOUNCED else "scrub begins"
        yield Step(move, s._replace(stage=Stage.CLOSED, min=s.cur), (f"forced: {move}",) if forced else ())


def read_chunk(rules: Rules, s: State) -> Iterator[Step[State]]:
    """A task of REORGANISE reads base, layers and tail of its range, at any ts after the close."""
    early = s.stage is Stage.ANNOUNCED and not rules.reorganise_reads_after_close
    if (s.stage is Stage.CLOSED or early) and s.chunk is None and s.chunks_done < len(KEYS):
        row = lookup(rules, s, s.chunks_done)
        chunk = Chunk(Record(s.ts, row and reorganised(rules, s, row)))
        yield Step(f"chunk {s.chunks_done} reads", s._replace(chunk=chunk))


def reorganised(rules: Rules, s: State, row: Row) -> Row:
    if s.statement is Statement.DROP_AND_SCRUB:
        return Row(row.x, None, s.cur)
    if row.schema >= since(s) and not rules.chunk_fills_whatever_it_finds:
        return row
    return Row(row.x, row.x, s.cur)


def commit_chunk(rules: Rules, s: State) -> Iterator[Step[State]]:
    """The commit removes exactly the base file that was read; one that was folded meanwhile is read again."""
    key, chunk = s.chunks_done, s.chunk
    if chunk is None or s.stage is not Stage.CLOSED:
        return
    if chunk.base_was_folded and rules.folded_base_is_read_again:
        yield Step(f"chunk {key} is read again", s._replace(chunk=None), ("fold between read and commit of a chunk",))
        return
    notes = ("chunk committed under later changes",) if s.ts > chunk.record.ts else ()
    first = chunk.record.ts if key == 0 else s.first_read_ts
    after = s._replace(base=put(s.base, key, chunk.record), chunk=None, chunks_done=key + 1, first_read_ts=first)
    if key == KEYS[-1] or not rules.old_layers_go_with_the_last_chunk:
        after = without_older(rules, after, first if rules.layers_younger_than_a_chunk_stay else chunk.record.ts)
    yield Step(f"chunk {key} commits", after, notes)


def without_older(rules: Rules, s: State, ts: int) -> State:
    """Remove layers and tails up to the least ts that a chunk has read: every range has a base that covers them."""
    after = s._replace(layers=tuple(layer for layer in s.layers if layer.ts > ts))
    for key, record in zip(KEYS, s.tail, strict=True):
        if record is not None and record.ts <= ts and rules.old_tail_goes_with_the_last_chunk:
            after = after._replace(tail=put(after.tail, key, None))
    return after


def finish(_rules: Rules, s: State) -> Iterator[Step[State]]:
    if s.stage is Stage.CLOSED and s.chunks_done == len(KEYS):
        done = s._replace(stage=Stage.SUCCEEDED, chunk=None)
        if s.statement is Statement.ADD_COMPUTED:
            yield Step("PUBLIC", done._replace(cur=s.cur + 1, min=s.cur + 1))
        else:
            yield Step("scrub ends", done, ("scrub ended with a pin",) if s.bulk.pinned else ())


def fold(rules: Rules, s: State) -> Iterator[Step[State]]:
    """Fold a range: a base of its base, layers and tail. A layer goes when the bases of all its ranges cover it.

    A tombstone goes only at the bottom, so not while a layer that reaches beyond the range lies below it. To bound the
    model, only some folds are made: beside a chunk, of a tombstone, and of rows whose `_schema` counts.
    """
    for key in KEYS:
        tail = s.tail[key]
        has_tombstone = tail is not None and tail.row is None
        matters = s.chunk is not None or has_tombstone or s.statement is Statement.ADD_DEFAULT
        if not matters or (tail is None and not any(layer.ts > s.base[key].ts for layer in s.layers)):
            continue
        base = put(s.base, key, Record(s.ts, lookup(rules, s, key)))
        layers = tuple(layer for layer in s.layers if any(layer.ts > record.ts for record in base))
        kept = tail if has_tombstone and layers and rules.tombstone_stays_above_older_layers else None
        after = s._replace(base=base, layers=layers, tail=put(s.tail, key, kept))
        if s.chunk is not None and key == s.chunks_done:
            after = after._replace(chunk=s.chunk._replace(base_was_folded=True))
        if after != s:
            yield Step(f"fold {key}", after, ("fold kept a tombstone",) if kept else ())


# Promises.


def versions_are_adjacent(s: State) -> bool:
    """At most two versions live, and they are adjacent: cur - min is 0 or 1."""
    return 0 <= s.cur - s.min <= 1


def rows_equal_the_oracle(rules: Rules, s: State) -> bool:
    """Every committed write is there whole: no row is lost, none comes back, none has an old value of x."""
    rows = (lookup(rules, s, key) for key in KEYS)
    return all((row and row.x) == (fact and fact[0]) for row, fact in zip(rows, s.oracle, strict=True))


def public_column_has_its_value(rules: Rules, s: State) -> bool:
    """A PUBLIC column has its value in every row: computed is computed, NULL stays NULL, absent is the default."""
    if not is_public(s):
        return True
    is_computed = s.statement is Statement.ADD_COMPUTED
    found = [(row, fact) for key, fact in zip(KEYS, s.oracle, strict=True) if fact and (row := lookup(rules, s, key))]
    return all(read_c(s, row) == (row.x if is_computed else fact[1]) for row, fact in found)


def scrubbed_column_has_no_bytes(s: State) -> bool:
    """After a scrub no file has bytes of the column, and none comes to have them."""
    if s.statement is not Statement.DROP_AND_SCRUB or s.stage is not Stage.SUCCEEDED:
        return True
    rows = [record.row for record in (*s.base, *s.tail) if record] + [row for layer in s.layers for row in layer.rows]
    return all(row is None or row.c is None for row in rows)


def everything_ends(s: State) -> bool:
    """At rest the change is terminal and the bulk write has ended: no step waits for ever."""
    return s.stage is Stage.SUCCEEDED and s.bulk.over


def column_model(rules: Rules) -> Model[State]:
    moves = (write, pin, commit_bulk, advance, close, read_chunk, commit_chunk, finish, fold)
    of_rows = (partial(rows_equal_the_oracle, rules), partial(public_column_has_its_value, rules))
    return Model(
        initial=tuple(start(statement) for statement in Statement),
        moves=tuple(partial(move, rules) for move in moves),
        state_promises=(versions_are_adjacent, scrubbed_column_has_no_bytes, *of_rows),
        rest_promises=(everything_ends,),
    )


def start(statement: Statement) -> State:
    """One row in a base, the other in a layer that reaches over both ranges."""
    row = Row(0, DEFAULT if statement is Statement.DROP_AND_SCRUB else None, schema=0)
    base, layer, fact = (Record(0, row), Record(0, None)), Layer(1, (row, row)), (0, DEFAULT)
    return State(statement, base, (layer,), tail=(None, None), oracle=(fact, fact), ts=1)
