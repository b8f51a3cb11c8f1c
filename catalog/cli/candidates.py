"""What can stand for a parameter, looked up when a shell asks: collections, versions, environments.

Loads no more than each answer needs, and never pyspark. A store that was not named yet may still be, further on in the
line: then what this build knows is offered. Of one that cannot be read, or does not answer soon, nothing is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from queue import Queue
from threading import Thread
from typing import TYPE_CHECKING, Any

from catalog.cli.settings import Settings, read_environments, read_settings

if TYPE_CHECKING:
    from catalog.project import Project

Flags = Mapping[str, Any]
Candidate = tuple[str, str]
"""What would be typed, and what is said of it beside."""
_WAIT_S = 3.0
"""As long as a store may take to answer."""


def collections(flags: Flags) -> Iterable[Candidate]:
    """Those of the store's own version, the engine's included."""
    from catalog.engine.types import ENGINE_COLLECTIONS, row_types  # noqa: PLC0415 - loads Arrow

    settings = read_settings(flags)
    project = _project(settings)
    version = _stored_version(settings)
    names = {*row_types(project, project.current if version is None else version), *ENGINE_COLLECTIONS}
    return [(name, "") for name in sorted(names)]


def versions(flags: Flags) -> Iterable[Candidate]:
    """Every version that this build knows."""
    project = _project(read_settings(flags))
    return [_version(number) for number in range(project.minimum, project.current + 1)]


def later_versions(flags: Flags) -> Iterable[Candidate]:
    """Those that the store can be upgraded to."""
    settings = read_settings(flags)
    project, present = _project(settings), _stored_version(settings)
    return [_version(number) for number in range((present or project.minimum) + 1, project.current + 1)]


def earlier_versions(flags: Flags) -> Iterable[Candidate]:
    """Those before the store's own, the newest first: that is the next to go back to."""
    settings = read_settings(flags)
    project, present = _project(settings), _stored_version(settings)
    return [_version(number) for number in range((present or project.current) - 1, project.minimum - 1, -1)]


def environments(flags: Flags) -> Iterable[Candidate]:
    """Those of the file that settings are read from, each with its store."""
    return [(name, str(table.get("store", ""))) for name, table in sorted(read_environments(flags).items())]


def _project(settings: Settings) -> Project:
    from catalog.project import load_project  # noqa: PLC0415

    return load_project(settings["project"])


def _stored_version(settings: Settings) -> int | None:
    """The version that a store is at; none if none was named."""
    if settings["store"] is None:
        return None
    from catalog.log.delta import DeltaLog  # noqa: PLC0415
    from catalog.log.protocol import Mark  # noqa: PLC0415
    from catalog.log.storage import open_storage  # noqa: PLC0415
    from catalog.stash.belongings import STASH  # noqa: PLC0415
    from catalog.stash.identity import require_identity  # noqa: PLC0415

    def ask() -> int:
        storage = open_storage(settings["store"], settings.storage_options)
        require_identity(storage, settings["project"])
        log = DeltaLog(f"{storage.uri}/{STASH}", settings.storage_options)
        return log.state(log.verify()).marks[Mark.STASH_VERSION]

    return _soon(ask)


def _soon(ask: Callable[[], int]) -> int:
    """What somebody at the keyboard is answered in time; else it raises. What was asked is not called back."""
    answers: Queue[int | BaseException] = Queue()

    def answer() -> None:
        try:
            answers.put(ask())
        except BaseException as error:  # noqa: BLE001 - raised again by whoever waits
            answers.put(error)

    Thread(target=answer, daemon=True).start()
    found = answers.get(timeout=_WAIT_S)
    if isinstance(found, BaseException):
        raise found
    return found


def _version(number: int) -> Candidate:
    return str(number), f"version {number}"
