"""What the package was built to run with, and whether what is installed fits."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from operator import eq, ge, gt, le, lt, ne
from typing import Final

DISTRIBUTION: Final = "stash-catalog"
_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*(?P<wanted>[^;]*)(?:;(?P<marker>.*))?")
_EXTRA = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")
_CLAUSE = re.compile(r"(==|!=|<=|>=|<|>)\s*([0-9]+(?:\.[0-9]+)*)(\.\*)?")
_RELEASE = re.compile(r"[0-9]+(?:\.[0-9]+)*")
_COMPARED: Final[Mapping[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]]] = {
    "==": eq,
    "!=": ne,
    "<=": le,
    ">=": ge,
    "<": lt,
    ">": gt,
}


@dataclass(frozen=True, slots=True)
class Requirement:
    name: str
    wanted: str
    """Such as `>=1.6.6,<1.7`; empty if any will do."""
    extra: str
    """What it is for, if not for everything: `spark`, `s3`, `gate`."""
    installed: str | None

    @property
    def fits(self) -> bool:
        """Whether the version that is installed is wanted; clauses of other kinds than ours are taken to hold."""
        release = _release(self.installed or "")
        return all(_holds(release, *clause) for clause in _CLAUSE.findall(self.wanted))


def read_requirements() -> tuple[Requirement, ...]:
    """Those of the package that is installed; none if it runs from where its source is."""
    try:
        stated = requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        return ()
    found = [match for own in stated if (match := _REQUIREMENT.fullmatch(own)) is not None]
    return tuple(
        Requirement(own["name"], own["wanted"].strip(" ()"), _extra(own["marker"] or ""), _installed(own["name"]))
        for own in found
    )


def _extra(marker: str) -> str:
    found = _EXTRA.search(marker)
    return found[1] if found else ""


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _holds(release: tuple[int, ...], sign: str, wanted: str, any_after: str) -> bool:
    bound = _release(wanted)
    if any_after:
        return _COMPARED[sign](release[: len(bound)], bound)
    width = max(len(release), len(bound))
    return _COMPARED[sign](_padded(release, width), _padded(bound, width))


def _release(text: str) -> tuple[int, ...]:
    found = _RELEASE.match(text)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def _padded(release: tuple[int, ...], width: int) -> tuple[int, ...]:
    return (*release, *(0 for _ in range(width - len(release))))
