"""What became of a commit whose answer was lost, or whose process stopped: known, or said to be unknown."""

from __future__ import annotations

from collections.abc import Callable
from traceback import format_exception
from urllib.parse import quote_plus

import pytest

from catalog.engine.log.commit_rules import attempt
from catalog.engine.log.maintenance import Policy, clean, maintain
from catalog.engine.log.protocol import AppTxn, Commit, CommitRequest, FaultPoint, Log, LogState, Operation
from catalog.errors import CatalogError, CommitFailedError, IndeterminateError
from tests.engine.log.places import (
    Crash,
    CrashAt,
    LoseAnswers,
    MemoryPlace,
    Place,
    append,
    change,
    created,
    grown,
    tail,
)

IN_COMMIT = [point for point in FaultPoint if point.startswith("commit:")]
IN_UPKEEP = [point for point in FaultPoint if point.startswith(("checkpoint:", "expire:", "delete:"))]
EAGER = Policy(checkpoint_every=1, clean_every=1, retention_ms=0, orphan_ms=0)


def txids(log: Log) -> list[str]:
    return [commit.txid for commit in log.commits(0, log.verify())]


def test_a_commit_that_landed_is_acknowledged_although_its_answer_was_lost(place: Place) -> None:
    """Once, and as it is in the log."""
    log, state = created(place, LoseAnswers(FaultPoint.COMMIT_AFTER_LOG))
    asked = change(tail(log, state))
    commit = log.compare_and_append(state, asked)
    assert place.open().commit(1) == commit
    assert txids(log).count(asked.txid) == 1


def test_a_commit_that_did_not_land_never_will(place: Place) -> None:
    """The failure is certain, whatever is still under way, and the same can be tried again from the newest version."""
    log, state = created(place, LoseAnswers(FaultPoint.COMMIT_BEFORE_LOG))
    asked = change(tail(log, state))
    with pytest.raises(CommitFailedError, match=r"commit 1 of .* did not happen: no answer at commit:before-log"):
        log.compare_and_append(state, asked)
    if isinstance(place, MemoryPlace):
        place.memory.deliver()
    other = place.open()
    newest = other.state(other.verify())
    assert newest.files == {}
    assert {commit.operation for commit in other.commits(1, newest.version)} <= {Operation.SEAL}
    assert append(other, newest, EPOCH=1).version == newest.version + 1
    assert asked.txid not in txids(other)


def test_a_commit_that_cannot_be_looked_for_is_in_doubt(place: Place) -> None:
    """Whether it landed or not: the error says where to look, and for what."""
    for point in (FaultPoint.COMMIT_BEFORE_LOG, FaultPoint.COMMIT_AFTER_LOG):
        place.open().create("first")
        log = place.open(LoseAnswers(point, FaultPoint.COMMIT_PROBE))
        state = log.state(log.verify())
        asked = change(app_txns={AppTxn.EPOCH: 1})
        with pytest.raises(
            IndeterminateError, match=f"check whether log entry {state.version + 1} carries {asked.txid}"
        ):
            log.compare_and_append(state, asked)


def test_a_commit_that_is_not_known_to_be_durable_is_in_doubt(place: Place) -> None:
    """Others may see it already; it is not acknowledged."""
    log, state = created(place, LoseAnswers(FaultPoint.COMMIT_AFTER_SYNC))
    with pytest.raises(IndeterminateError, match="not known to be durable"):
        log.compare_and_append(state, change(app_txns={AppTxn.EPOCH: 1}))


def test_a_lost_race_is_a_conflict_even_if_its_answer_was_lost(place: Place) -> None:
    """Somebody else's commit is never taken for one's own."""
    other, state = created(place)

    def lose_the_race(point: FaultPoint) -> None:
        if point is FaultPoint.COMMIT_BEFORE_LOG:
            append(other, state, b"other")

    log = place.open(lose_the_race)
    with pytest.raises(CatalogError, match="is at ts 1, and the commit was prepared for ts 0"):
        log.compare_and_append(state, change(app_txns={AppTxn.EPOCH: 1}))
    assert log.state(log.verify()).app_txns == {}


@pytest.mark.parametrize("point", IN_COMMIT)
@pytest.mark.parametrize("kind", ["crash", "lost answer", "interrupt"])
def test_a_commit_is_wholly_in_or_wholly_out(place: Place, point: FaultPoint, kind: str) -> None:
    """Stopped anywhere; acknowledged only if in, failed only if out, and the log goes on."""

    def stop(reached: FaultPoint) -> None:
        if kind == "lost answer":
            LoseAnswers(point)(reached)
        elif reached is point or (reached is FaultPoint.COMMIT_BEFORE_LOG and point in {"commit:probe", "commit:seal"}):
            raise Crash if kind == "crash" else KeyboardInterrupt

    log, state = created(place, stop)
    asked = change(tail(log, state), app_txns={AppTxn.EPOCH: 7})
    outcome: BaseException | None = None
    try:
        log.compare_and_append(state, asked)
    except (CatalogError, Crash, KeyboardInterrupt) as error:
        outcome = error
    other = place.open()
    newest = other.state(other.verify())
    landed = asked.txid in txids(other)
    assert (newest.app_txns, len(newest.files)) == (({AppTxn.EPOCH: 7}, 1) if landed else ({}, 0))
    assert landed or outcome is not None
    assert not (landed and isinstance(outcome, CommitFailedError))
    if kind == "interrupt" and outcome is not None and point != FaultPoint.COMMIT_AFTER_SYNC:
        assert asked.txid in "".join(outcome.__notes__)
    append(other, newest)


@pytest.mark.parametrize("point", [FaultPoint.WRITE_BEFORE_FILE, FaultPoint.WRITE_AFTER_FILE])
def test_a_file_of_a_crashed_writer_is_nothing_but_an_orphan(place: Place, point: FaultPoint) -> None:
    """No state refers to it."""
    log, state = created(place, CrashAt(point))
    with pytest.raises(Crash):
        tail(log, state)
    assert len(list(log.files())) == (point is FaultPoint.WRITE_AFTER_FILE)
    assert place.open().state(0) == state


@pytest.mark.parametrize("point", [FaultPoint.CREATE_BEFORE_LOG, FaultPoint.CREATE_AFTER_LOG])
@pytest.mark.parametrize("fault", [CrashAt, LoseAnswers])
def test_a_creation_that_was_cut_short_can_be_repeated(
    place: Place, point: FaultPoint, fault: type[CrashAt | LoseAnswers]
) -> None:
    """There is one log in the end, and it is empty."""
    made = None
    try:
        made = place.open(fault(point)).create("first")
    except (Crash, CatalogError):
        assert made is None
    place.open().create("second")
    assert place.open().state(0) == LogState(0, {}, {})
    assert made is None or place.open().commit(0).txid == "first"


@pytest.mark.parametrize("point", IN_UPKEEP)
def test_maintenance_may_stop_anywhere(place: Place, point: FaultPoint) -> None:
    """Whatever it was doing: the state is the same, and the next maintenance finishes the work."""
    log, state = created(place)
    for _ in range(3):
        state = grown(log, state, 2)
        log.checkpoint(state.version)
    tail(log, state)
    place.wait(1000)
    with pytest.raises(Crash):
        maintain(place.open(CrashAt(point)), append(log, state, removes=tuple(state.files.values())), EAGER)
    other = place.open()
    newest = other.state(other.verify())
    assert len(newest.files) == 1
    for file in newest.files.values():
        assert other.read(file).num_rows == 1
    place.wait(1000)
    newest = clean(other, newest, EAGER).state
    assert {file.path for file in other.files()} == set(newest.files)
    grown(other, newest, 2)


def test_a_failed_commit_tells_no_secret_of_what_failed_it() -> None:
    """Not in its text, which has three lines whatever the cause wrote, and not in the errors behind it."""
    secret = "ret/nuh"[::-1]  # a traceback shows the lines of this file, too

    def commit(probe: Callable[[], Commit | None]) -> None:
        asked = CommitRequest(Operation.TRANSACTION, "a txid")
        with attempt("s3://b/x", 3, asked, probe=probe, seal=None, secrets=(secret,)):
            raise OSError(f"denied to {secret}\nas {quote_plus(secret)}")

    def unreachable() -> Commit | None:
        raise OSError(f"{secret} again")

    for probe, kind in ((lambda: None, CommitFailedError), (unreachable, IndeterminateError)):
        with pytest.raises(kind) as caught:
            commit(probe)
        assert "denied to ********; as ********" in caught.value.what
        assert len(str(caught.value).splitlines()) == 3
        assert secret not in "".join(format_exception(caught.value))
        assert quote_plus(secret) not in "".join(format_exception(caught.value))
