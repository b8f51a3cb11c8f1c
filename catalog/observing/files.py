"""Small files that others read at any moment: replaced as a whole or not at all."""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from pathlib import Path


def replace_file(path: Path, text: str) -> None:
    """Put a text in the place of a file; whoever reads sees the one before or this one.

    What is unfinished has another ending, so that nobody who looks for the file's own takes it for one. Anybody may
    read it whom the umask lets.
    """
    unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "w", encoding="utf-8") as file:
            file.write(text)
        unfinished.replace(path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise


def remove_file(path: Path) -> None:
    path.unlink(missing_ok=True)
