"""The candidates for parameters: collections, versions, tables, schema changes, environments.

Loads no more than each answer needs, and never pyspark. If no store is named yet, offers what this build knows. If the
store cannot be read, or does not answer soon, offers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from queue import Queue
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from catalog.cli.settings import Settings, read_environments, read_settings

if TYPE_CHECKING:
    from catalog.engine.base.project import Project
    from catalog.engine.schema_change.store import TablesStore

_Answer = TypeVar("_Answer")
Flags = Mapping[str, Any]
Candidate = tuple[str, str]
"""The word, and its help."""
_WAIT_S = 3.0
"""The time that a store has to answer."""


def collections(flags: Flags) -> Iterable[Candidate]:
    """List the collections of the store's version, including those of the engine."""
    from catalog.engine.stash.engine_rows import ENGINE_COLLECTIONS  # noqa: PLC0415 - loads protobuf
    from catalog.engine.stash.registry import Registry  # noqa: PLC0415

    settings = read_settings(flags)
    project, stored = _project(settings), _stored_version(settings)
    version = project.current if stored is None else stored
    if version < project.first_proto:
        from catalog.engine.migrate.row_types import row_types  # noqa: PLC0415 - loads Arrow

        return [(name, "") for name in sorted({*row_types(project, version), *ENGINE_COLLECTIONS})]
    return [(name, "") for name in sorted({*Registry.of(project.types(version)).by_name, *ENGINE_COLLECTIONS})]


def versions(flags: Flags) -> Iterable[Candidate]:
    """List every version that this build knows."""
    project = _project(read_settings(flags))
    return [_version(number) for number in range(project.minimum, project.current + 1)]


def later_versions(flags: Flags) -> Iterable[Candidate]:
    """List the versions that the store can be upgraded to."""
    settings = read_settings(flags)
    project, present = _project(settings), _stored_version(settings)
    return [_version(number) for number in range((present or project.minimum) + 1, project.current + 1)]


def earlier_versions(flags: Flags) -> Iterable[Candidate]:
    """List the versions before that of the store, the newest first: an undo goes there first."""
    settings = read_settings(flags)
    project, present = _project(settings), _stored_version(settings)
    return [_version(number) for number in range((present or project.current) - 1, project.minimum - 1, -1)]


def tables(flags: Flags) -> Iterable[Candidate]:
    """List the tables of the store; those of the default schema without its name."""
    opened = _tables(read_settings(flags))
    names = [] if opened is None else sorted(schema.name for schema in opened.replica.schemas.values())
    return [(name.removeprefix("public."), "") for name in names]


def changes(flags: Flags) -> Iterable[Candidate]:
    """List the schema changes that are not over, the newest first."""
    opened = _tables(read_settings(flags))
    found = {} if opened is None else opened.replica.changes()
    return [(str(number), row.statement) for number, row in reversed(found.items()) if not row.HasField("ended_ms")]


def environments(flags: Flags) -> Iterable[Candidate]:
    """List the environments of the settings file, each with its store."""
    return [(name, str(table.get("store", ""))) for name, table in sorted(read_environments(flags).items())]


def _project(settings: Settings) -> Project:
    from catalog.engine.base.project import load_project  # noqa: PLC0415

    return load_project(settings["project"])


def _stored_version(settings: Settings) -> int | None:
    """Return the version of the store; None if no store is named."""
    if settings["store"] is None:
        return None
    from catalog.engine.log.delta import DeltaLog  # noqa: PLC0415
    from catalog.engine.log.protocol import AppTxn  # noqa: PLC0415
    from catalog.engine.log.replica import newest_state  # noqa: PLC0415
    from catalog.engine.storage.base import open_storage  # noqa: PLC0415
    from catalog.engine.storage.identity import require_identity  # noqa: PLC0415
    from catalog.engine.storage.layout import stash_uri  # noqa: PLC0415

    def ask() -> int:
        storage = open_storage(settings["store"], settings.storage_options)
        require_identity(storage, settings["project"])
        log = DeltaLog(stash_uri(storage.uri), settings.storage_options)
        return newest_state(log).app_txns[AppTxn.STASH_VERSION]

    return _soon(ask)


def _tables(settings: Settings) -> TablesStore | None:
    """Open the tables log of the store; None if no store is named."""
    if settings["store"] is None:
        return None
    from catalog.engine.log.delta import DeltaLog  # noqa: PLC0415
    from catalog.engine.schema_change.store import TablesStore  # noqa: PLC0415
    from catalog.engine.storage.base import open_storage  # noqa: PLC0415
    from catalog.engine.storage.identity import require_identity  # noqa: PLC0415
    from catalog.engine.storage.layout import tables_uri  # noqa: PLC0415

    def ask() -> TablesStore:
        storage = open_storage(settings["store"], settings.storage_options)
        require_identity(storage, settings["project"])
        return TablesStore.open(DeltaLog(tables_uri(storage.uri), settings.storage_options))

    return _soon(ask)


def _soon(ask: Callable[[], _Answer]) -> _Answer:
    """Return the answer if it comes in time; else raise. The question keeps running in its thread."""
    answers: Queue[_Answer | BaseException] = Queue()

    def answer() -> None:
        try:
            answers.put(ask())
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            answers.put(error)

    Thread(target=answer, daemon=True).start()
    found = answers.get(timeout=_WAIT_S)
    if isinstance(found, BaseException):
        raise found
    return found


def _version(number: int) -> Candidate:
    return str(number), f"version {number}"
