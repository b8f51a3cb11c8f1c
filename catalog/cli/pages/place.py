"""Where a page is written: tried before long work begins, and filled at its end, as a whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from catalog.errors import PageError, UsageError


@dataclass(frozen=True, slots=True)
class PagePlace:
    path: Path
    """What is replaced: where links lead to."""
    draft: Path

    def fill(self, page: str) -> None:
        """Put a page in its place, instead of what was there."""
        try:
            with self.draft.open("w", encoding="utf-8", newline="\n") as file:
                file.write(page)
                file.flush()
                os.fsync(file.fileno())
            if self.path.exists():
                shutil.copymode(self.path, self.draft)
            self.draft.replace(self.path)
        except OSError as error:
            raise PageError(str(self.path), error.strerror or str(error)) from error


@contextmanager
def page_place(name: str) -> Iterator[PagePlace]:
    """A place that a page can be put in; refuses one where it cannot, and leaves nothing but the page."""
    try:
        path = Path(name).resolve()
        if path.exists() and not path.is_file():
            raise _refusal(name, "it is a folder" if path.is_dir() else "it is no ordinary file")
        if path.is_file() and not os.access(path, os.W_OK):
            raise _refusal(name, "that file may not be written")
        draft = path.with_name(f".catalog-page-{secrets.token_hex(6)}")
        draft.touch(exist_ok=False)
    except OSError as error:
        raise _refusal(name, error.strerror or str(error)) from error
    except (ValueError, RuntimeError) as error:  # a NUL in it, or links that lead in a circle
        raise _refusal(name, str(error)) from error
    try:
        yield PagePlace(path, draft)
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()


def _refusal(name: str, reason: str) -> UsageError:
    return UsageError(
        f"no page can be written to {name!r}: {reason}",
        "--html names the file of the page, which is made or replaced",
        "name a file in a folder that can be written to",
    )
