"""The file of a page: tested before long work begins, and written as a whole at its end."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from catalog.cli.answer import CommandResult
from catalog.errors import CatalogError, PageError, UsageError


@dataclass(frozen=True, slots=True)
class PagePlace:
    path: Path
    """The file to write, with links resolved."""
    draft: Path

    def fill(self, page: str) -> None:
        """Write the page, and replace the file."""
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

    def answer(self, result: CommandResult, make_page: Callable[[], str]) -> CommandResult:
        """Write the page of a result, and name it there; if it cannot be written, keep the result and add the error."""
        try:
            self.fill(make_page())
        except CatalogError as error:
            return replace(result, error=error)
        return replace(result, data=replace(result.data, page=str(self.path)))


@contextmanager
def page_place(name: str) -> Iterator[PagePlace]:
    """Open a place for a page; refuse a path that cannot be written. Leaves no other file behind."""
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
