"""A disk whose syncs can fail and whose power can be cut, over a real folder.

Keeps what is on the disk: the content of each file and the names of each folder, as of their last successful sync. A
sync that fails drops what it should have written, as Linux does: the next one succeeds, and writes only what changed
since.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

import pytest

Names = dict[str, int]
"""The names of a folder, each with its inode."""


@dataclass
class Disk:
    root: Path
    fails: frozenset[int] = frozenset()
    """The syncs that fail, counted from 1."""
    count: int = 0
    synced: list[str] = field(default_factory=list)
    _content: dict[int, bytes] = field(default_factory=dict)
    _names: dict[int, Names] = field(default_factory=dict)
    _seen: dict[int, Names] = field(default_factory=dict)
    """Of each folder, its names at the last sync, failed or not."""
    _held: list[int] = field(default_factory=list)
    _lost: set[int] = field(default_factory=set)
    """Files whose content was dropped by a sync that failed."""

    def attach(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Take what is there as durable, and every sync from here on as one of this disk."""
        for folder, folders, files in os.walk(self.root):
            for name in files:
                file = Path(folder, name)
                self._content[file.stat().st_ino] = file.read_bytes()
            self._keep(Path(folder).stat().st_ino, {name: _inode(Path(folder, name)) for name in (*folders, *files)})
        self._keep(self.root.parent.stat().st_ino, {self.root.name: self.root.stat().st_ino})
        monkeypatch.setattr(os, "fsync", self.fsync)

    def fsync(self, handle: int) -> None:
        path, status = Path(f"/proc/self/fd/{handle}").readlink(), os.fstat(handle)
        self.count += 1
        self.synced.append(path.name)
        failed = self.count in self.fails
        if stat.S_ISDIR(status.st_mode):
            self._sync_folder(path, status.st_ino, failed=failed)
        elif failed:
            self._lost.add(status.st_ino)
        elif status.st_ino not in self._lost:
            self._content[status.st_ino] = path.read_bytes()
        if failed:  # and no later file has the number of one of these
            self._held += [
                os.dup(handle),
                *(os.open(f, os.O_RDONLY) for f in (path.iterdir() if path.is_dir() else ())),
            ]
            raise OSError(errno.EIO, "Input/output error")

    def forget(self, folder: Path, name: str) -> None:
        """Lose a name, as a sync of its folder that failed does: the next sync does not write it."""
        self._names[_inode(folder)].pop(name)

    def cut(self) -> None:
        """Leave in the folder what a power cut leaves: names that were synced, and zeros for what was not."""
        for handle in self._held:
            os.close(handle)
        self._held.clear()
        self._restore(self.root, self._names.get(self.root.stat().st_ino, {}))

    def _restore(self, folder: Path, names: Names) -> None:
        present = {path.name: path for path in folder.iterdir()}
        inodes = {path.stat().st_ino: path for path in self.root.rglob("*")}
        for name, path in present.items():
            if names.get(name) != path.stat().st_ino and path.is_file():
                path.unlink()
            elif name not in names:
                _remove(path)
        for name, inode in names.items():
            path = folder / name
            if path.is_dir():
                self._restore(path, self._names.get(inode, {}))
            elif inode in self._content or inode in inodes:
                size = path.stat().st_size if path.exists() else 0
                path.unlink(missing_ok=True)
                path.write_bytes(self._content.get(inode, bytes(size)))

    def _sync_folder(self, path: Path, inode: int, *, failed: bool) -> None:
        now = {found.name: _inode(found) for found in path.iterdir()}
        seen = self._seen.get(inode, {})
        if not failed:
            kept = self._names.setdefault(inode, {})
            for name in (now.keys() | seen.keys()) - {n for n in now if seen.get(n) == now[n]}:
                kept.pop(name, None) if name not in now else kept.update({name: now[name]})
        self._seen[inode] = now

    def _keep(self, inode: int, names: Names) -> None:
        self._names[inode], self._seen[inode] = dict(names), dict(names)


def _inode(path: Path) -> int:
    return path.stat().st_ino


def _remove(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()
