"""A file that is there exactly while a store is ready, for whoever probes a process from outside."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from catalog.notices import Closed, Failed, Notice, Opening, Ready
from catalog.observing.files import remove_file, replace_file
from catalog.observing.logs import utc_time


@dataclass(frozen=True, slots=True)
class ReadyFile:
    """Removed when an opening begins, whoever left it; written when the store is ready; removed when it is no more."""

    path: Path
    redact: Callable[[str], str] = str
    """Takes secrets out of what is written."""
    clock: Callable[[], float] = time.time

    def __call__(self, notice: Notice) -> None:
        match notice:
            case Ready():
                said = {"state": "ready", **asdict(notice), "since": utc_time(self.clock())}
                replace_file(self.path, self.redact(json.dumps(said, ensure_ascii=False)) + "\n")
            case Opening() | Failed() | Closed():
                remove_file(self.path)
            case _:
                pass
