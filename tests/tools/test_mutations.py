"""Stores with a damaged file: each answer is right or a named error, and no later command makes it worse.

The oracle is what the store held before the damage: rows at its newest ts and at earlier ones, and for the log alone
its commits and states. `SEED=` repeats a run.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

from catalog import open_catalog
from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.maintenance import Policy, clean
from catalog.engine.log.place import StorePlace
from catalog.engine.log.replica import newest_state
from catalog.engine.stash.registry import Registry
from catalog.engine.stash.stash import Stash
from catalog.errors import CatalogError
from catalog.objects import RoleKey, RoleValue, SettingKey, SettingValue
from catalog.tools.repair import diagnose, repair
from catalog.upgrade import PROJECT

SEED = int(os.environ.get("SEED", "1"))
Rows = dict[str, dict[bytes, bytes]]
KEEP = Policy(retention_ms=365 * 24 * 3600 * 1000)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with commits of every common kind, two checkpoints and a compaction."""
    store = tmp_path_factory.mktemp("whole") / "store"
    for turn in range(2):
        with open_catalog(store) as catalog:
            for number in range(12):
                with catalog.transaction() as tx:
                    tx.upsert(SettingKey(name=f"{turn}-{number % 7}"), SettingValue(value=str(number)))
                    if number % 5 == 0:
                        tx.insert(RoleKey(id={"user": catalog.allocate("role")}), RoleValue(name=f"r{turn}{number}"))
    return store


def everything(store: Path, last: int | None = None) -> dict[int, Rows]:
    """Return the rows of all collections, at some ts and the last; raises if any of them cannot be read."""
    log = DeltaLog(str(store / "stash"))
    newest = newest_state(log)
    stash = Stash.open(log, Registry.of(PROJECT.current_types), PROJECT.constraints)
    names = sorted({file.collection for file in newest.files.values()})
    some = [*range(2, newest.version, 9), newest.version if last is None else min(last, newest.version)]
    return {ts: {name: dict(stash.view(ts).rows(name)) for name in names} for ts in some}


def log_of(store: Path, kind: str) -> tuple[object, ...]:
    """Return all that a log file of this kind can tell; raises if any of it cannot be read."""
    log = DeltaLog(str(store / "stash"))
    newest = log.verify()
    if kind == "checkpoint":
        return log.state(newest), dict(log.checkpoints()).keys()
    return tuple(log.commits(0, newest)), *(log.state(ts) for ts in (2, newest // 2, newest))


def files_of(store: Path) -> list[Path]:
    return sorted(path for path in store.rglob("*") if path.is_file() and "heartbeats" not in path.parts)


class Outcomes(Counter[str]):
    """How often each outcome was seen."""

    def judge(self, store: Path, truth: dict[int, Rows], case: str, *, spared: str = "tail- base-") -> None:
        """Compare a damaged store with the truth; then start, clean and repair it, and compare again.

        Nothing whose name begins with one of `spared` may be deleted meanwhile.
        """
        self[_read(store, truth, case)] += 1
        before = {path: path.stat().st_mtime_ns for path in files_of(store)}
        for act in (_start, _clean, _repair, _start, _clean):
            try:
                act(store)
            except CatalogError:
                continue
        kept = {path.name for path in files_of(store)}
        gone = [path.name for path in before if path.name not in kept and path.suffix == ".parquet"]
        assert [name for name in gone if name.startswith(tuple(spared.split()))] == [], case
        self[f"then {_read(store, truth, case)}"] += 1


def _read(store: Path, truth: dict[int, Rows], case: str) -> str:
    try:
        found = everything(store, max(truth))
    except CatalogError as error:
        return type(error).__name__
    assert {ts: rows for ts, rows in found.items() if ts in truth} == truth, case
    return "right"


def _start(store: Path) -> None:
    open_catalog(store).close()


def _clean(store: Path) -> None:
    log = DeltaLog(str(store / "stash"))
    clean(log, newest_state(log), KEEP)


def _repair(store: Path) -> None:
    place = StorePlace.at(PROJECT, store)
    diagnosis = diagnose(place, heartbeat_s=0.01)
    if diagnosis.damaged is not None and diagnosis.damaged.lost:
        return  # it says what would be lost, and a person decides
    repair(place, diagnosis, heartbeat_s=0.01)


def copied(whole: Path, tmp_path: Path) -> Path:
    shutil.rmtree(tmp_path / "store", ignore_errors=True)
    return Path(shutil.copytree(whole, tmp_path / "store"))


@pytest.mark.parametrize("kind", ["transaction", "fence", "create", "checkpoint", "hint"])
def test_every_flipped_bit_of_the_log_is_noticed_or_harmless(
    whole: Path, tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    """Of entries of each kind, a checkpoint and the hint: the right rows, or a named error; never other rows."""
    soaking = request.config.getoption("--hypothesis-profile") == "soak"
    truth, target, outcomes = log_of(whole, kind), _target(whole, kind), Counter[str]()
    content = target.read_bytes()
    store = copied(whole, tmp_path)
    damaged = store / target.relative_to(whole)
    for bit in range(0, 8 * len(content), 1 if soaking else len(content) // 5 | 1):
        altered = bytearray(content)
        altered[bit // 8] ^= 1 << bit % 8
        damaged.write_bytes(altered)
        try:
            assert log_of(store, kind) == truth, f"bit {bit} of {damaged.name}"
        except CatalogError as error:
            outcomes[type(error).__name__] += 1
        else:
            outcomes["right"] += 1
    print(f"soak: {kind}, {len(content)} bytes: {outcomes.total()} bits flipped, {dict(outcomes)}")  # noqa: T201
    assert outcomes.total() >= min(40, 8 * len(content))


def _target(store: Path, kind: str) -> Path:
    folder = store / "stash" / "_delta_log"
    if kind == "hint":
        return folder / "_last_checkpoint"
    if kind == "checkpoint":
        return max(folder.glob("*.checkpoint.parquet"))
    entries = [path for path in folder.glob("*.json") if f'"stash.operation":"{kind}"' in path.read_text()]
    return max(entries)


@pytest.mark.parametrize("part", range(8))
def test_a_damaged_file_never_gives_other_rows_and_nothing_makes_it_worse(
    whole: Path, tmp_path: Path, request: pytest.FixtureRequest, part: int
) -> None:
    """Random damage to any file of a store; afterwards it is started, cleaned and repaired.

    A newest entry that is gone without a trace is a commit that never was: the store is at the ts before it.
    """
    soaking = request.config.getoption("--hypothesis-profile") == "soak"
    truth, outcomes, draw = everything(whole), Outcomes(), random.Random(8 * SEED + part)  # noqa: S311 - no secret
    newest, before = max(truth), everything(whole, max(truth) - 1)
    for number in range(625 if soaking else 4):
        store = copied(whole, tmp_path)
        target = draw.choice(files_of(store))
        case = f"SEED={SEED}, {part}, {number}: {damage(target, draw)} of {target.relative_to(store)}"
        if target.name == f"{newest:020d}.json" and not target.exists():
            outcomes["the newest entry is gone"] += 1
            outcomes.judge(store, before, case, spared="base-")  # its tail is that of a commit that never was
        else:
            outcomes.judge(store, truth, case)
    print(f"soak: {number + 1} files damaged, {SEED=}: {dict(outcomes)}")  # noqa: T201


def damage(target: Path, draw: random.Random) -> str:
    """Damage a file in one of the ways in which files get damaged; say which."""
    content = bytearray(target.read_bytes())
    kind = draw.choice(["bit", "byte", "bytes", "cut", "zeros", "empty", "missing", "doubled"])
    at = draw.randrange(max(len(content), 1))
    end = min(at + draw.randrange(1, 64), len(content))
    match kind:
        case "bit" if content:
            content[at] ^= 1 << draw.randrange(8)
        case "byte" if content:
            content[at] = draw.randrange(256)
        case "bytes":
            content[at:end] = draw.randbytes(end - at)
        case "cut":
            del content[at:]
        case "zeros":
            content[at:end] = bytes(end - at)
        case "empty":
            content.clear()
        case "doubled":
            content[at:at] = content[at:end]
        case _:
            pass
    if kind == "missing":
        target.unlink()
    else:
        target.write_bytes(content)
    return f"{kind} at {at}"
