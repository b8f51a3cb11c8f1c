"""A log that others commit to, archive and expire between two reads is never called damaged."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.maintenance import Policy, clean, maintain
from catalog.engine.log.protocol import AppTxn, Commit, Log, LogState
from catalog.engine.log.replica import LogReplica, newest_state
from catalog.errors import ConflictError, IndeterminateError, NoSuchVersionError, RetiredError
from tests.engine.log.places import DeltaPlace, append, change, created
from tests.meanwhile import Meanwhile, outcomes
from tests.volatile import volatile_folder

EVERY = 5
Others = Callable[[Log, list[LogState]], None]


def commit(log: Log, states: list[LogState], count: int) -> None:
    for _ in range(count):
        before = states[-1]
        epoch = before.app_txns.get(AppTxn.EPOCH, 0) + 1
        states.append(append(log, before, removes=tuple(before.files.values()), EPOCH=epoch))
        if states[-1].version % EVERY == 0:
            log.checkpoint(states[-1].version)


def commit_two(log: Log, states: list[LogState]) -> None:
    commit(log, states, 2)


def archive(log: Log, states: list[LogState]) -> None:
    commit(log, states, 22)


def expire(log: Log, states: list[LogState]) -> None:
    commit(log, states, 22)
    states.append(clean(log, states[-1], Policy(retention_ms=0)).state)
    commit(log, states, 3)


class Log22:
    """A log of some commits, and what others do to it meanwhile."""

    def __init__(self, folder: Path, begun: int, others: Others) -> None:
        self.place = DeltaPlace(str(folder / "stash"))
        log, first = created(self.place)
        self.states = [first]
        commit(log, self.states, begun)
        self.head = begun
        self.work = Meanwhile.of(self.place.folder, lambda: others(log, self.states), folder)

    def outcomes(self, act: Callable[[DeltaLog], object]) -> Iterator[object]:
        return outcomes(self.work, self.place.folder, lambda: act(self.place.open()))


@pytest.fixture(
    scope="module",
    params=[(begun, others) for begun in (3, 12) for others in (commit_two, archive, expire)],
    ids=lambda param: f"{param[1].__name__}-{param[0]}",
)
def log(request: pytest.FixtureRequest) -> Iterator[Log22]:
    with volatile_folder() as folder:
        yield Log22(Path(folder), *request.param)


def test_an_opening_finds_a_whole_log_whatever_others_do_meanwhile(log: Log22) -> None:
    """Verifying a log and reading its newest state never raise: the state is one that was the newest meanwhile."""
    for found in log.outcomes(newest_state):
        assert isinstance(found, LogState), found
        assert found in (log.states[log.head], log.states[-1])


def test_a_past_state_is_read_or_retired_whatever_others_do_meanwhile(log: Log22) -> None:
    """A version that was there is returned right, or refused because its retention has ended."""
    wanted = log.states[log.head]
    for found in log.outcomes(lambda own: own.state(wanted.version)):
        assert found == wanted or isinstance(found, RetiredError), found


def test_a_version_that_lands_while_it_is_asked_for_is_not_missing(log: Log22) -> None:
    """The next version is yet to come, or there, or retired by now; never damaged."""
    for read in (DeltaLog.state, DeltaLog.commit):
        for found in log.outcomes(lambda own, read=read: read(own, log.head + 1)):  # type: ignore[misc]
            assert isinstance(found, LogState | Commit | NoSuchVersionError | RetiredError), found


def test_commits_are_read_or_retired_whatever_others_do_meanwhile(log: Log22) -> None:
    """The commits of a log are those that were made, or refused because their retention has ended."""
    for found in log.outcomes(lambda own: list(own.commits(1, log.head))):
        if isinstance(found, list):
            epochs = [one.app_txns[AppTxn.EPOCH] for one in found]
            assert epochs == [state.app_txns[AppTxn.EPOCH] for state in log.states[1 : log.head + 1]]
        else:
            assert isinstance(found, RetiredError), found


def test_a_replica_follows_whatever_others_do_meanwhile(log: Log22) -> None:
    """A process that reads behind the log catches up with a state of it, and never raises."""
    for found in log.outcomes(lambda own: LogReplica(own, log.states[2]).follow()):
        assert isinstance(found, LogState), found
        assert found == log.states[found.version]


def test_a_commit_lands_or_conflicts_whatever_others_do_meanwhile(log: Log22) -> None:
    """A writer that others overtake is told so; the storage is not called unreachable."""
    for found in log.outcomes(lambda own: own.compare_and_append(log.states[log.head], change())):
        assert isinstance(found, Commit | ConflictError) or is_expired_beyond(found), found


def test_maintenance_ends_well_whatever_others_do_meanwhile(log: Log22) -> None:
    """Checkpoints, cleaning and expiry of two processes at once never find damage."""
    wanted = log.states[log.head]
    policy = Policy(checkpoint_every=1, clean_every=1, retention_ms=0)
    for found in log.outcomes(lambda own: maintain(own, wanted, policy).state):
        assert isinstance(found, LogState) or is_expired_beyond(found), found


def test_a_new_log_is_not_made_over_one_that_others_work_on(log: Log22) -> None:
    """Making a log where there is one tells so, whatever others do meanwhile."""
    assert set(log.outcomes(lambda own: own.create("txid"))) == {False}


def test_an_entry_whose_name_was_taken_again_is_never_read(folder: DeltaPlace, tmp_path: Path) -> None:
    """A writer that stood still may take the name of an archived or expired entry: no replica reads what it wrote."""
    for others in (archive, expire):
        shutil.rmtree(folder.folder, ignore_errors=True)
        own, first = created(folder)
        states = [first]
        commit(own, states, 3)

        def overtaken(others: Others = others, states: list[LogState] = states) -> None:
            others(folder.open(), states)
            entry = commit_entry_of(tmp_path / others.__name__)
            (folder.folder / "_delta_log" / f"{3:020d}.json").write_bytes(entry)

        work = Meanwhile.of(folder.folder, overtaken, tmp_path / others.__name__)
        for found in outcomes(work, folder.folder, lambda: LogReplica(folder.open(), states[2]).follow()):  # noqa: B023
            assert isinstance(found, LogState), found
            assert found == states[found.version]


def is_expired_beyond(found: object) -> bool:
    """Tell if a writer stood still until its version expired: nobody knows any more who took it."""
    return isinstance(found, IndeterminateError) and "the log was expired beyond it meanwhile" in str(found)


def commit_entry_of(folder: Path) -> bytes:
    """Return the third entry of another log, which removes a file that this one never had."""
    place = DeltaPlace(str(folder / "other"))
    log, first = created(place)
    states = [first]
    commit(log, states, 3)
    return place.entry(3).read_bytes()
