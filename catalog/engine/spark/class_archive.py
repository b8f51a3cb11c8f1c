"""The archive of the Java classes that Spark loads (AppCDS), with which Java starts some seconds sooner.

It is in a folder of the user's cache. Its name has the versions of Java and Spark, a hash of whatever makes it unusable
when it changes, and a checksum of its content: Java may crash if it is given a damaged one. `archive_maker` makes it,
in a process of its own after a session that had none. A session starts without it whenever something is wrong: nothing
here raises or prints. Loads no pyspark.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import sys
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Final, Self

from catalog.engine.base.disk import free_bytes
from catalog.engine.spark.java import Java, find_java

OFF: Final = "off"
VARIABLE: Final = "CATALOG_CLASS_ARCHIVE"
RETRY_S: Final = 3600.0
"""After an attempt to make it that did not succeed, there is none for so long."""
ROOM_BYTES: Final = 512 << 20
"""Free space without which it is not made: about three times its size."""
_KEPT_MAX = 3
"""Archives of several versions of Java or Spark that are kept: those used last."""
_TOUCHED_S = 86_400.0
_MAKER = "catalog.engine.spark.archive_maker"
_ENDING = ".jsa"
_ATTEMPT = ".attempt"
_OF_JAVA = ("release", "lib/modules", "lib/server/libjvm.so")


def archive_folder(setting: str | Path | None, variables: Mapping[str, str]) -> Path | None:
    """Return the folder of archives by the setting, the variable, or in the user's cache; none if it is off."""
    named = setting if setting is not None else variables.get(VARIABLE) or None
    if named is not None:
        return None if str(named) == OFF else Path(named).absolute()
    cache = variables.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(cache):  # noqa: PTH117 - a text, and one that is not absolute counts for nothing
        home = variables.get("HOME", "")
        if not os.path.isabs(home):  # noqa: PTH117
            return None
        cache = os.path.join(home, ".cache")  # noqa: PTH118
    return Path(cache, "catalog")


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """The archive for one Java and one Spark, there or not."""

    folder: Path
    name: str
    """Without the checksum."""

    @classmethod
    def of(cls, folder: Path | None, variables: Mapping[str, str]) -> Self | None:
        """Return the archive for the Java and the Spark of this machine; none if they cannot have one."""
        java, home = find_java(variables), spark_home(variables)
        if folder is None or java is None or not java.is_there or home is None or class_folder(variables) is not None:
            return None
        try:
            key = _key(java, home)
        except OSError:
            return None
        versions = (f"spark-{_spark_version()}", f"java-{java.version or 'unknown'}", key)
        return cls(folder, re.sub(r"[^\w.+-]", "_", "-".join(versions)))

    def find(self) -> Path | None:
        """Return the file if it is there, whole, and written by nobody but this user or root."""
        try:
            if not _is_trusted(self.folder.stat()):
                return None
            for path in filter(lambda own: _is_trusted(own.stat()), self._files()):
                if path.name == self.file_name(path):
                    _touch(path)
                    return path
                self.discard(path)  # it is damaged, and another can be made
        except OSError:
            pass
        return None

    def file_name(self, content: Path) -> str:
        return f"{self.name}-{_checksum(content):08x}{_ENDING}"

    def discard(self, path: Path) -> None:
        with suppress(OSError):
            path.unlink()

    def obstacle(self) -> str | None:
        """Return the reason why no archive can be made now; none if nothing is in the way."""
        try:
            parent = next(own for own in (self.folder, *self.folder.parents) if own.exists())
            if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
                return f"{parent} cannot be written to"
            if self.folder.exists() and not _is_trusted(self.folder.stat()):
                return f"{self.folder} belongs to another user, or others may write to it"
            if (free := free_bytes(parent)) < ROOM_BYTES:
                return f"{free >> 20} MiB are free in {parent}, and {ROOM_BYTES >> 20} are needed to make one"
        except OSError as error:
            return f"{self.folder} cannot be used: {error.strerror}"
        if (began := self._attempted()) is not None and time.time() - began < RETRY_S:
            return f"it is being made, or could not be made, since {time.strftime('%H:%M', time.localtime(began))}"
        return None

    def make_later(self, environment: Mapping[str, str]) -> None:
        """Make the archive in a process of its own, for which nobody waits, with these variables besides."""
        if self.find() is not None or self.obstacle() is not None or not self._begin_attempt():
            return
        command = [sys.executable, "-m", _MAKER, str(self.folder)]
        nothing = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
        with suppress(OSError, NotImplementedError):
            os.posix_spawn(sys.executable, command, {**os.environ, **environment}, file_actions=nothing, setsid=True)

    def end_attempt(self) -> None:
        """Forget an attempt that succeeded: another is made as soon as the archive is gone."""
        self.discard(self.folder / f"{self.name}{_ATTEMPT}")

    def sweep(self) -> None:
        """Remove archives that were not used for long, earlier ones of the same name, and what died unfinished."""
        with suppress(OSError):
            others = sorted(self.folder.glob(f"*{_ENDING}"), key=lambda path: path.stat().st_mtime, reverse=True)
            for path in others[_KEPT_MAX:]:
                self.discard(path)
            for path in self.folder.glob(f".*{_ENDING}.*.tmp"):
                if time.time() - path.stat().st_mtime > RETRY_S:
                    self.discard(path)

    def _files(self) -> Iterator[Path]:
        wanted = re.compile(re.escape(self.name) + r"-[0-9a-f]{8}" + re.escape(_ENDING))
        return (path for path in sorted(self.folder.iterdir()) if wanted.fullmatch(path.name))

    def _attempted(self) -> float | None:
        try:
            return (self.folder / f"{self.name}{_ATTEMPT}").stat().st_mtime
        except OSError:
            return None

    def _begin_attempt(self) -> bool:
        """Mark an attempt; tell if this process was the one that did. The mark stays until one succeeds."""
        mark = self.folder / f"{self.name}{_ATTEMPT}"
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self._attempted() is not None:  # too old to count
                self.discard(mark)
            mark.touch(mode=0o600, exist_ok=False)
        except OSError:
            return False
        return True


def spark_home(variables: Mapping[str, str]) -> Path | None:
    """Return the folder of Spark: that of SPARK_HOME, else of the installed package."""
    if home := variables.get("SPARK_HOME"):
        return Path(home)
    found = find_spec("pyspark")
    return None if found is None or found.origin is None else Path(found.origin).parent


def class_folder(variables: Mapping[str, str]) -> Path | None:
    """Return the folder of Spark's settings if it has files: Java looks for classes in it, and uses no archive then."""
    home = spark_home(variables)
    folder = Path(variables.get("SPARK_CONF_DIR") or (home or Path()) / "conf")
    try:
        return folder if any(folder.iterdir()) else None
    except OSError:
        return None


def _key(java: Java, home: Path) -> str:
    """Return a hash of all that Java compares when it opens an archive."""
    beside = java.program.resolve().parents[1]
    files = [beside / name for name in _OF_JAVA] + sorted((home / "jars").iterdir())
    seen = hashlib.sha256()
    for path in files:
        with suppress(FileNotFoundError):  # not every Java has each
            found = path.stat()
            seen.update(f"{path}\0{found.st_size}\0{found.st_mtime_ns}\n".encode())
    return seen.hexdigest()[:12]


def _spark_version() -> str:
    try:
        return version("pyspark")
    except PackageNotFoundError:
        return "unknown"


def _checksum(path: Path) -> int:
    with path.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return 0
        with mmap(file.fileno(), 0, access=ACCESS_READ) as content:
            return zlib.crc32(content)


def _is_trusted(found: os.stat_result) -> bool:
    """Tell if nobody but this user and root can have written it: its code runs with the rights of this user."""
    return found.st_uid in {0, os.geteuid()} and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _touch(path: Path) -> None:
    """Mark an archive as used, so that it is kept; once a day is enough."""
    with suppress(OSError):
        if time.time() - path.stat().st_mtime > _TOUCHED_S:
            os.utime(path)
