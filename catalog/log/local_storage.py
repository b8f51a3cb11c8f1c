"""A local directory: files are written whole, linked into their place, and made durable with their folders."""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from catalog.errors import StoreFullError, StoreReadOnlyError, StoreUnreachableError
from catalog.log.protocol import StoredFile
from catalog.log.storage import NOTHING


class LocalStorage:
    remote = False

    def __init__(self, root: Path) -> None:
        self._root = root
        self.uri = str(root)

    def found(self) -> str | None:
        with self._translated("look at", ""):
            if self._root.is_dir():
                return None
            if self._root.exists():
                return "it is a file"
            above = next(folder for folder in self._root.parents if folder.exists())
            return NOTHING if above.is_dir() else f"{above} is a file"

    def prepare(self, folder: str) -> None:
        with self._translated("make", folder):
            for changed in _make_folder(self._root / folder):
                _fsync(changed)

    def read(self, path: str) -> bytes | None:
        with self._translated("read", path):
            try:
                return (self._root / path).read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                return None

    def read_range(self, path: str, start: int, end: int) -> bytes | None:
        with self._translated("read", path):
            try:
                with (self._root / path).open("rb") as file:
                    file.seek(start)
                    return file.read(end - start)
            except (FileNotFoundError, NotADirectoryError):
                return None

    def size(self, path: str) -> int | None:
        with self._translated("look at", path):
            try:
                return (self._root / path).stat().st_size
            except (FileNotFoundError, NotADirectoryError):
                return None

    def write(self, path: str, content: bytes | memoryview) -> None:
        with self._translated("write", path):
            target = self._root / path
            made = _make_folder(target.parent)
            _write(target, content)
            for folder in {target.parent, *made}:
                _fsync(folder)

    def create(self, path: str, content: bytes) -> bool:
        with self._translated("write", path), self._staged(path, content) as staged:
            try:
                os.link(staged, self._root / path)
            except FileExistsError:
                return False
            return True

    def replace(self, path: str, content: bytes) -> None:
        with self._translated("write", path), self._staged(path, content) as staged:
            staged.replace(self._root / path)

    def settle(self, path: str) -> None:
        with self._translated("make durable", path):
            target = self._root / path
            _fsync(target)
            _fsync(target.parent)

    def share(self, names: Mapping[str, str]) -> None:
        changed: set[Path] = set()
        for path, other in names.items():
            with self._translated("write", other), suppress(FileExistsError, FileNotFoundError):
                folder = (self._root / other).parent
                changed |= {folder, *_make_folder(folder)}
                os.link(self._root / path, self._root / other)
        for folder in changed:
            with self._translated("make durable", ""):
                _fsync(folder)

    def paths(self, folder: str, after: str = "") -> Iterator[str]:
        with self._translated("list", folder):
            try:
                names = os.listdir(self._root / folder)  # noqa: PTH208 - thousands of names, no need of paths
            except (FileNotFoundError, NotADirectoryError):
                return
        yield from (path for path in (f"{folder}/{name}".lstrip("/") for name in names) if path > after)

    def entries(self, *besides: str) -> Iterator[StoredFile]:
        with self._translated("list", ""):
            for where, folders, names in os.walk(self._root, onerror=_refuse):
                if where == str(self._root):
                    folders[:] = [folder for folder in folders if folder not in besides]
                for file in (Path(where, name) for name in names):
                    try:
                        status = file.stat()
                    except FileNotFoundError:
                        continue
                    path = file.relative_to(self._root).as_posix()
                    yield StoredFile(path, status.st_size, status.st_mtime_ns // 1_000_000)

    def delete(self, path: str) -> None:
        with self._translated("remove", path):
            (self._root / path).unlink(missing_ok=True)

    def remove_folder(self, folder: str) -> None:
        with self._translated("remove", folder):
            try:
                (self._root / folder).rmdir()
            except OSError as error:
                if error.errno not in _KEPT:
                    raise

    @contextmanager
    def _staged(self, path: str, content: bytes) -> Iterator[Path]:
        """A durable file beside the target, to be linked or renamed to it; then the folder is made durable."""
        target = self._root / path
        made = _make_folder(target.parent)
        staged = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
        try:
            _write(staged, content)
            yield staged
        finally:
            staged.unlink(missing_ok=True)
        for folder in {target.parent, *made}:
            _fsync(folder)

    @contextmanager
    def _translated(self, verb: str, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            kind = _LOCAL_ERRORS.get(error.errno or 0, StoreUnreachableError)
            raise kind(f"{self.uri}/{path}".rstrip("/"), verb, error.strerror or str(error)) from error


_KEPT = {errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY}
"""Why a folder is not there to be removed, or holds something."""
_LOCAL_ERRORS = {
    errno.EROFS: StoreReadOnlyError,
    errno.EACCES: StoreReadOnlyError,
    errno.EPERM: StoreReadOnlyError,
    errno.ENOSPC: StoreFullError,
    errno.EDQUOT: StoreFullError,
}


def _write(target: Path, content: bytes | memoryview) -> None:
    """A new file with this content, durable but for its folder; none at all if that fails."""
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(handle, view) :]
        os.fsync(handle)
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)


def _make_folder(folder: Path) -> list[Path]:
    """Make a folder and those above it; answer the folders that gained one."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
    return [path.parent for path in missing]


def _refuse(error: OSError) -> None:
    """Stop a walk at a folder that cannot be listed, unless it is gone."""
    if not isinstance(error, FileNotFoundError):
        raise error


def _fsync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
