"""`proto/hashes.json`: what each frozen file was when it was recorded, and which release froze it.

The file only ever grows: entries of retired versions stay, as do every field number that a retired snapshot used, and
every release with the instructions about builtins that it was the first to have.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field, replace
from typing import Any

from .instructions import MECHANISMS, Instruction

_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_RELEASE = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")

Numbers = dict[str, dict[int, str]]
"""Per message or enum, each number with the name it last stood for."""


@dataclass(frozen=True, slots=True)
class Entry:
    hash: str
    released: str | None = None
    id: str | None = None
    """Given to a migration when it is made, so that two branches that made the same version can be told apart."""
    restyled: tuple[str, ...] = ()
    """Earlier hashes of a released migration whose syntax tree is the same."""


@dataclass(frozen=True, slots=True)
class Hashes:
    snapshots: dict[int, Entry] = field(default_factory=dict)
    migrations: dict[str, Entry] = field(default_factory=dict)
    retired_numbers: Numbers = field(default_factory=dict)
    releases: dict[str, tuple[Instruction, ...]] = field(default_factory=dict)
    """Each release, with the instructions that it was the first to have."""

    def with_snapshot(self, version: int, entry: Entry) -> Hashes:
        return replace(self, snapshots={**self.snapshots, version: entry})

    def with_migration(self, name: str, entry: Entry) -> Hashes:
        return replace(self, migrations={**self.migrations, name: entry})

    @property
    def released(self) -> set[str]:
        """Every release that the file knows of; earlier ones stand in the entries that they froze, and nowhere else."""
        entries = (*self.snapshots.values(), *self.migrations.values())
        return {entry.released for entry in entries if entry.released is not None} | self.releases.keys()

    def instructions_of(self, release: str) -> frozenset[Instruction]:
        """All that a release had, or had once and could let go."""
        upto = (one for one in self.releases if release_order(one) <= release_order(release))
        return frozenset(instruction for one in upto for instruction in self.releases[one])


def release_order(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))


def is_release(text: str) -> bool:
    return _RELEASE.fullmatch(text) is not None


def source_hash(source: bytes) -> str:
    """The hash of a module's source; line ends do not count."""
    normal = source.replace(b"\r\n", b"\n")
    return f"sha256:{hashlib.sha256(normal).hexdigest()}"


def parse(text: str) -> Hashes:
    """Read the file strictly; a ValueError says what is wrong with it."""
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


def dump_release(instructions: tuple[Instruction, ...]) -> list[str]:
    return [f"{one.build} {one.name} {one.mechanism}" for one in instructions]


def from_version(name: str) -> int:
    """The version that a migration of this name starts from; 0 if the name tells none."""
    return int(re.sub(r"\D.*", "", name[1:]) or 0)


def _by_version(item: tuple[str, Entry]) -> tuple[int, str]:
    return from_version(item[0]), item[0]


def _plain(entry: Entry) -> dict[str, Any]:
    plain: dict[str, Any] = {"hash": entry.hash, "released": entry.released}
    if entry.id is not None:
        plain["id"] = entry.id
    if entry.restyled:
        plain["restyled"] = list(entry.restyled)
    return plain


def _entry(where: str, document: object) -> Entry:
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
    return Entry(digest, released, identity, tuple(restyled))


def _release(text: str) -> str:
    if not is_release(text):
        raise ValueError(f'"{text}" is no release such as "0.1.0"')
    return text


def _frozen(release: str, value: object) -> tuple[Instruction, ...]:
    found = []
    for text in value if isinstance(value, list) else [None]:
        build, _, rest = str(text).partition(" ")
        name, _, mechanism = rest.rpartition(" ")
        if not (isinstance(text, str) and is_release(build) and name and mechanism in MECHANISMS):
            example = "0.3.0 catalog.audit_events EVOLUTION"
            raise ValueError(f'release {release}: it must be a list of instructions such as "{example}"')
        found.append(Instruction(build, name, mechanism))
    return tuple(found)


def _items(document: dict[str, Any], key: str) -> list[tuple[str, Any]]:
    value = document.get(key, {})
    if not isinstance(value, dict):
        raise ValueError(f'"{key}" must be an object')  # noqa: TRY004 - one kind of error for a malformed file
    return list(value.items())


def _version(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f'"{text}" is no number')
    return int(text)


def _number(text: str) -> int:
    """A field's number, or an enum value's, which may be negative."""
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
        raise ValueError(f"{', '.join(twice)} stands twice: two branches recorded it")
    return document
