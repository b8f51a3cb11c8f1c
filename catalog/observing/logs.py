"""Notices as log lines: JSON for machines, `name=value` for people. Writes nothing by itself."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, Final

from catalog.notices import (
    Failed,
    Maintained,
    Notice,
    StepAdvanced,
    StepBegan,
    StepFailed,
    WaitingForLeader,
)

FORMS: Final = ("text", "json")
_ADVANCED_EVERY_S: Final = 10.0
_PLAIN = re.compile(r"[^\s\"=\\\x00-\x1f\x7f-\x9f]+")
_ENDS = re.compile("[\x7f-\x9f\u2028\u2029]")
_WORD = re.compile(r"(?<!^)(?=[A-Z])")
_COUNTED = ("rows_before", "rows_after", "bytes_before", "bytes_after")


@dataclass(slots=True)
class LogLines:
    """A line for each notice; of a step that advances, one every ten seconds."""

    write: Callable[[str], None]
    form: str = "text"
    clock: Callable[[], float] = time.time
    _advanced_s: float = field(default=0.0)

    def __call__(self, notice: Notice) -> None:
        now_s = self.clock()
        if isinstance(notice, StepBegan):
            self._advanced_s = now_s
        if isinstance(notice, StepAdvanced):
            if now_s - self._advanced_s < _ADVANCED_EVERY_S:
                return
            self._advanced_s = now_s
        self.write(log_line(self.form, now_s, _level(notice), event_of(notice), told_of(notice)))


def log_line(form: str, now_s: float, level: str, event: str, told: Mapping[str, Any]) -> str:
    """One line, whatever the values are."""
    if form == "json":
        return _quoted({"time": utc_time(now_s), "level": level, "event": event, **told})
    pairs = (f"{name}={_shown(value)}" for name, value in told.items() if value is not None)
    return " ".join((utc_time(now_s), level, event, *pairs))


def utc_time(now_s: float) -> str:
    """A time as people and machines read it, in UTC."""
    return datetime.fromtimestamp(now_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def event_of(notice: Notice) -> str:
    """What a notice is called in a log, such as `step_committed`."""
    return _WORD.sub("_", type(notice).__name__).lower()


def told_of(notice: Notice) -> dict[str, Any]:
    """What a notice says, as plain values; of a step's plan what tells it from others."""
    told: dict[str, Any] = {}
    for name in (own.name for own in fields(notice)):
        value = getattr(notice, name)
        if name == "plan":
            told |= {"step": value.name, "previous": value.previous, "version": value.version}
        elif name == "counts":
            told |= {counted: getattr(notice, counted) for counted in _COUNTED}
        else:
            told[name] = round(value, 3) if isinstance(value, float) else value
    match notice:
        case StepBegan(plan=plan):
            told |= {"summary": plan.summary, "rows": plan.rows_to_rewrite, "bytes": plan.bytes_to_rewrite}
        case StepAdvanced(plan=plan):
            told["bytes"] = told.pop("size")
            told |= {"rows_total": plan.rows_to_rewrite, "bytes_total": plan.bytes_to_rewrite}
        case _:
            pass
    return told


def _level(notice: Notice) -> str:
    match notice:
        case Failed() | StepFailed():
            return "error"
        case WaitingForLeader():
            return "warning"
        case Maintained(postponed=str()):
            return "warning"
        case _:
            return "info"


def _shown(value: object) -> str:
    text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return text if _PLAIN.fullmatch(text) else _quoted(text)


def _quoted(value: object) -> str:
    """As JSON in one line, whatever somebody takes for the end of one."""
    return _ENDS.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))
