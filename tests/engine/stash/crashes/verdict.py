"""What must be true of a store after a process that wrote to it was killed."""

from __future__ import annotations

from catalog.constraints import CONSTRAINTS
from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.maintenance import clean
from catalog.engine.log.protocol import Log
from catalog.engine.stash.stash import Stash
from catalog.tools.fsck.findings import FsckCode, Severity
from catalog.tools.fsck.stash import fsck
from tests.engine.stash.crashes.ledger import EAGER, REGISTRY, count_of, open_stash, rows_after, rows_of, transact
from tests.engine.stash.races.processes import Told


def examine(log: DeltaLog, answers: list[Told], known: int = 0) -> Stash:
    """Whole, with every transaction that was acknowledged and at most the one in doubt; answer the open store.

    `known` is how many transactions were there before the process whose answers these are.
    """
    done = max((answer["done"] for answer in answers if "done" in answer), default=known)
    begun = max((answer["begun"] for answer in answers if "begun" in answer), default=known)
    stash = open_stash(log)
    found = count_of(stash.view())
    assert done <= begun <= done + 1
    assert found in {done, begun}, f"{done} were acknowledged, {begun} begun, {found} are there"
    assert rows_of(stash.view()) == rows_after(found)
    for answer in answers:
        if "done" in answer and answer["ts"] >= stash.state.frontier:
            assert rows_of(stash.view(answer["ts"])) == rows_after(answer["done"])
    only_orphans(log)
    return stash


def only_orphans(log: Log) -> None:
    """A check of everything finds nothing but files that can be swept."""
    report = fsck(log, REGISTRY, CONSTRAINTS, every_state=True)
    worse = [
        found for found in report.findings if (found.code, found.severity) != (FsckCode.ORPHAN, Severity.SWEEPABLE)
    ]
    assert worse == []


def recover(stash: Stash) -> None:
    """The next leader goes on from there, and its sweep leaves not one orphan behind."""
    stash.take_over(stash.state.fence.generation + 1, "next")
    number = count_of(stash.view()) + 1
    with stash.transaction() as tx:
        transact(tx, number)
    clean(stash.log, stash.state, EAGER)
    assert rows_of(stash.view()) == rows_after(number)
    assert fsck(stash.log, REGISTRY, CONSTRAINTS, every_state=True).findings == ()
