"""Other processes that change a store between two reads: at every one of them, one after the other.

What they do is done once, in earnest. A test then repeats its effect on copies, right before the n-th call of the
storage, so that nothing has to be timed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from catalog.engine.storage.local import LocalStorage

_READS = ("read", "read_range", "size", "modified_ms", "paths", "entries", "found")


@dataclass(frozen=True)
class Meanwhile:
    """A folder before and after others have worked on it."""

    before: Path
    after: Path

    @classmethod
    def of(cls, folder: Path, work: Callable[[], object], kept: Path) -> Meanwhile:
        """Let others work on a folder, and keep a copy of it from before and from after."""
        before, after = (kept / name for name in ("before", "after"))
        shutil.copytree(folder, before)
        work()
        shutil.copytree(folder, after)
        return cls(before, after)

    def begin(self, folder: Path) -> None:
        """Make the folder as it was before."""
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.before, folder, copy_function=os.link)

    def happen(self, folder: Path) -> None:
        """Make the folder as it is afterwards: what is new comes first, as processes do it.

        If the test has taken the name of a new entry itself, the others cannot have been so quick, and nothing happens.
        """
        before, after = (_files(place) for place in (self.before, self.after))
        if any((folder / path).exists() for path in after - before if "_delta_log/0" in path):
            return
        for path in sorted(after):
            target = folder / path
            is_new = path not in before or (self.before / path).read_bytes() != (self.after / path).read_bytes()
            if is_new or not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.unlink(missing_ok=True)
                os.link(self.after / path, target)
        for path in sorted(before - after):
            (folder / path).unlink(missing_ok=True)


def outcomes(work: Meanwhile, folder: Path, act: Callable[[], object], every: int = 1) -> Iterator[object]:
    """Yield what an action returns or raises if others work right before its first read, its second, and so on."""
    number, is_done = 0, False
    while not is_done:
        work.begin(folder)
        with _before_read(number, lambda: work.happen(folder)) as happened:
            try:
                yield act()
            except Exception as error:  # noqa: BLE001 - the test judges it
                yield error
        is_done = not happened
        number += every


@contextmanager
def _before_read(number: int, happen: Callable[[], None]) -> Iterator[list[bool]]:
    """Let something happen before the given read of any storage, counted from 0; the list tells if it did."""
    happened, count = list[bool](), 0

    def watched(name: str) -> Callable[..., Any]:
        plain = getattr(LocalStorage, name)

        def call(self: LocalStorage, *given: Any, **named: Any) -> Any:  # noqa: ANN401 - any method
            nonlocal count
            count += 1
            if count == number + 1:
                happened.append(True)
                happen()
            return plain(self, *given, **named)

        return call

    with ExitStack() as stack:
        for name in _READS:
            stack.enter_context(mock.patch.object(LocalStorage, name, watched(name)))
        yield happened


def _files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
