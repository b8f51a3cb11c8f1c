"""Signals that end a command: SIGINT (Ctrl-C) and SIGTERM."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType
from typing import Any, Final

SIGTERM: Final = "SIGTERM"
CTRL_C: Final = "Ctrl-C"


class Terminated(KeyboardInterrupt):
    """SIGTERM was received: the command ends in the same way as after Ctrl-C."""


def stopped_by(stopped: BaseException) -> str:
    """Return the name of the signal that ended a command."""
    return SIGTERM if isinstance(stopped.__cause__ or stopped, Terminated) else CTRL_C


def catch_signals() -> None:
    """Raise `Terminated` on SIGTERM; also keep libraries from logging what the command reports itself."""

    def terminate(_number: int, _frame: FrameType | None) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, terminate)
    logging.getLogger().addHandler(logging.NullHandler())


@contextmanager
def signals_deferred() -> Iterator[None]:
    """Hold the first signal back until the block ends, so that a signal cannot part what belongs together.

    A second signal is not held back: the first one may wait for a reader of a full pipe that never reads on.
    """
    if current_thread() is not main_thread():  # which alone receives signals
        yield
        return
    received: list[tuple[int, FrameType | None]] = []
    handlers: dict[int, Callable[[int, FrameType | None], Any]] = {
        number: handler for number in (signal.SIGINT, signal.SIGTERM) if callable(handler := signal.getsignal(number))
    }

    def defer(number: int, frame: FrameType | None) -> None:
        if received:
            handlers[number](number, frame)
        received.append((number, frame))

    try:
        for number in handlers:
            signal.signal(number, defer)
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    for number, frame in received:
        handlers[number](number, frame)
