"""A local directory: files are written whole, linked into their place, and made durable with their folders.

A sync that failed is never repeated on the same file: the system reports the error once and drops what it could not
write, so a second sync succeeds without having written anything. What is not known to be durable is written anew, to
another file that takes its name. A new file keeps a second name beside it until its folder is durable: so every process
can tell, by the number of names, if its writer came so far.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from catalog.engine.base.atomic_file import staged_name, staged_path
from catalog.engine.storage.base import NOTHING, StoredFile
from catalog.errors import NotAFolderError, StoreFullError, StoreReadOnlyError, StoreUnreachableError


class LocalStorage:
    remote = False

    def __init__(self, root: Path) -> None:
        self._root = root
        self._durable: set[Path] = set()
        """Folders whose names are durable, up to the root, as far as this process knows."""
        self.uri = str(root)

    def server(self) -> str:
        with self._translated("look at", ""):
            return str(os.statvfs(self._root).f_fsid)

    def found(self) -> str | None:
        with self._translated("look at", ""):
            for folder in (self._root, *self._root.parents):
                try:
                    is_folder = stat.S_ISDIR(folder.stat().st_mode)  # one look: another process may make it meanwhile
                except (FileNotFoundError, NotADirectoryError):
                    continue
                if folder == self._root:
                    return None if is_folder else "it is a file"
                return NOTHING if is_folder else f"{folder} is a file"
            return NOTHING

    def prepare(self, folder: str) -> None:
        with self._translated("make", folder):
            self._make_folder(self._root / folder)

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

    def modified_ms(self, path: str) -> int | None:
        with self._translated("look at", path):
            try:
                return (self._root / path).stat().st_mtime_ns // 1_000_000
            except (FileNotFoundError, NotADirectoryError):
                return None

    def write(self, path: str, content: bytes | memoryview) -> None:
        with self._translated("write", path):
            target = self._root / path
            self._make_folder(target.parent)
            _write(target, content)
            _fsync(target.parent)

    def create(self, path: str, content: bytes) -> bool:
        with self._translated("write", path), self._staged(path, content) as staged:
            try:
                os.link(staged, self._root / path)
            except FileExistsError:
                return False
            return True

    def replace(self, path: str, content: bytes) -> None:
        with self._translated("write", path):
            self._replace(path, content)

    def settle(self, path: str) -> None:
        with self._translated("make durable", path):
            target = self._root / path
            if target.stat().st_nlink == 1:
                _fsync(target)
                _fsync(target.parent)
                return
            self._write_again(path)

    def write_again(self, path: str) -> None:
        with self._translated("make durable", path):
            self._write_again(path)

    def share(self, names: Mapping[str, str]) -> None:
        folders: set[Path] = set()
        for path, other in names.items():
            with self._translated("write", other):
                folder = (self._root / other).parent
                if folder not in folders:
                    self._make_folder(folder)
                    folders.add(folder)
                try:
                    os.link(self._root / path, self._root / other)
                except FileNotFoundError:
                    continue
                except FileExistsError:  # by a process that may have failed to make it durable
                    with suppress(FileNotFoundError):
                        self._write_again(other)
        for folder in folders:
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

    def _replace(self, path: str, content: bytes) -> None:
        with self._staged(path, content) as staged, staged_path(staged) as second:
            os.link(staged, second)  # which takes the place, so that the file keeps its other name
            second.replace(self._root / path)

    def _write_again(self, path: str) -> None:
        self._replace(path, (self._root / path).read_bytes())

    @contextmanager
    def _staged(self, path: str, content: bytes) -> Iterator[Path]:
        """Write a durable file beside the target, to be linked to it; then make the folder durable.

        The name beside the target goes at the end. It stays if the folder cannot be made durable: that tells every
        process, this one too, that the file at its target is not known to be.
        """
        target = self._root / path
        self._make_folder(target.parent)
        staged = staged_name(target)
        _write(staged, content)
        try:
            yield staged
        except BaseException:
            _remove(staged)
            raise
        if staged.stat().st_nlink > 1:
            _fsync(target.parent)
        _remove(staged)

    def _make_folder(self, folder: Path) -> None:
        """Make a folder and those above it, durable up to the root of the storage, if this process has not done so.

        New folders whose names cannot be made durable are removed again, so that the next attempt makes others.
        """
        if folder in self._durable and folder.is_dir():
            return
        wanted = [folder, *(above for above in folder.parents if above.is_relative_to(self._root))]
        made = []
        missing = folder
        while not missing.is_dir():
            made.append(missing)
            missing = missing.parent
        for path in reversed(made):
            path.mkdir(exist_ok=True)
        changed = {path.parent for path in made} | {path.parent for path in wanted if path != self._root}
        try:
            for above in sorted(changed):
                _fsync(above)
        except BaseException:
            for path in made:
                with suppress(OSError):
                    path.rmdir()
            raise
        self._durable.update(wanted)

    @contextmanager
    def _translated(self, verb: str, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            kind = _LOCAL_ERRORS.get(error.errno or 0, StoreUnreachableError)
            raise kind(f"{self.uri}/{path}".rstrip("/"), verb, error.strerror or str(error)) from error


_KEPT = {errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY}
"""Errors of a folder that is not there to be removed, or is not empty."""
_LOCAL_ERRORS = {
    errno.EROFS: StoreReadOnlyError,
    errno.EACCES: StoreReadOnlyError,
    errno.EPERM: StoreReadOnlyError,
    errno.ENOTDIR: NotAFolderError,
    errno.ENAMETOOLONG: NotAFolderError,
    errno.ELOOP: NotAFolderError,
    errno.ENOSPC: StoreFullError,
    errno.EDQUOT: StoreFullError,
}


def _write(target: Path, content: bytes | memoryview) -> None:
    """Write a new file, durable but for its folder; leave none if that fails."""
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


def _remove(path: Path) -> None:
    """Remove a name that nobody needs; a leftover is swept with others."""
    with suppress(OSError):
        path.unlink(missing_ok=True)
