"""Every operation, stopped at every step of it in every way: what is there afterwards equals the oracle.

A step is what `Owner.step` does. The world checks all invariants after every commit, so that a disturbance need only
happen, and everything be brought to its end.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product

from catalog.engine.log.protocol import FaultPoint
from catalog.engine.schema_change.steps import ChangeStatus
from catalog.engine.schema_change.types import Value
from catalog.errors import CommitFailedError, IndeterminateError
from catalog.errors.tables import ChangeStatusError, NotRevertibleError
from tests.engine.log.places import Crash
from tests.engine.schema_change.oracle import Call, Table, Verb
from tests.engine.schema_change.sessions import Session
from tests.engine.schema_change.stores import Point, ReadPoint
from tests.engine.schema_change.wishes import VALUES, Wish, Wishing
from tests.engine.schema_change.world import World
from tests.memory_log import LostResponseError

OPERATIONS = (
    *("create_table", "drop_table", "rename_table", "add_column", "add_not_null_column", "add_filled_column"),
    *("add_computed_column", "drop_column", "rename_column", "set_default", "change_type", "set_not_null"),
    *("drop_not_null", "add_check", "add_unique", "add_foreign_key", "change_primary_key", "drop_constraint"),
    *("create_index", "create_unique_index", "drop_index"),
)
GOOD: tuple[tuple[Value, ...], ...] = ((0, 0, "0"), (1, 1, "1"))
"""Rows that every operation takes: the id, a number and a text."""
BAD: tuple[tuple[Value, ...], ...] = ((0, 1, "x"), (1, 1, "x"), (2, None, None))
SEEDS = 40
OWNER, OTHER, WRITER = 0, 1, 2


def made(operation: str, seed: int, rows: tuple[tuple[Value, ...], ...] = GOOD) -> tuple[World, Wish]:
    """Return two tables with rows, and a statement of an operation; what it is dropped from is made first."""
    world = World(random.Random(seed))  # noqa: S311 - no secret
    for _ in range(2):
        world.ddl(world.wishing.create_table())
    for table in list(world.state.values()):
        for row in rows:
            values = dict(zip((c.uid for c in table.columns), row, strict=True))
            _write(world, table, Call(Verb.INSERT, table.uid, {table.key[0]: row[0]}, values))
    before = {"drop_index": "create_index", "drop_constraint": "add_unique", "drop_not_null": "set_not_null"}
    if operation in before:
        world.ddl(_wish(world, before[operation]))
    return world, _wish(world, operation)


def _wish(world: World, operation: str) -> Wish:
    wishing, table = world.wishing, next(iter(world.state.values()))
    if operation == "create_table":
        return wishing.create_table()
    if operation in {"drop_index", "drop_constraint"}:
        return wishing.drop_rule(table, world.state)
    name = {"drop_not_null": "set_not_null", "add_foreign_key": "add_parent"}.get(operation, operation)
    make: Callable[[Table, object], Wish] = getattr(Wishing, name).__get__(wishing)
    return make(table, world.state)


def begun(world: World, wish: Wish) -> int:
    world.observer.wishes[wish.sql] = wish
    return world.members[OWNER].submit(wish.sql, patience_s=3600).id


def status(world: World, change: int) -> ChangeStatus:
    return ChangeStatus(world.members[WRITER].tables.change_message(change).status)


def stepped(world: World, change: int, steps: int) -> int:
    """Make so many steps of a change, or as many as it has; return their number."""
    for done in range(steps):
        if status(world, change).is_over:
            return done
        world.members[OWNER].owner.step(change)
        world.observer.raise_violation()
    return steps


@cache
def steps_of(operation: str) -> tuple[int, int]:
    """Return a seed by which an operation succeeds if nothing disturbs it, and the number of its steps."""
    for seed in range(SEEDS):
        world, wish = made(operation, seed)
        if wish.operation == operation:
            change = begun(world, wish)
            steps = stepped(world, change, 100)
            if status(world, change) is ChangeStatus.SUCCEEDED:
                world.end()
                return seed, steps
    raise LookupError(f"{operation} never succeeds")


Disturb = Callable[[World, int], None]
"""Disturbs a world in which a change of a number is under way; its next step is still to come."""


def nothing(_world: World, _change: int) -> None:
    """Let it go on."""


def pause(world: World, change: int) -> None:
    """Pause it, and let another process go on."""
    try:
        world.members[WRITER].tables.pause(change)
    except ChangeStatusError:
        assert status(world, change).is_over
        return
    world.members[WRITER].tables.resume(change, detach=True)
    world.members[OTHER].owner.run(change)


def cancel(world: World, change: int) -> None:
    """Cancel it; afterwards all is as before, but for numbers."""
    is_visible = world.members[WRITER].tables.change(change).can_be_cancelled is False
    before = world.state
    try:
        world.members[WRITER].tables.cancel(change)
    except NotRevertibleError:
        assert is_visible
        return
    assert status(world, change) is ChangeStatus.CANCELLED
    assert world.state == before


def write(world: World, _change: int) -> None:
    """Insert, update, upsert and delete rows of every table."""
    for table, verb in product(list(world.state.values()), Verb):
        now = world.state.get(table.uid)
        if now is not None:
            _write(world, now, _call(now, verb))


def _call(table: Table, verb: Verb) -> Call:
    columns = {c.uid: c for c in table.columns}
    keys = [
        dict(zip(table.key, key, strict=True)) for key in product(*(VALUES[columns[u].kind][:3] for u in table.key))
    ]
    wanted = verb is Verb.INSERT
    key = next((key for key in keys if (table.key_of(key) not in table.rows) is wanted), keys[0])
    values = {c.uid: VALUES[c.kind][1] for c in table.columns if c.uid not in table.key and not c.source}
    if verb is Verb.DELETE:
        return Call(verb, table.uid, key)
    return Call(verb, table.uid, key, values if verb is Verb.UPDATE else {**key, **values})


def _write(world: World, table: Table, call: Call) -> None:
    session = Session(world.observer, world.members[WRITER], world.chance)
    session.make(session.known[table.uid], call)
    session.commit()
    world.observer.raise_violation()


def pin(world: World, change: int) -> None:
    """Let a bulk write pin the tables, so that what is announced waits; it ends without having written anything."""
    world.pin(WRITER)
    stepped(world, change, 3)
    write(world, change)
    world.pin(WRITER)


def killed_at(point: Point) -> Disturb:
    """Return the death of the owner at a point of its next step, after which another process takes the change up."""

    def disturb(world: World, change: int) -> None:
        world.due = point, Crash(point)
        try:
            stepped(world, change, 1)
        except Crash:
            world.members[OTHER].owner.run(change)
        world.due = None

    return disturb


def lost_at(point: FaultPoint) -> Disturb:
    """Return the loss of an answer to the owner, which then goes on; the commit arrives at once or not at all."""

    def disturb(world: World, change: int) -> None:
        world.due = point, LostResponseError(point)
        try:
            stepped(world, change, 1)
        except (CommitFailedError, IndeterminateError):
            world.disk.memory.deliver()
        world.due = None

    return disturb


DISTURBANCES: dict[str, Disturb] = {
    "nothing": nothing,
    "pause": pause,
    "cancel": cancel,
    "write": write,
    "pin": pin,
    "killed before a file": killed_at(FaultPoint.WRITE_BEFORE_FILE),
    "killed before a commit": killed_at(FaultPoint.COMMIT_BEFORE_LOG),
    "killed after a commit": killed_at(FaultPoint.COMMIT_AFTER_LOG),
    "killed before an item": killed_at(ReadPoint.NAMES_BEFORE),
    "killed after an item": killed_at(ReadPoint.NAMES_AFTER),
    "lost before a commit": lost_at(FaultPoint.COMMIT_BEFORE_LOG),
    "lost after a commit": lost_at(FaultPoint.COMMIT_AFTER_SYNC),
}


def disturbed(operation: str, disturbance: str) -> Iterator[int]:
    """Play an operation once for each of its steps, disturbed before that one; yield the step as it ends."""
    seed, steps = steps_of(operation)
    for at in range(steps):
        world, wish = made(operation, seed)
        change = begun(world, wish)
        stepped(world, change, at)
        try:
            DISTURBANCES[disturbance](world, change)
            world.observer.raise_violation()
            world.end()
        except BaseException as error:
            error.add_note(f"{wish.sql}, {disturbance} before step {at} of {steps}")
            raise
        yield at
