"""A file that exists exactly while a store is ready, for probes from outside of the process."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from catalog.engine.base.atomic_file import replace_file
from catalog.engine.store.observers.log_lines import utc_time
from catalog.events import Closed, Event, Failed, Opening, Ready


@dataclass(frozen=True, slots=True)
class ReadyFile:
    """Removes the file when an opening begins, writes it when the store is ready, removes it when it is closed."""

    path: Path
    redact: Callable[[str], str] = str
    """Removes secrets from the text."""
    clock: Callable[[], float] = time.time

    def __call__(self, event: Event) -> None:
        match event:
            case Ready():
                found = {"state": "ready", **asdict(event), "since": utc_time(self.clock())}
                replace_file(self.path, self.redact(json.dumps(found, ensure_ascii=False)) + "\n")
            case Opening() | Failed() | Closed():
                self.path.unlink(missing_ok=True)
            case _:
                pass
