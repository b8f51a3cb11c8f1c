"""A prefix of an object store, and the storage options that lead to it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from catalog.engine.base.duration import parse_seconds
from catalog.engine.base.process import ProcessClient
from catalog.engine.base.rust_panic import is_panic
from catalog.engine.storage.base import NOTHING, StoredFile
from catalog.errors import MissingClientError, NoAddressError, StoreUnreachableError
from catalog.errors.redaction import redact, redacted_cause, secrets_of

_CLIENT: Final = ProcessClient()


class ObjectStorage:
    """A prefix of any object store that obstore knows; options have the names that delta-rs gives them."""

    remote = True

    def __init__(self, uri: str, options: Mapping[str, str]) -> None:
        self.uri = uri.rstrip("/")
        self._secrets = secrets_of(options, uri)
        named = {name.lower().removeprefix("aws_"): value for name, value in options.items()}
        self._server = named.get("endpoint_url") or named.get("endpoint") or os.environ.get("AWS_ENDPOINT_URL", "")
        try:
            import obstore  # noqa: PLC0415 - only object stores need it
            from obstore import exceptions, store  # noqa: PLC0415
        except ImportError as error:
            raise MissingClientError(self.uri, "open", "the client of object stores is not installed") from error

        self._obstore: Any = obstore
        open_store: Any = store.from_url
        self._errors = (OSError, ValueError, exceptions.BaseError)
        self._missing = (FileNotFoundError, exceptions.NotFoundError)
        self._taken = (FileExistsError, exceptions.AlreadyExistsError)
        with self._translated("open", ""):
            config, client, retry = _split_options(options)
            self._store: Any = open_store(self.uri, config=config, client_options=client, retry_config=retry)
        if type(self._store).__name__ in {"HTTPStore", "MemoryStore"}:
            raise NoAddressError(self.uri, "open", "no commit can be made at such an address")

    def server(self) -> str:
        return self._server.rstrip("/")

    def found(self) -> str | None:
        with self._translated("list", ""):
            return None if any(self._obstore.list(self._store, chunk_size=1)) else NOTHING

    def prepare(self, folder: str) -> None:
        """Do nothing: an object store has no folders."""

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

    def modified_ms(self, path: str) -> int | None:
        with self._translated("look at", path):
            try:
                return int(self._obstore.head(self._store, path)["last_modified"].timestamp() * 1000)
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
        """Do nothing: an object store answers only when the object is durable."""

    def write_again(self, path: str) -> None:
        """Do nothing, as above."""

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

    def remove_folder(self, folder: str) -> None:
        """Do nothing: an object store has no folders."""

    @contextmanager
    def _translated(self, verb: str, path: str) -> Iterator[None]:
        _CLIENT.require_own(self.uri)
        try:
            yield
        except self._errors as error:
            reason = redact(
                str(error).partition("\n\nDebug source:")[0], self._secrets
            )  # which follows in tens of lines
            kind = NoAddressError if "Unable to recognise URL" in reason else StoreUnreachableError
            raise kind(f"{self.uri}/{path}".rstrip("/"), verb, reason) from redacted_cause(error, self._secrets)
        except BaseException as error:
            if not is_panic(error):
                raise
            raise StoreUnreachableError(
                f"{self.uri}/{path}".rstrip("/"), verb, redact(str(error), self._secrets)
            ) from redacted_cause(error, self._secrets)


CA_FILE = "aws_ca_bundle"
_CLIENT_OPTIONS = {"allow_http", "allow_invalid_certificates", "connect_timeout", "proxy_url", "timeout", "user_agent"}
_RETRY_OPTIONS = {"max_retries", "retry_timeout"}


def _split_options(options: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Split storage options into those of the store, of its client, and of its retries."""
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
        retry["retry_timeout"] = timedelta(seconds=parse_seconds(named["retry_timeout"]))
    return {name: value for name, value in named.items() if name not in _RETRY_OPTIONS}, client, retry


def delta_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return storage options as delta-rs takes them.

    It knows no option for a certificate authority and reads `SSL_CERT_FILE` whenever it connects; so a store that names
    one sets that variable, for the whole process.
    """
    ca_file = next(
        (value for name, value in options.items() if name.lower() == CA_FILE), os.environ.get("AWS_CA_BUNDLE")
    )
    if ca_file:
        os.environ["SSL_CERT_FILE"] = ca_file
    return {name: value for name, value in options.items() if name.lower() != CA_FILE}
