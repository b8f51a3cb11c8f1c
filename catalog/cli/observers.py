"""The observers of a command that opens a store: progress bars or a log, and files for other programs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult
from catalog.errors import UsageError
from catalog.events import Closed, Event, Failed, Observer, Opening, together

if TYPE_CHECKING:
    from catalog.cli.app import Invocation
    from catalog.cli.context import StoreTarget


class CommandObserver:
    """Passes events on to all observers; remembers if the failure was reported."""

    def __init__(self, observer: Observer) -> None:
        self._observer, self._began_s, self._is_failed = observer, time.monotonic(), False

    def __call__(self, notice: Event) -> None:
        self._is_failed = isinstance(notice, Failed)
        self._observer(notice)

    def fail(self, error: BaseException) -> None:
        """Report that the command failed, unless that was reported before."""
        if not self._is_failed:
            self(Failed.of(error, time.monotonic() - self._began_s))

    def settle(self, answer: CommandResult) -> CommandResult:
        """Report a result with an error, such as pending migrations, as a failure."""
        if answer.error is not None:
            self.fail(answer.error)
        return answer


@contextmanager
def watched(run: Invocation, environment: StoreTarget) -> Iterator[CommandObserver]:
    """Observe a command as its settings say.

    Files are written first, so that a file that cannot be written is refused before the store is changed.
    """
    project, settings, screen = environment.project, run.settings, run.screen
    begun = Opening(environment.place.uri, project.name, run.command, str(project.build), project.current)
    files = []
    if settings["metrics_file"] is not None:
        from catalog.engine.store.observers.prometheus import MetricsFile  # noqa: PLC0415 - most commands write no such file

        files.append(_begun("--metrics-file", MetricsFile(Path(settings["metrics_file"]), screen.redact), begun))
    if settings["ready_file"] is not None:
        from catalog.engine.store.observers.ready_file import ReadyFile  # noqa: PLC0415

        path = Path(settings["ready_file"])
        if not path.absolute().parent.is_dir():
            raise _unwritable("--ready-file", f"there is no folder {path.absolute().parent}")
        files.append(_begun("--ready-file", ReadyFile(path, screen.redact), begun))
    with ExitStack() as stack:
        shown: Observer
        if screen.log_format is not None:
            from catalog.engine.store.observers.log_lines import LogLines  # noqa: PLC0415

            shown = _but(Failed, LogLines(screen.log, screen.log_format))  # which the screen logs, of every command
        else:
            shown = stack.enter_context(screen.progress())
        # The command closes the store then run: that is no end of being ready, for whoever comes next to use it.
        watch = CommandObserver(together(shown, *(_but(Closed, file) for file in files), complain=screen.complain))
        try:
            yield watch
        except BaseException as error:
            watch.fail(error)
            raise


def _begun(flag: str, observer: Observer, begun: Opening) -> Observer:
    try:
        observer(begun)
    except (OSError, ValueError) as error:  # no path has a NUL in it, says the latter
        raise _unwritable(flag, getattr(error, "strerror", None) or str(error)) from error
    return observer


def _but(left_out: type[Event], observer: Observer) -> Observer:
    def tell(notice: Event) -> None:
        if not isinstance(notice, left_out):
            observer(notice)

    return tell


def _unwritable(flag: str, why: str) -> UsageError:
    return UsageError(
        f"{flag} cannot be written: {why}",
        "nothing was done, because the file would not show it",
        f"name a file in a folder that can be written to with {flag}",
    )
