"""Folders in memory, where there is room: fsync costs nothing there.

For what ends processes and never the machine: a disk has nothing to add, since the system keeps what was written. The
contract of logs is shown on a disk.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

_MEMORY = Path("/dev/shm")  # noqa: S108 - names in it are made as in any other folder for such files
_ROOM_BYTES = 2**30


def volatile_folder() -> TemporaryDirectory[str]:
    roomy = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ROOM_BYTES
    return TemporaryDirectory(prefix="catalog-test-", dir=_MEMORY if roomy else None)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """In place of pytest's own."""
    with volatile_folder() as folder:
        yield Path(folder)
