"""`catalog config show`: every setting, and where it came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from catalog.cli.answer import CommandResult

if TYPE_CHECKING:
    from catalog.cli.app import Invocation


@dataclass(frozen=True, slots=True)
class SettingLine:
    name: str
    value: Any
    source: str


@dataclass(frozen=True, slots=True)
class ConfigListing:
    settings: tuple[SettingLine, ...]


def show(run: Invocation) -> CommandResult:
    """List the settings; secrets are redacted."""
    lines = tuple(SettingLine(own.name, own.shown, own.source) for own in run.settings.all.values())
    return CommandResult(ConfigListing(lines))
