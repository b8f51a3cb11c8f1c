"""The engine's view of a project: its name, its versions and the types of each.

Never imports a project; a project hands itself over as a value.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, total_ordering
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Protocol

from catalog.engine.base.gate_loader import gate_name
from catalog.engine.base.raised_text import error_text
from catalog.errors import (
    BrokenProjectError,
    CatalogError,
    GeneratedCodeError,
    OutdatedProjectError,
    StoreTooNewError,
    StoreTooOldError,
    UnfrozenTypesError,
    UnknownProjectError,
)

if TYPE_CHECKING:
    from catalog.actions import Action
    from catalog.engine.builtins.declaration import Declaration
    from catalog.engine.stash.constraints import Constraints
    from catalog.engine.stash.transaction import Transaction
    from catalog.tools.generator.sample import Samples


class MigrationModule(Protocol):
    """A module `vN_to_vM`, whose `upgrade` declares the actions of the step."""

    __name__: str
    __doc__: str | None

    def upgrade(self) -> list[Action]: ...


@total_ordering
@dataclass(frozen=True, slots=True)
class BuildVersion:
    """A build's version, for the guards of a dispatch: `case 17 if build < BuildVersion(0, 50)`."""

    major: int
    minor: int = 0
    patch: int = 0

    @classmethod
    def parse(cls, text: str) -> BuildVersion:
        found = re.match(r"(\d+)\.(\d+)\.(\d+)", text)
        if found is None:
            raise ValueError(f"{text!r} is no build version such as 1.2.3")
        return cls(*(int(part) for part in found.groups()))

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"

    def __lt__(self, other: BuildVersion) -> bool:
        return (self.major, self.minor, self.patch) < (other.major, other.minor, other.patch)


@dataclass(frozen=True, slots=True)
class Privacy:
    """The texts and bytes of a project's rows that an anonymised copy may show; all others are replaced.

    Paths are those of all versions, such as `item.value.create_sql`.
    """

    private: frozenset[str] = frozenset()
    harmless: frozenset[str] = frozenset()
    """Texts that reveal nothing about the environment, or that the software looks up."""
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
    build: BuildVersion
    migration_from: Callable[[int, BuildVersion], MigrationModule | None]
    constraints: Constraints
    """Of every version, each since when it holds."""
    initialize: Callable[[Transaction], None]
    """Seeds an empty store."""
    samples: Samples | None = None
    """The rules that generated rows of a version follow beyond its types and constraints."""
    builtins: Callable[[], Declaration] | None = None
    """The builtin collections; none: the project has none, and needs no rows about them."""
    privacy: Privacy = field(default_factory=Privacy)
    """The texts that an anonymised copy may show."""

    def types(self, version: int) -> ModuleType:
        """Return the frozen types of a version, as generated code."""
        self.check_version(version)
        return load_generated(self.name, f"objects_v{version}", f"proto/old/objects_v{version}.proto")

    @property
    def current_types(self) -> ModuleType:
        """Return the types that this build reads and writes, as generated code."""
        return load_generated(self.name, "objects", "proto/objects.proto")

    def types_hash(self, version: int) -> str:
        """Return the hash of the frozen types of a version."""
        found: str = self.types(version).DESCRIPTOR_HASH
        return found

    def has_types(self, version: int, types_hash: str) -> bool:
        """Tell if this build has these types for a version; those of the current one are mostly loaded already."""
        is_present = version == self.current and types_hash == self.current_types.DESCRIPTOR_HASH
        return is_present or types_hash == self.types_hash(version)

    def require_frozen_types(self) -> None:
        """Refuse to write rows of types that were changed after the current version was frozen."""
        if self.types_hash(self.current) != self.current_types.DESCRIPTOR_HASH:
            raise UnfrozenTypesError(self.name, self.current, gate_name())

    def check_version(self, version: int) -> None:
        """Refuse a store that is too old or too new, before anything runs."""
        if version < self.minimum:
            raise StoreTooOldError(version, self.minimum)
        if version > self.current:
            raise StoreTooNewError(version, self.current)


@cache
def load_project(name: str) -> Project:
    """Load a project by its name, which is also the name of its package on the driver and on every executor."""
    try:
        project: Project = import_module(f"{name}.upgrade").PROJECT
    except ModuleNotFoundError as error:
        if name != "catalog" and str(error.name).startswith("catalog."):
            raise OutdatedProjectError(name, str(error), gate_name()) from error
        raise UnknownProjectError(name, str(error)) from error
    except CatalogError:
        raise
    except Exception as error:
        if not _is_package(name):
            raise UnknownProjectError(name, str(error)) from error
        raise BrokenProjectError(name, error_text(error, innermost=True), gate_name()) from error
    return project


def _is_package(name: str) -> bool:
    """Tell if there is a package of this name with a module `upgrade`, whatever becomes of loading it."""
    try:
        return find_spec(f"{name}.upgrade") is not None
    except Exception:  # noqa: BLE001 - its own `__init__` may raise anything
        return False


def load_generated(project: str, stem: str, proto: str) -> ModuleType:
    module = f"{project}.generated.{stem}_pb2"
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise GeneratedCodeError(module, proto, gate_name()) from error


def require_fresh(module_file: str, proto: str, text_hash: str) -> None:
    """Refuse generated code whose proto has changed since; generated modules call this as they load.

    Installed packages have no proto beside them, and nothing there can be stale.
    """
    module = Path(module_file)
    source = module.parents[2] / proto
    if source.is_file() and hashlib.sha256(source.read_bytes()).hexdigest() != text_hash:
        raise GeneratedCodeError(module.stem, proto, gate_name())
