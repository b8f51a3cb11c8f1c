"""Bytes at a place: a local directory or a prefix of an object store.

Whatever is written is durable when a method returns, and never seen by halves. Foreign errors are translated by the
places themselves: callers see only ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Protocol, TypeVar
from urllib.parse import unquote, urlsplit

from catalog.errors import StoreUnreachableError
from catalog.log.protocol import StoredFile

SHARDS = "shards"
"""The folder of a store that its shards are in, each a log of its own."""
NOTHING: Final = "nothing is there"
"""What keeps a place from being a folder where one can still be made."""
_Given = TypeVar("_Given")
_Answer = TypeVar("_Answer")


class Storage(Protocol):
    uri: str
    remote: bool
    """Requests travel: they cost time, and one that seems to have failed may still arrive."""

    def found(self) -> str | None:
        """What keeps this place from being a folder of files; none if nothing does."""

    def prepare(self, folder: str) -> None:
        """Make a folder durable, so that others may write into it."""

    def read(self, path: str) -> bytes | None:
        """The content of a file; none if there is no such file."""

    def read_range(self, path: str, start: int, end: int) -> bytes | None:
        """Some of the bytes of a file, or as many as there are; none if there is no such file."""

    def size(self, path: str) -> int | None:
        """The size of a file in bytes; none if there is no such file."""

    def write(self, path: str, content: bytes | memoryview) -> None:
        """Write a file of a name that nobody else uses or looks for yet."""

    def create(self, path: str, content: bytes) -> bool:
        """Write a file unless it is there; answer whether it was written."""

    def replace(self, path: str, content: bytes) -> None:
        """Write a file over what was there."""

    def settle(self, path: str) -> None:
        """Make a file that somebody else wrote durable."""

    def share(self, names: Mapping[str, str]) -> None:
        """Have files under other names too, in order; what is gone, or whose other name is taken, is passed over."""

    def paths(self, folder: str, after: str = "") -> Iterator[str]:
        """The files in a folder whose paths sort after a given one, in no order."""

    def entries(self, *besides: str) -> Iterator[StoredFile]:
        """Every file at any depth, besides those in some folders, in no order."""

    def delete(self, path: str) -> None:
        """Remove a file if it is there."""

    def remove_folder(self, folder: str) -> None:
        """Remove a folder if it is there and holds nothing."""


def open_storage(uri: str, options: Mapping[str, str]) -> Storage:
    from catalog.log.local_storage import LocalStorage  # noqa: PLC0415 - they are kinds of what this module describes
    from catalog.log.object_storage import ObjectStorage  # noqa: PLC0415

    try:
        parts = urlsplit(uri)
    except ValueError as error:
        raise StoreUnreachableError(uri, "open", str(error)) from error
    if "\0" in uri or ("://" in uri and not parts.scheme):  # or a folder of that name would be made
        raise StoreUnreachableError(uri, "open", "it is neither a path nor an address")
    if parts.scheme in {"", "file"}:
        return LocalStorage(Path(unquote(parts.path) if parts.scheme else uri).absolute())
    return ObjectStorage(uri, options)


def each(storage: Storage, ask: Callable[[_Given], _Answer], given: Iterable[_Given]) -> list[_Answer]:
    """Ask a storage for several things, at once where that saves time."""
    asked = list(given)
    if not storage.remote or len(asked) < 2:  # noqa: PLR2004 - one needs no company
        return [ask(one) for one in asked]
    with ThreadPoolExecutor(min(16, len(asked))) as pool:
        return list(pool.map(ask, asked))


def is_panic(error: BaseException) -> bool:
    """Whether a library in Rust gave up; such an error is no `Exception`, and has no name to import."""
    return type(error).__name__ == "PanicException"
