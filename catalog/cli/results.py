"""How a command ends: its exit code, and the envelope that programs read. Prints nothing."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from enum import Enum, IntEnum
from typing import Any

from catalog.errors import (
    CatalogError,
    ChecksumError,
    FencedError,
    SettingError,
    StaleGenerationError,
    StatementError,
    StatementRefusedError,
    StepRunningError,
    StoppedError,
    TimedOutError,
    UndoneError,
    UnfinishedStepError,
    UnfitJsonError,
    UnknownCollectionError,
    UnknownProjectError,
    UpgradeNeededError,
    UsageError,
)


class Exit(IntEnum):
    DONE = 0
    FAILED = 1
    USAGE = 2
    PENDING = 3
    CHECKSUM = 4
    HELD = 5
    UNFINISHED = 6
    INTERRUPTED = 130
    TERMINATED = 143


_SIGTERM = "SIGTERM"
MEANINGS: Mapping[int, str] = {
    Exit.DONE.value: "done, or nothing to do",
    Exit.FAILED.value: "failed, or findings",
    Exit.USAGE.value: "called wrongly",
    Exit.PENDING.value: "migrations are pending",
    Exit.CHECKSUM.value: "a checksum differs",
    Exit.HELD.value: "held by another process, or fenced",
    Exit.UNFINISHED.value: "a migration began and did not end, or failed",
    Exit.INTERRUPTED.value: "interrupted by Ctrl-C",
    Exit.TERMINATED.value: "ended by SIGTERM",
}


_EXITS: Mapping[type[CatalogError], Exit] = {
    UsageError: Exit.USAGE,
    SettingError: Exit.USAGE,
    UnknownCollectionError: Exit.USAGE,
    UnknownProjectError: Exit.USAGE,
    UnfitJsonError: Exit.USAGE,
    StatementError: Exit.USAGE,
    StatementRefusedError: Exit.USAGE,
    UpgradeNeededError: Exit.PENDING,
    UndoneError: Exit.PENDING,
    ChecksumError: Exit.CHECKSUM,
    FencedError: Exit.HELD,
    StaleGenerationError: Exit.HELD,
    TimedOutError: Exit.HELD,
    StepRunningError: Exit.UNFINISHED,
    UnfinishedStepError: Exit.UNFINISHED,
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command found or did, and what is wrong with that, if anything is."""

    data: Any
    error: CatalogError | None = None

    @property
    def exit(self) -> Exit:
        return Exit.DONE if self.error is None else exit_of(self.error)


class Terminated(KeyboardInterrupt):
    """Somebody asked this process to end: it does so as after Ctrl-C."""


def stopped_by(stopped: BaseException) -> str:
    """What people call what ended a command."""
    return _SIGTERM if isinstance(stopped.__cause__ or stopped, Terminated) else "Ctrl-C"


def exit_of(error: CatalogError) -> Exit:
    if isinstance(error, StoppedError):
        return Exit.TERMINATED if error.by == _SIGTERM else Exit.INTERRUPTED
    return next((own for kind, own in _EXITS.items() if isinstance(error, kind)), Exit.FAILED)


def envelope(command: str, answer: Answer) -> str:
    """The one JSON document of a command: the same keys whether it succeeded or not."""
    error = None
    if answer.error is not None:
        message, why, fix = lines_of(answer.error)
        error = {"code": type(answer.error).__name__, "message": message, "why": why, "next": fix}
    told = {"ok": error is None, "command": command, "data": plain(answer.data), "error": error}
    return json.dumps(told, ensure_ascii=False)


def lines_of(error: CatalogError) -> tuple[str, str, str]:
    """What happened, why, and what to do next: a line of each, whatever a library said in several."""

    def line(text: str) -> str:
        return " ".join(part.strip() for part in text.splitlines() if part.strip())

    return line(error.what), line(error.why), line(error.next)


def plain(data: Any) -> Any:  # noqa: ANN401 - whatever a command answers
    """Data as JSON has it."""
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
