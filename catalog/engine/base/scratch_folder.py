"""Scratch folders: removed when they are closed, or swept when the next one is made.

A folder is locked as long as its process lives. One whose process died is not locked any more, and is removed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from catalog.engine.base.process import require_opener


@dataclass(frozen=True, slots=True)
class ScratchFolder:
    """A locked folder of this process; a context manager, or closed by its owner."""

    path: Path
    lock: int
    opened_by: int = field(default_factory=os.getpid)

    def close(self) -> None:
        require_opener(self.opened_by, f"the scratch folder {self.path}")
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.lock)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *exception: object) -> None:
        self.close()


def scratch_folder(place: Path, prefix: str) -> ScratchFolder:
    """Make a folder in a place, after sweeping those that dead processes left there."""
    sweep(place, prefix)
    return ScratchFolder(*_locked(place, prefix))


def sweep(place: Path, prefix: str) -> None:
    """Remove the folders of processes of this machine that have ended."""
    for folder in place.glob(f"{prefix}*"):
        lock = _lock(folder)
        if lock is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _locked(place: Path, prefix: str) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
        lock = _lock(folder)
        if lock is not None and _is_same(folder, lock):
            return folder, lock
        if lock is not None:  # another process swept it before it was locked
            os.close(lock)


def _lock(folder: Path) -> int | None:
    """Lock a folder until the result is closed or the process ends; none if another process has it, or it is gone."""
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(opened)
        return None
    return opened


def _is_same(folder: Path, lock: int) -> bool:
    try:
        return os.path.samestat(folder.stat(), os.fstat(lock))
    except FileNotFoundError:
        return False
