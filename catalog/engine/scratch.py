"""Scratch folders: gone when they are no longer needed, be it at the next start of whoever makes one.

A folder is locked as long as its process lives. One that a dead process left can be locked by anybody, and is removed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def scratch_folder(place: Path, prefix: str) -> Iterator[Path]:
    """A new folder in a place, removed at the end; those that dead processes left there are removed before."""
    sweep(place, prefix)
    folder, lock = _locked(place, prefix)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def sweep(place: Path, prefix: str) -> None:
    """Remove the folders of processes of this machine that are no more."""
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
        if lock is not None:  # somebody swept it before it was locked
            os.close(lock)


def _lock(folder: Path) -> int | None:
    """Lock a folder until the answer is closed or the process ends; none if another has it, or it is gone."""
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
