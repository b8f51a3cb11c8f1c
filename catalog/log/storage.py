"""Bytes at a place: a local directory or a prefix of an object store.

Whatever is written is durable when a method returns, and never seen by halves. Foreign errors are translated here:
callers see only ours.
"""

from __future__ import annotations

import errno
import os
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import unquote, urlsplit

from catalog.errors import StoreFullError, StoreReadOnlyError, StoreUnreachableError
from catalog.log.protocol import StoredFile

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


def open_storage(uri: str, options: Mapping[str, str]) -> Storage:
    parts = urlsplit(uri)
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
            return "nothing is there" if above.is_dir() else f"{above} is a file"

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


_LOCAL_ERRORS = {
    errno.EROFS: StoreReadOnlyError,
    errno.EACCES: StoreReadOnlyError,
    errno.EPERM: StoreReadOnlyError,
    errno.ENOSPC: StoreFullError,
    errno.EDQUOT: StoreFullError,
}


class ObjectStorage:
    """Any object store that obstore knows; options have the names that delta-rs gives them."""

    remote = True

    def __init__(self, uri: str, options: Mapping[str, str]) -> None:
        import obstore  # noqa: PLC0415 - only object stores need it
        from obstore import exceptions, store  # noqa: PLC0415

        self.uri = uri.rstrip("/")
        self._obstore: Any = obstore
        open_store: Any = store.from_url
        self._errors = (OSError, ValueError, exceptions.BaseError)
        self._missing = (FileNotFoundError, exceptions.NotFoundError)
        self._taken = (FileExistsError, exceptions.AlreadyExistsError)
        with self._translated("open", ""):
            config, client, retry = _split_options(options)
            self._store: Any = open_store(self.uri, config=config, client_options=client, retry_config=retry)

    def found(self) -> str | None:
        with self._translated("list", ""):
            return None if any(self._obstore.list(self._store, chunk_size=1)) else "nothing is there"

    def prepare(self, folder: str) -> None:
        """An object store has no folders."""

    def read(self, path: str) -> bytes | None:
        with self._translated("read", path):
            try:
                return bytes(self._obstore.get(self._store, path).bytes())
            except self._missing:
                return None

    def read_range(self, path: str, start: int, end: int) -> bytes | None:
        with self._translated("read", path):
            try:
                return bytes(self._obstore.get_range(self._store, path, start=start, end=end))
            except self._missing:
                return None

    def size(self, path: str) -> int | None:
        with self._translated("look at", path):
            try:
                return int(self._obstore.head(self._store, path)["size"])
            except self._missing:
                return None

    def write(self, path: str, content: bytes | memoryview) -> None:
        with self._translated("write", path):
            self._obstore.put(self._store, path, bytes(content))

    def create(self, path: str, content: bytes) -> bool:
        with self._translated("write", path):
            try:
                self._obstore.put(self._store, path, content, mode="create")
            except self._taken:
                return False
            return True

    def replace(self, path: str, content: bytes) -> None:
        self.write(path, content)

    def settle(self, path: str) -> None:
        """An object store answers only when the object is durable."""

    def share(self, names: Mapping[str, str]) -> None:
        for path, other in names.items():
            content = self.read(path)
            if content is not None:
                self.create(other, content)

    def paths(self, folder: str, after: str = "") -> Iterator[str]:
        return (entry.path for entry in self._list(folder, after))

    def entries(self, *besides: str) -> Iterator[StoredFile]:
        folders = tuple(f"{folder}/" for folder in besides)
        return (entry for entry in self._list("", "") if not entry.path.startswith(folders))

    def _list(self, folder: str, after: str) -> Iterator[StoredFile]:
        with self._translated("list", folder):
            for chunk in self._obstore.list(self._store, folder or None, offset=after or None, chunk_size=1000):
                for found in chunk:
                    yield StoredFile(found["path"], found["size"], int(found["last_modified"].timestamp() * 1000))

    def delete(self, path: str) -> None:
        with self._translated("remove", path):
            try:
                self._obstore.delete(self._store, path)
            except self._missing:
                return

    @contextmanager
    def _translated(self, verb: str, path: str) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            raise StoreUnreachableError(f"{self.uri}/{path}".rstrip("/"), verb, str(error)) from error
        except BaseException as error:
            if not is_panic(error):
                raise
            raise StoreUnreachableError(f"{self.uri}/{path}".rstrip("/"), verb, str(error)) from error


CA_FILE = "aws_ca_bundle"
_CLIENT_OPTIONS = {"allow_http", "allow_invalid_certificates", "connect_timeout", "proxy_url", "timeout", "user_agent"}
_RETRY_OPTIONS = {"max_retries", "retry_timeout"}


def _split_options(options: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Storage options as the store's own, as those of its client, and as those of its retries."""
    named = {name.lower(): value for name, value in options.items()}
    client: dict[str, Any] = {name: named.pop(name) for name in _CLIENT_OPTIONS & named.keys()}
    allow_http = named.pop("aws_allow_http", os.environ.get("AWS_ALLOW_HTTP", "false"))
    client.setdefault("allow_http", allow_http.lower() in {"true", "1"})
    ca_file = named.pop(CA_FILE, os.environ.get("AWS_CA_BUNDLE") or os.environ.get("SSL_CERT_FILE"))
    if ca_file:
        client["root_certificate"] = Path(ca_file).read_bytes()
    retry: dict[str, Any] = {}
    if "max_retries" in named:
        retry["max_retries"] = int(named["max_retries"])
    if "retry_timeout" in named:
        retry["retry_timeout"] = _duration(named["retry_timeout"])
    return {name: value for name, value in named.items() if name not in _RETRY_OPTIONS}, client, retry


def _duration(text: str) -> timedelta:
    found = re.fullmatch(r"(\d+)\s*(ms|s|m)", text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no duration such as 500ms, 30s or 2m")
    unit = {"ms": "milliseconds", "s": "seconds", "m": "minutes"}[found[2]]
    return timedelta(**{unit: int(found[1])})


def delta_options(options: Mapping[str, str]) -> dict[str, str]:
    """Storage options as delta-rs takes them.

    It knows no option for a certificate authority and reads `SSL_CERT_FILE` whenever it connects; so a store that names
    one sets that variable, for the whole process.
    """
    ca_file = next(
        (value for name, value in options.items() if name.lower() == CA_FILE), os.environ.get("AWS_CA_BUNDLE")
    )
    if ca_file:
        os.environ["SSL_CERT_FILE"] = ca_file
    return {name: value for name, value in options.items() if name.lower() != CA_FILE}


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
