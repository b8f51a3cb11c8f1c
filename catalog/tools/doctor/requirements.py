"""The requirements of the installed package, and whether the installed versions fulfil them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Final

from packaging import requirements
from packaging.specifiers import SpecifierSet

DISTRIBUTION: Final = "stash-catalog"
_EXTRA = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")


@dataclass(frozen=True, slots=True)
class Requirement:
    name: str
    wanted: str
    """Such as `>=1.6.6,<1.7`; empty if every version is accepted."""
    extra: str
    """The extra that it belongs to: `spark`, `s3`, `gate`; empty if it is always needed."""
    installed: str | None

    @property
    def fits(self) -> bool:
        """True if the installed version is accepted, pre-releases included."""
        return self.installed is not None and SpecifierSet(self.wanted).contains(self.installed, prereleases=True)


def read_requirements() -> tuple[Requirement, ...]:
    """Read the requirements of the installed package; none if it runs from its source tree."""
    try:
        stated = [requirements.Requirement(text) for text in requires(DISTRIBUTION) or []]
    except PackageNotFoundError:
        return ()
    return tuple(
        Requirement(own.name, str(own.specifier), _extra(str(own.marker or "")), _installed(own.name)) for own in stated
    )


def _extra(marker: str) -> str:
    found = _EXTRA.search(marker)
    return found[1] if found else ""


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
