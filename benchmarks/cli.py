"""The command line against Alembic's, and against itself on a store with a longer past.

Whole processes, from start to exit, in turns; medians with the spread between the quartiles.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.store import align, grow, in_turns, show, store

PROGRAMS = Path(sys.executable).parent
ROUNDS = 20
COMMITS = 10_000


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        young, old = store(folder / "young", 0), store(folder / "old", 0)
        grow(young, 10)
        grow(old, COMMITS)
        align(young, old)
        young.close()
        old.close()
        alembic = _alembic(folder / "alembic")
        times = in_turns(
            {
                "info": partial(_catalog, folder / "young", "info"),
                "current": partial(alembic, "current"),
                "info, old": partial(_catalog, folder / "old", "info"),
                "start": partial(_catalog, folder / "young", "start"),
                "upgrade": partial(alembic, "upgrade", "head"),
                "start, old": partial(_catalog, folder / "old", "start"),
            },
            ROUNDS,
        )
    show("catalog info against alembic current", times["info"], times["current"], 1)
    show("catalog start, nothing to do, against alembic upgrade head", times["start"], times["upgrade"], 1)
    show(f"catalog info after {COMMITS:,} commits against 10", times["info, old"], times["info"], 1.5)
    show(f"catalog start after {COMMITS:,} commits against 10", times["start, old"], times["start"], 1.5)


def _catalog(path: Path, verb: str) -> None:
    subprocess.run([PROGRAMS / "catalog", verb, "--store", path], check=True, stdout=subprocess.DEVNULL)


def _alembic(folder: Path) -> partial[None]:
    """A database on SQLite with one migration behind it, and how Alembic is run on it."""
    folder.mkdir()
    run = partial(_run_alembic, folder)
    run("init", "migrations")
    settings = folder / "alembic.ini"
    lines = settings.read_text(encoding="utf-8").splitlines()
    url = f"sqlalchemy.url = sqlite:///{folder}/peer.db"
    told = [url if line.startswith("sqlalchemy.url") else line for line in lines]
    settings.write_text("\n".join(told), encoding="utf-8")
    run("revision", "--message", "one")
    run("upgrade", "head")
    return run


def _run_alembic(folder: Path, *words: str) -> None:
    subprocess.run([PROGRAMS / "alembic", *words], check=True, cwd=folder, capture_output=True)


if __name__ == "__main__":
    main()
