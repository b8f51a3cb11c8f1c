"""What the engine knows of a project: its name, its versions and the types of each.

Never imports a project; a project hands itself over as a value.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, total_ordering
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Protocol

from catalog.errors import (
    GeneratedCodeError,
    StoreTooNewError,
    StoreTooOldError,
    UnfrozenTypesError,
    UnknownProjectError,
)

if TYPE_CHECKING:
    from catalog.actions import Action
    from catalog.builtin.declared import Declared
    from catalog.generator.samples import Samples
    from catalog.stash.constraints import Constraints
    from catalog.stash.transaction import Transaction


class MigrationModule(Protocol):
    """A module `vN_to_vM`: what it does, declared."""

    __name__: str
    __doc__: str | None

    def upgrade(self) -> list[Action]: ...


@total_ordering
@dataclass(frozen=True, slots=True)
class Build:
    """A build's version, for the guards of a dispatch: `case 17 if build < Build(0, 50)`."""

    major: int
    minor: int = 0
    patch: int = 0

    @classmethod
    def parse(cls, text: str) -> Build:
        found = re.match(r"(\d+)\.(\d+)\.(\d+)", text)
        if found is None:
            raise ValueError(f"{text!r} is no build version such as 1.2.3")
        return cls(*(int(part) for part in found.groups()))

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"

    def __lt__(self, other: Build) -> bool:
        return (self.major, self.minor, self.patch) < (other.major, other.minor, other.patch)


@dataclass(frozen=True, slots=True)
class Privacy:
    """Which texts and bytes of a project's rows an anonymised copy may show; what is not named here it replaces.

    Paths are those of all versions, such as `item.value.create_sql`.
    """

    private: frozenset[str] = frozenset()
    harmless: frozenset[str] = frozenset()
    """What says nothing of whoever runs the environment, or what the software looks up."""
    words: frozenset[str] = frozenset()
    """Texts that the software itself writes: kept wherever one stands alone."""
    ordered: Mapping[str, str] = field(default_factory=dict)
    """Lists that are in the order of a member that may be replaced, such as `cluster.value.spark_conf`: `name`."""


@dataclass(frozen=True, slots=True)
class Project:
    name: str
    minimum: int
    first_proto: int
    """The first version whose rows are protobuf; earlier ones have types of their own."""
    current: int
    build: Build
    migration_from: Callable[[int, Build], MigrationModule | None]
    constraints: Constraints
    """Of every version, each since when it holds."""
    initialize: Callable[[Transaction], None]
    """Seeds an empty store."""
    samples: Samples | None = None
    """What made-up rows of a version are like beyond its types and constraints."""
    builtins: Callable[[], Declared] | None = None
    """The builtin collections; none: the project has none, and needs no rows about them."""
    privacy: Privacy = field(default_factory=Privacy)
    """What an anonymised copy replaces."""

    def types(self, version: int) -> ModuleType:
        """The frozen types of a version, as generated code."""
        self.check_version(version)
        return load_generated(self.name, f"objects_v{version}", f"proto/old/objects_v{version}.proto")

    @property
    def current_types(self) -> ModuleType:
        """The types that this build reads and writes, as generated code."""
        return load_generated(self.name, "objects", "proto/objects.proto")

    def require_frozen_types(self) -> None:
        """Refuse to write rows of types that were changed after the current version was frozen."""
        if self.current_types.DESCRIPTOR_HASH != self.types(self.current).DESCRIPTOR_HASH:
            raise UnfrozenTypesError(self.name, self.current)

    def check_version(self, version: int) -> None:
        """Refuse a store that is too old or too new, before anything runs."""
        if version < self.minimum:
            raise StoreTooOldError(version, self.minimum)
        if version > self.current:
            raise StoreTooNewError(version, self.current)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a store is, and whose."""

    uri: str
    options: Mapping[str, str]
    project: Project


@cache
def load_project(name: str) -> Project:
    """A project by its name: its package is there under the same, on a driver and on every executor."""
    try:
        project: Project = import_module(f"{name}.upgrade").PROJECT
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise UnknownProjectError(name, str(error)) from error
    return project


def load_generated(project: str, stem: str, proto: str) -> ModuleType:
    module = f"{project}.generated.{stem}_pb2"
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise GeneratedCodeError(module, proto) from error


def require_fresh(module_file: str, proto: str, text_hash: str) -> None:
    """Called by generated modules as they load: refuse if the proto beside them has changed since.

    Installed packages have no proto beside them, and nothing there can be stale.
    """
    module = Path(module_file)
    source = module.parents[2] / proto
    if source.is_file() and hashlib.sha256(source.read_bytes()).hexdigest() != text_hash:
        raise GeneratedCodeError(module.stem, proto)
