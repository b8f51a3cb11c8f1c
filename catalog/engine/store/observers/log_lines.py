"""Events as log lines: JSON for machines, `name=value` for people. Writes nothing by itself."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, Final

from catalog.errors.visible_text import visible
from catalog.events import (
    Event,
    Failed,
    Maintained,
    StepAdvanced,
    StepBegan,
    StepFailed,
    WaitingForLeader,
)

FORMS: Final = ("text", "json")
_ADVANCED_EVERY_S: Final = 10.0
_PLAIN = re.compile(r"[^\s\"=\\\x00-\x1f\x7f-\x9f]+")
_WORD = re.compile(r"(?<!^)(?=[A-Z])")
_COUNTED = ("rows_before", "rows_after", "bytes_before", "bytes_after")


@dataclass(slots=True)
class LogLines:
    """Writes a line for each event; while a step advances, one every ten seconds."""

    write: Callable[[str], None]
    form: str = "text"
    clock: Callable[[], float] = time.time
    _advanced_s: float = field(default=0.0)

    def __call__(self, event: Event) -> None:
        now_s = self.clock()
        if isinstance(event, StepBegan):
            self._advanced_s = now_s
        if isinstance(event, StepAdvanced):
            if now_s - self._advanced_s < _ADVANCED_EVERY_S:
                return
            self._advanced_s = now_s
        self.write(log_line(self.form, now_s, _level(event), event_name(event), event_fields(event)))


def log_line(form: str, now_s: float, level: str, event: str, values: Mapping[str, Any]) -> str:
    """Format one line; no value can break it."""
    if form == "json":
        return _quoted({"time": utc_time(now_s), "level": level, "event": event, **values})
    pairs = (f"{name}={_formatted(value)}" for name, value in values.items() if value is not None)
    return " ".join((utc_time(now_s), level, event, *pairs))


def utc_time(now_s: float) -> str:
    """Format a time in UTC, for people and machines."""
    return datetime.fromtimestamp(now_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def event_name(event: Event) -> str:
    """Return the name of an event in a log, such as `step_committed`."""
    return _WORD.sub("_", type(event).__name__).lower()


def event_fields(event: Event) -> dict[str, Any]:
    """Return the values of an event; of a step's plan only its name and versions."""
    found: dict[str, Any] = {}
    for name in (own.name for own in fields(event)):
        value = getattr(event, name)
        if name == "plan":
            found |= {"step": value.name, "previous": value.previous, "version": value.version}
        elif name == "counts":
            found |= {counted: getattr(event, counted) for counted in _COUNTED}
        else:
            found[name] = round(value, 3) if isinstance(value, float) else value
    match event:
        case StepBegan(plan=plan):
            found |= {"number": plan.position.number, "count": plan.position.count, "summary": plan.summary}
            found |= {"rows": plan.rows_to_rewrite, "bytes": plan.bytes_to_rewrite}
        case StepAdvanced(plan=plan):
            found["bytes"] = found.pop("size")
            found |= {"rows_total": plan.rows_to_rewrite, "bytes_total": plan.bytes_to_rewrite}
        case _:
            pass
    return found


def _level(event: Event) -> str:
    match event:
        case Failed() | StepFailed():
            return "error"
        case WaitingForLeader():
            return "warning"
        case Maintained(postponed=str()):
            return "warning"
        case _:
            return "info"


def _formatted(value: object) -> str:
    text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return text if _PLAIN.fullmatch(text) and visible(text) == text else _quoted(text)


def _quoted(value: object) -> str:
    """Return a value as JSON without any character that ends a line or cannot be seen."""
    return visible(json.dumps(value, ensure_ascii=False))
