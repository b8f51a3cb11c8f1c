"""A process killed at each named point of each path that writes."""

from __future__ import annotations

import shutil
import signal
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.protocol import FaultPoint
from catalog.errors import NoStoreError
from tests.engine.stash.crashes.ledger import PREPARED, prepare
from tests.engine.stash.crashes.verdict import examine, recover
from tests.engine.stash.races.processes import Pool
from tests.object_store import make_bucket, storage_options

WRITE = (FaultPoint.WRITE_BEFORE_FILE, FaultPoint.WRITE_AFTER_FILE)
COMMIT = (FaultPoint.COMMIT_BEFORE_LOG, FaultPoint.COMMIT_AFTER_LOG, FaultPoint.COMMIT_AFTER_SYNC)
CHECKPOINT = (
    *(FaultPoint.CHECKPOINT_BEFORE, FaultPoint.CHECKPOINT_AFTER_FILE, FaultPoint.CHECKPOINT_AFTER),
    *(FaultPoint.ARCHIVE_BEFORE, FaultPoint.ARCHIVE_BEFORE_REMOVAL),
)
PATHS: dict[str, tuple[FaultPoint, ...]] = {
    "create": (FaultPoint.CREATE_BEFORE_LOG, FaultPoint.CREATE_AFTER_LOG),
    "commit": (*WRITE, *COMMIT),
    "fence": (*WRITE, *COMMIT),
    "consolidation": (*WRITE, *COMMIT),
    "checkpoint": CHECKPOINT,
    "clean-up": (*COMMIT, FaultPoint.DELETE_BEFORE_FILE, FaultPoint.EXPIRE_BEFORE_ENTRY),
    "vacuum": (FaultPoint.DELETE_BEFORE_FILE,),
}


@dataclass(frozen=True, slots=True)
class Death:
    """At a point of a path, when it is reached so many times, after the answer at another point was lost."""

    action: str
    point: FaultPoint
    times: int = 1
    lose: FaultPoint | None = None

    def __str__(self) -> str:
        return f"{self.action}-{self.point}-{self.times}" + (f"-lost-{self.lose}" if self.lose else "")


ONCE = [Death(action, point) for action, points in PATHS.items() for point in points]
LATER = [
    Death("commit", FaultPoint.WRITE_AFTER_FILE, 2),
    Death("checkpoint", FaultPoint.ARCHIVE_BEFORE_REMOVAL, 2),
    Death("clean-up", FaultPoint.DELETE_BEFORE_FILE, 2),
    Death("clean-up", FaultPoint.EXPIRE_BEFORE_ENTRY, 3),
]
"""Not the first of several files."""
IN_DOUBT = [
    Death(action, FaultPoint.COMMIT_PROBE, lose=lost)
    for action in ("commit", "consolidation")
    for lost in (FaultPoint.COMMIT_BEFORE_LOG, FaultPoint.COMMIT_AFTER_LOG)
]
"""The answer was lost, and the process dies while it looks what became of its commit."""

FAR_AWAY = [
    Death("commit", FaultPoint.COMMIT_PROBE, lose=FaultPoint.COMMIT_BEFORE_LOG),
    Death("commit", FaultPoint.COMMIT_PROBE, lose=FaultPoint.COMMIT_AFTER_LOG),
    Death("commit", FaultPoint.COMMIT_SEAL, lose=FaultPoint.COMMIT_BEFORE_LOG),
]
"""On an object store, where a commit whose answer was lost is first kept from arriving late."""


def test_every_point_is_on_a_path() -> None:
    """None is forgotten when one is added."""
    assert {death.point for death in (*ONCE, *LATER, *IN_DOUBT, *FAR_AWAY)} == set(FaultPoint)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prepared store, to be copied."""
    folder = tmp_path_factory.mktemp("template")
    prepare(DeltaLog(str(folder / "stash")))
    return folder


@pytest.mark.parametrize("death", [*ONCE, *LATER, *IN_DOUBT], ids=str)
def test_a_process_killed_at_a_point_leaves_a_whole_store(
    victims: Pool, template: Path, tmp_path: Path, death: Death
) -> None:
    """It holds what was acknowledged and at most the one in doubt, and the next leader goes on from there."""
    if death.action != "create":
        shutil.copytree(template, tmp_path / "store")
    kill(victims, str(tmp_path / "store" / "stash"), {}, death)


@pytest.mark.parametrize("death", FAR_AWAY, ids=str)
def test_a_process_killed_at_a_point_leaves_a_whole_object_store(
    victims: Pool, object_store: str, death: Death
) -> None:
    """It is the same where requests travel."""
    uri, options = f"s3://{make_bucket(object_store)}/store/stash", storage_options(object_store)
    prepare(DeltaLog(uri, options))
    kill(victims, uri, options, death)


def kill(victims: Pool, uri: str, options: dict[str, str], death: Death) -> None:
    victim = victims.one()
    victim.tell(do="die", uri=uri, options=options, **asdict(death))
    answers = list(victim.answers())
    assert (victim.wait(), {"survived": True} in answers) == (-signal.SIGKILL, False)
    victim.close()
    log = DeltaLog(uri, options)
    if death.point is FaultPoint.CREATE_BEFORE_LOG:
        with pytest.raises(NoStoreError):
            log.verify()
    log.create("made again")
    recover(examine(log, answers, 0 if death.action == "create" else PREPARED))
