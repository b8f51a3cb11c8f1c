"""Files that others read at any moment: replaced as a whole or not at all."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def staged_name(path: Path) -> Path:
    """Return a new name beside a file; its ending differs, so that no reader that lists files takes it for one."""
    return path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")


@contextmanager
def staged_path(path: Path) -> Iterator[Path]:
    """Yield a name beside a file, for content that is to be renamed or linked to it; remove what is left of it."""
    staged = staged_name(path)
    try:
        yield staged
    finally:
        with suppress(OSError):
            staged.unlink(missing_ok=True)


def replace_file(path: Path, text: str) -> None:
    """Replace the text of a file; a reader sees the old text or the new one. The umask decides who may read it."""
    with staged_path(path) as staged:
        with os.fdopen(os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "w", encoding="utf-8") as file:
            file.write(text)
        staged.replace(path)
