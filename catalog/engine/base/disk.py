"""Free space of a disk."""

from __future__ import annotations

import shutil
from pathlib import Path


def free_bytes(place: Path) -> int:
    """Return the bytes that are free where a folder is, or where it would be made."""
    return shutil.disk_usage(next(folder for folder in (place, *place.parents) if folder.is_dir())).free
