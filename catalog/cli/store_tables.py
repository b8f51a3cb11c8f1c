"""The tables of the store of a command: opened to be read, which writes nothing, or as a member."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from catalog.engine.store.catalog import Mode
from catalog.engine.store.open import open_store
from catalog.errors import NoStoreError, UnknownChangeError, UnknownTableError, UpgradeNeededError

if TYPE_CHECKING:
    from catalog.cli.context import StoreTarget
    from catalog.engine.log.place import StorePlace
    from catalog.engine.schema_change.tables import Tables


@contextmanager
def tables_to_read(target: StoreTarget) -> Iterator[Tables | None]:
    """Open the tables without writing anything; none if the store has had no table yet."""
    place, look = target.place, target.look()
    look.require_types()
    if look.version < place.project.current:
        raise UpgradeNeededError(look.log.uri, look.version, place.project.current)
    if not _has_tables(place):
        yield None
        return
    with open_store(place, Mode.READ_ONLY, target.leadership) as catalog:
        yield catalog.tables


@contextmanager
def tables_to_write(target: StoreTarget) -> Iterator[Tables]:
    """Open the tables as a member; their log is made if there is none."""
    with open_store(target.place, Mode.MEMBER, target.leadership) as catalog:
        yield catalog.tables


@contextmanager
def tables_with_change(target: StoreTarget, number: int) -> Iterator[Tables]:
    """Open the tables as a member to act on a change; refuse if there is no such change."""
    if target.look().version and not _has_tables(target.place):
        raise UnknownChangeError(number)
    with tables_to_write(target) as tables:
        tables.change(number)
        yield tables


@contextmanager
def tables_with(target: StoreTarget, name: str) -> Iterator[Tables]:
    """Open the tables as a member to write one of them; refuse if there is no such table."""
    if target.look().version and not _has_tables(target.place):
        raise UnknownTableError(name, ())
    with tables_to_write(target) as tables:
        tables.schema(name)
        yield tables


def _has_tables(place: StorePlace) -> bool:
    try:
        place.tables_log().verify()
    except NoStoreError:
        return False
    return True
