"""The result of a command: exit codes, and the JSON envelope. Prints nothing."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from enum import Enum, IntEnum
from typing import Any

from catalog.cli.signals import SIGTERM
from catalog.errors import (
    CatalogError,
    ChecksumError,
    FencedError,
    SettingError,
    StaleGenerationError,
    StatementError,
    StatementRefusedError,
    StatementSyntaxError,
    StepRunningError,
    StoppedError,
    TimedOutError,
    UndoneError,
    UnfinishedStepError,
    UnfitJsonError,
    UnknownChangeError,
    UnknownCollectionError,
    UnknownColumnError,
    UnknownElementError,
    UnknownProjectError,
    UnknownTableError,
    UnmigratedBuiltinsError,
    UnsupportedExpressionError,
    UnsupportedStatementError,
    UnsupportedTypeError,
    UpgradeNeededError,
    UsageError,
)


class ExitCode(IntEnum):
    DONE = 0
    FAILED = 1
    USAGE = 2
    PENDING = 3
    CHECKSUM = 4
    HELD = 5
    UNFINISHED = 6
    INTERRUPTED = 130
    TERMINATED = 143


MEANINGS: Mapping[int, str] = {
    ExitCode.DONE.value: "done, or nothing to do",
    ExitCode.FAILED.value: "failed, or findings",
    ExitCode.USAGE.value: "wrong usage",
    ExitCode.PENDING.value: "migrations are pending, or the builtins are not those of this build",
    ExitCode.CHECKSUM.value: "a checksum differs",
    ExitCode.HELD.value: "held by another process, or fenced",
    ExitCode.UNFINISHED.value: "a migration began and did not end, or failed",
    ExitCode.INTERRUPTED.value: "interrupted by Ctrl-C",
    ExitCode.TERMINATED.value: "ended by SIGTERM",
}


_EXITS: Mapping[type[CatalogError], ExitCode] = {
    UsageError: ExitCode.USAGE,
    SettingError: ExitCode.USAGE,
    UnknownCollectionError: ExitCode.USAGE,
    UnknownProjectError: ExitCode.USAGE,
    UnfitJsonError: ExitCode.USAGE,
    StatementError: ExitCode.USAGE,
    StatementRefusedError: ExitCode.USAGE,
    StatementSyntaxError: ExitCode.USAGE,
    UnsupportedStatementError: ExitCode.USAGE,
    UnsupportedTypeError: ExitCode.USAGE,
    UnsupportedExpressionError: ExitCode.USAGE,
    UnknownTableError: ExitCode.USAGE,
    UnknownColumnError: ExitCode.USAGE,
    UnknownElementError: ExitCode.USAGE,
    UnknownChangeError: ExitCode.USAGE,
    UpgradeNeededError: ExitCode.PENDING,
    UndoneError: ExitCode.PENDING,
    UnmigratedBuiltinsError: ExitCode.PENDING,
    ChecksumError: ExitCode.CHECKSUM,
    FencedError: ExitCode.HELD,
    StaleGenerationError: ExitCode.HELD,
    TimedOutError: ExitCode.HELD,
    StepRunningError: ExitCode.UNFINISHED,
    UnfinishedStepError: ExitCode.UNFINISHED,
}


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command: its data, an error or both, and the function of its view that renders the data."""

    data: Any
    error: CatalogError | None = None
    renderer: str = "render"

    @property
    def exit(self) -> ExitCode:
        return ExitCode.DONE if self.error is None else exit_of(self.error)


def module_name(command: str) -> str:
    """Return the name of the modules of a command and of its view: `debug upgrade-check` is `debug_upgrade_check`."""
    return command.replace(" ", "_").replace("-", "_")


def exit_of(error: CatalogError) -> ExitCode:
    if isinstance(error, StoppedError):
        return ExitCode.TERMINATED if error.by == SIGTERM else ExitCode.INTERRUPTED
    return next((own for kind, own in _EXITS.items() if isinstance(error, kind)), ExitCode.FAILED)


def envelope(command: str, answer: CommandResult) -> str:
    """Return the JSON document of a command; it has the same keys whether the command succeeded or not."""
    error = None
    if answer.error is not None:
        message, why, fix = lines_of(answer.error)
        error = {"code": type(answer.error).__name__, "message": message, "why": why, "next": fix}
    told = {"ok": error is None, "command": command, "data": plain(answer.data), "error": error}
    return json.dumps(told, ensure_ascii=False)


def lines_of(error: CatalogError) -> tuple[str, str, str]:
    """Return what happened, why, and what to do next, each as one line."""

    def line(text: str) -> str:
        return " ".join(part.strip() for part in text.splitlines() if part.strip())

    return line(error.what), line(error.why), line(error.next)


def plain(data: Any) -> Any:  # noqa: ANN401 - whatever a command answers
    """Convert data to the types of JSON."""
    match data:
        case Enum():
            told = data.name if isinstance(data, int) else data.value
        case None | bool() | int() | float() | str():
            told = data
        case datetime():
            told = data.isoformat()
        case bytes():
            told = base64.b64encode(data).decode()
        case Mapping():
            told = {str(name): plain(value) for name, value in data.items()}
        case Iterable():
            told = [plain(value) for value in data]
        case _ if is_dataclass(data):
            told = {field.name: plain(getattr(data, field.name)) for field in fields(data)}
        case _:
            raise TypeError(f"{type(data).__name__} cannot be told as JSON")
    return told
