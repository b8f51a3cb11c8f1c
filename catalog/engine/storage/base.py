"""Bytes at a place: a local directory or a prefix of an object store.

Whatever is written is durable when a method returns, and never seen by halves. Foreign errors are translated by the
places themselves: callers see only ours.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeVar
from urllib.parse import unquote, urlsplit

from catalog.errors import NoAddressError, StoreUnreachableError

NOTHING: Final = "nothing is there"
"""The answer of `Storage.found` for a place where a folder can still be made."""
_Given = TypeVar("_Given")
_Answer = TypeVar("_Answer")


class Storage(Protocol):
    uri: str
    remote: bool
    """Requests travel: they cost time, and one that seems to have failed may still arrive."""

    def server(self) -> str:
        """Return a text that tells apart places of one address: of an object store its server, else the file system."""

    def found(self) -> str | None:
        """Return why this place is no folder of files; none if it is one."""

    def prepare(self, folder: str) -> None:
        """Make a folder durable, so that others may write into it."""

    def read(self, path: str) -> bytes | None:
        """Return the content of a file; none if there is no such file."""

    def read_range(self, path: str, start: int, end: int) -> bytes | None:
        """Return some of the bytes of a file, or as many as there are; none if there is no such file."""

    def size(self, path: str) -> int | None:
        """Return the size of a file in bytes; none if there is no such file."""

    def modified_ms(self, path: str) -> int | None:
        """Return the time at which a file was written, by the clock of the place; none if there is no such file."""

    def write(self, path: str, content: bytes | memoryview) -> None:
        """Write a file of a new name that no other process uses or reads yet."""

    def create(self, path: str, content: bytes) -> bool:
        """Write a file unless it is there; tell if it was written."""

    def replace(self, path: str, content: bytes) -> None:
        """Write a file over what was there."""

    def settle(self, path: str) -> None:
        """Make a file of any process durable; one whose writer failed to do so is written again."""

    def write_again(self, path: str) -> None:
        """Make a file of another program durable by writing its content to another file, which takes its name.

        A bare sync is not enough: if one failed before, in any process, the next succeeds and has written nothing.
        """

    def share(self, names: Mapping[str, str]) -> None:
        """Link or copy files to other names, in order; skip those that are gone, or whose other name is taken."""

    def paths(self, folder: str, after: str = "") -> Iterator[str]:
        """Yield the files in a folder whose paths sort after a given one, in no order."""

    def entries(self, *besides: str) -> Iterator[StoredFile]:
        """Yield every file at any depth, except those in some folders, in no order."""

    def delete(self, path: str) -> None:
        """Remove a file if it is there."""

    def remove_folder(self, folder: str) -> None:
        """Remove a folder if it is there and holds nothing."""


def open_storage(uri: str, options: Mapping[str, str]) -> Storage:
    from catalog.engine.storage.local import LocalStorage  # noqa: PLC0415 - they are kinds of what this module describes
    from catalog.engine.storage.object_store import ObjectStorage  # noqa: PLC0415

    try:
        parts = urlsplit(uri)
    except ValueError as error:
        raise NoAddressError(uri, "open", str(error)) from error
    if not _is_path(uri) or ("://" in uri and not parts.scheme):  # or a folder of that name would be made
        raise NoAddressError(uri, "open", "it is neither a path nor an address")
    if parts.scheme in {"", "file"}:
        return LocalStorage(Path(unquote(parts.path) if parts.scheme else uri).absolute())
    if not parts.netloc:
        raise NoAddressError(uri, "open", "it names no bucket")
    return ObjectStorage(uri, options)


def _is_path(uri: str) -> bool:
    """Tell if a text can be the name of a file: not with a zero byte, nor with characters that are none."""
    try:
        return b"\0" not in os.fsencode(uri)
    except UnicodeEncodeError:
        return False


def map_concurrently(storage: Storage, ask: Callable[[_Given], _Answer], given: Iterable[_Given]) -> list[_Answer]:
    """Call a function of a storage for several arguments, concurrently where that saves time."""
    asked = list(given)
    if not storage.remote or len(asked) < 2:  # noqa: PLR2004 - one needs no company
        return [ask(one) for one in asked]
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - local files are read one after another

    with ThreadPoolExecutor(min(16, len(asked))) as pool:
        return list(pool.map(ask, asked))


@dataclass(frozen=True, slots=True)
class StoredFile:
    path: str
    size: int
    modified_ms: int
    """By the clock of the place."""


def place_ms(storage: Storage, path: str) -> int:
    """Return the time by the clock of a place: that at which a file was written there just now.

    Files are dated by that clock, so their age is told by it alone. The clocks of processes may be years apart.
    """
    try:
        storage.write(path, b"clock")
        found = storage.modified_ms(path)
    finally:
        storage.delete(path)
    if found is None:
        raise StoreUnreachableError(storage.uri, "read the clock of", f"{path} was written and is not there")
    return found
