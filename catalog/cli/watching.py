"""Who watches a command that opens a store: bars or a log for people, and files for whoever looks in from outside."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from catalog.cli.results import Answer
from catalog.errors import UsageError
from catalog.notices import Closed, Failed, Notice, Observer, Opening, together

if TYPE_CHECKING:
    from catalog.cli.environment import Environment
    from catalog.cli.frame import Run


class Watch:
    """Tells everyone who watches a command; remembers whether they know that it failed."""

    def __init__(self, observer: Observer) -> None:
        self._observer, self._began_s, self._is_failed = observer, time.monotonic(), False

    def __call__(self, notice: Notice) -> None:
        self._is_failed = isinstance(notice, Failed)
        self._observer(notice)

    def fail(self, error: BaseException) -> None:
        """Say that the command failed, if that is news."""
        if not self._is_failed:
            self(Failed.of(error, time.monotonic() - self._began_s))

    def settle(self, answer: Answer) -> Answer:
        """An answer with something wrong in it, such as migrations that are pending, is a failure to whoever waits."""
        if answer.error is not None:
            self.fail(answer.error)
        return answer


@contextmanager
def watched(run: Run, environment: Environment) -> Iterator[Watch]:
    """Whom a command tells what happens, as its settings say.

    Files are written before anything else happens, so that one that cannot be is refused with the store as it is.
    """
    project, settings, screen = environment.project, run.settings, run.screen
    begun = Opening(environment.storage.uri, project.name, run.command, str(project.build), project.current)
    files = []
    if settings["metrics_file"] is not None:
        from catalog.observing.metrics import MetricsFile  # noqa: PLC0415 - most commands write no such file

        files.append(_begun("--metrics-file", MetricsFile(Path(settings["metrics_file"]), screen.redact), begun))
    if settings["ready_file"] is not None:
        from catalog.observing.readiness import ReadyFile  # noqa: PLC0415

        path = Path(settings["ready_file"])
        if not path.absolute().parent.is_dir():
            raise _unwritable("--ready-file", f"there is no folder {path.absolute().parent}")
        files.append(_begun("--ready-file", ReadyFile(path, screen.redact), begun))
    with ExitStack() as stack:
        shown: Observer
        if screen.log_format is not None:
            from catalog.observing.logs import LogLines  # noqa: PLC0415

            shown = _but(Failed, LogLines(screen.log, screen.log_format))  # which the screen logs, of every command
        else:
            shown = stack.enter_context(screen.progress())
        # The command closes the store when it is done: that is no end of being ready, for whoever comes next to use it.
        watch = Watch(together(shown, *(_but(Closed, file) for file in files), complain=screen.complain))
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


def _but(left_out: type[Notice], observer: Observer) -> Observer:
    def tell(notice: Notice) -> None:
        if not isinstance(notice, left_out):
            observer(notice)

    return tell


def _unwritable(flag: str, why: str) -> UsageError:
    return UsageError(
        f"{flag} cannot be written: {why}",
        "nothing was done: whoever reads the file would not know",
        f"name a file in a folder that can be written to with {flag}",
    )
