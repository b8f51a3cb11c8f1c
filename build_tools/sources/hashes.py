"""The file `proto/hashes.json`: the hash of each frozen file, and the release that froze it.

The file only grows: it keeps the entries of retired versions, every field number that a retired snapshot used, and
every release with the instructions about builtins that were new in it.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field, replace
from typing import Any

from .builtin_instructions import MECHANISMS, DeclaredInstruction

_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_RELEASE = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")

Numbers = dict[str, dict[int, str]]
"""Per message or enum, each number with its last name."""


@dataclass(frozen=True, slots=True)
class HashEntry:
    hash: str
    released: str | None = None
    id: str | None = None
    """Given to a migration when it is made, to distinguish two branches that made the same version."""
    restyled: tuple[str, ...] = ()
    """Earlier hashes of a released migration whose syntax tree is the same."""


@dataclass(frozen=True, slots=True)
class Hashes:
    snapshots: dict[int, HashEntry] = field(default_factory=dict)
    migrations: dict[str, HashEntry] = field(default_factory=dict)
    retired_numbers: Numbers = field(default_factory=dict)
    releases: dict[str, tuple[DeclaredInstruction, ...]] = field(default_factory=dict)
    """Each release, with the instructions that were new in it."""

    def with_snapshot(self, version: int, entry: HashEntry) -> Hashes:
        return replace(self, snapshots={**self.snapshots, version: entry})

    def with_migration(self, name: str, entry: HashEntry) -> Hashes:
        return replace(self, migrations={**self.migrations, name: entry})

    @property
    def released(self) -> set[str]:
        """Return every release in the file; early ones are recorded only in the entries that they froze."""
        entries = (*self.snapshots.values(), *self.migrations.values())
        return {entry.released for entry in entries if entry.released is not None} | self.releases.keys()

    def instructions_of(self, release: str) -> frozenset[DeclaredInstruction]:
        """Return all instructions of a release, including those that it could already drop."""
        upto = (one for one in self.releases if release_order(one) <= release_order(release))
        return frozenset(instruction for one in upto for instruction in self.releases[one])


def release_order(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))


def is_release(text: str) -> bool:
    return _RELEASE.fullmatch(text) is not None


def source_hash(source: bytes) -> str:
    """Return the hash of a module's source, independent of line ends."""
    normal = source.replace(b"\r\n", b"\n")
    return f"sha256:{hashlib.sha256(normal).hexdigest()}"


def parse(text: str) -> Hashes:
    """Read the file strictly; a ValueError describes the mistake."""
    try:
        loaded = json.loads(text, object_pairs_hook=_without_duplicates)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    document = _expect_keys(
        loaded, "the file", required={"snapshots", "migrations"}, optional={"retired_numbers", "releases"}
    )
    snapshots = {_version(key): _entry(f"snapshot {key}", value) for key, value in _items(document, "snapshots")}
    migrations = {key: _entry(key, value) for key, value in _items(document, "migrations")}
    retired = dict(_items(document, "retired_numbers"))
    numbers = {part: {_number(number): str(name) for number, name in _items(retired, part)} for part in retired}
    releases = {_release(key): _frozen(key, value) for key, value in _items(document, "releases")}
    return Hashes(snapshots, migrations, numbers, releases)


def dump(hashes: Hashes) -> str:
    document: dict[str, Any] = {
        "snapshots": {str(version): _plain(entry) for version, entry in sorted(hashes.snapshots.items())},
        "migrations": {name: _plain(entry) for name, entry in sorted(hashes.migrations.items(), key=_by_version)},
    }
    if hashes.retired_numbers:
        document["retired_numbers"] = {
            message: {str(number): name for number, name in sorted(named.items())}
            for message, named in sorted(hashes.retired_numbers.items())
        }
    if hashes.releases:
        document["releases"] = {
            release: dump_release(hashes.releases[release]) for release in sorted(hashes.releases, key=release_order)
        }
    return json.dumps(document, indent=2) + "\n"


def dump_release(instructions: tuple[DeclaredInstruction, ...]) -> list[str]:
    return [f"{one.build} {one.name} {one.mechanism}" for one in instructions]


def from_version(name: str) -> int:
    """Return the version that a migration of this name starts from; 0 if the name has none."""
    return int(re.sub(r"\D.*", "", name[1:]) or 0)


def _by_version(item: tuple[str, HashEntry]) -> tuple[int, str]:
    return from_version(item[0]), item[0]


def _plain(entry: HashEntry) -> dict[str, Any]:
    plain: dict[str, Any] = {"hash": entry.hash, "released": entry.released}
    if entry.id is not None:
        plain["id"] = entry.id
    if entry.restyled:
        plain["restyled"] = list(entry.restyled)
    return plain


def _entry(where: str, document: object) -> HashEntry:
    value = _expect_keys(document, where, required={"hash", "released"}, optional={"id", "restyled"})
    digest, released, restyled = value["hash"], value["released"], value.get("restyled", [])
    if not isinstance(digest, str) or not _HASH.fullmatch(digest):
        raise ValueError(f'{where}: "hash" must be "sha256:" and 64 hex digits')
    if released is not None and not (isinstance(released, str) and is_release(released)):
        raise ValueError(f'{where}: "released" must be null or a release such as "0.1.0"')
    if not isinstance(restyled, list) or not all(isinstance(old, str) and _HASH.fullmatch(old) for old in restyled):
        raise ValueError(f'{where}: "restyled" must be a list of hashes')
    identity = value.get("id")
    if identity is not None and not isinstance(identity, str):
        raise ValueError(f'{where}: "id" must be a string')
    return HashEntry(digest, released, identity, tuple(restyled))


def _release(text: str) -> str:
    if not is_release(text):
        raise ValueError(f'"{text}" is not a release such as "0.1.0"')
    return text


def _frozen(release: str, value: object) -> tuple[DeclaredInstruction, ...]:
    found = []
    for text in value if isinstance(value, list) else [None]:
        build, _, rest = str(text).partition(" ")
        name, _, mechanism = rest.rpartition(" ")
        if not (isinstance(text, str) and is_release(build) and name and mechanism in MECHANISMS):
            example = "0.3.0 catalog.audit_events EVOLUTION"
            raise ValueError(f'release {release}: it must be a list of instructions such as "{example}"')
        found.append(DeclaredInstruction(build, name, mechanism))
    return tuple(found)


def _items(document: dict[str, Any], key: str) -> list[tuple[str, Any]]:
    value = document.get(key, {})
    if not isinstance(value, dict):
        raise ValueError(f'"{key}" must be an object')  # noqa: TRY004 - one kind of error for a malformed file
    return list(value.items())


def _version(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f'"{text}" is not a number')
    return int(text)


def _number(text: str) -> int:
    """Return the number of a field or of an enum value, which may be negative."""
    return -_version(text[1:]) if text.startswith("-") else _version(text)


def _expect_keys(value: object, where: str, required: set[str], optional: set[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{where} must be an object")  # noqa: TRY004
    if missing := required - value.keys():
        raise ValueError(f"{where} lacks {', '.join(sorted(missing))}")
    if unknown := value.keys() - required - optional:
        raise ValueError(f"{where} has unknown {', '.join(sorted(unknown))}")
    return value


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        raise ValueError(f"{', '.join(twice)} occurs twice: two branches recorded it")
    return document
