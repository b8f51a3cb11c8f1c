"""Digests of what a log holds: one of a commit, and one of the state that it leads to.

That of a commit is over all that is read from its entry, so a damaged entry is known as such whenever it is read. That
of a state is the sum of the digests of its files and its app transactions: a commit changes it by its own part alone,
and a checkpoint, or an entry that is lost, is noticed by every entry after it.
"""

from __future__ import annotations

import json
from functools import lru_cache
from hashlib import blake2b

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
_BYTES = 16
_MODULUS = 1 << 8 * _BYTES
_PARTS = 1024
"""Parts whose digests are remembered: a commit needs those of its own for itself, its state and the next one."""


@lru_cache(_PARTS, typed=True)  # 1 and True are equal, and not the same in an entry
def part_digest(*parts: str | int) -> int:
    """Return the digest of one part of a state."""
    return int.from_bytes(_hash("\0".join(map(str, parts)).encode()).digest())


def moved(digest: int, added: int, removed: int) -> int:
    """Return the digest of a state after parts with these sums of digests were added and removed."""
    return (digest + added - removed) % _MODULUS


def state_text(digest: int) -> str:
    """Return the digest of a state as entries carry it."""
    return f"{digest:0{2 * _BYTES}x}"


def commit_digest(content: object) -> str:
    """Return the digest of a commit, given as plain data."""
    return _hash(_encode(content).encode()).hexdigest()


def _hash(content: bytes) -> blake2b:
    return blake2b(content, digest_size=_BYTES)
