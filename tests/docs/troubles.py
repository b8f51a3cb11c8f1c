"""Stores in the states that how-to pages are about, made as they come about: by crashes, torn disks, edited files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from catalog import open_catalog
from catalog.engine.log.place import StorePlace
from catalog.engine.migrate.executor import upgrade
from catalog.engine.migrate.step_runner import StepPoint
from catalog.engine.stash.json_rows import row_to_json
from catalog.engine.stash.registry import encode
from catalog.engine.store.leadership import LeadershipOptions
from catalog.generated import objects_v21_pb2 as v21
from catalog.objects import SettingKey, SettingValue
from catalog.tools.edit import apply_edit, plan_edit
from catalog.tools.generator import generate
from catalog.upgrade import PROJECT
from tests.engine.migrate.stores import REGISTRY, append, events_of, lead
from tests.engine.migrate.test_recorder import die

ROWS, SEED = 200, 1


def stopped(store: Path) -> None:
    """Its leader died in the middle of a step."""
    generate(PROJECT, store, 21, ROWS, SEED)
    die(store, StepPoint.AFTER_BEGIN)


def torn(store: Path) -> None:
    """The machine stopped while the newest entry of the log was written."""
    with open_catalog(store) as catalog, catalog.transaction() as tx:
        tx.insert(SettingKey(name="colour"), SettingValue(value="green"))
    newest = max((store / "stash" / "_delta_log").glob("*.json"))
    newest.write_bytes(newest.read_bytes()[:100])


def altered(store: Path) -> None:
    """One bit of the newest entry of the log flipped."""
    with open_catalog(store) as catalog, catalog.transaction() as tx:
        tx.insert(SettingKey(name="colour"), SettingValue(value="green"))
    newest = max((store / "stash" / "_delta_log").glob("*.json"))
    newest.write_bytes(newest.read_bytes().replace(b'"add"', b'"adc"'))


def edited(store: Path) -> None:
    """A migration that it has behind it was edited since; another is pending."""
    generate(PROJECT, store, 19, ROWS, SEED)
    upgrade(lead(store), until=20)
    (event,) = events_of(store)
    place = StorePlace(str(store), {}, PROJECT)
    kind = REGISTRY.named("migration_event")
    value = row_to_json(kind, encode(kind.key_type(id=event.id)), encode(event.value))["value"]
    changed = {**value, "checksum": "sha256:" + "0" * 64}
    apply_edit(
        place, plan_edit(place, kind.name, {"id": event.id}, changed, protected=True), LeadershipOptions(None, 0)
    )


def dangling(store: Path) -> None:
    """An item is in a schema that is not there, and a comment is on that item."""
    generate(PROJECT, store, 21, ROWS, SEED)
    item = v21.ItemValue(schema_id=404, name="lost", owner_id=v21.RoleId(system=2))
    append(store, "item", (encode(v21.ItemKey(id=9000)), encode(item), 1))


def full_history(store: Path) -> None:
    """A store of an older version, that is in order."""
    generate(PROJECT, store, 20, ROWS, SEED)


def fresh(store: Path) -> None:
    """A store of this build, that was led and closed."""
    open_catalog(store).close()


def behind(store: Path) -> None:
    """A store that the next start takes one version on."""
    generate(PROJECT, store, 21, ROWS, SEED)


TROUBLES: Mapping[str, Mapping[str, Callable[[Path], None]]] = {
    "check-a-production-store": {"production": full_history, "broken": dangling},
    "operate": {"catalog": behind},
    "set-up-a-machine": {"catalog": fresh, "older": behind, "torn": torn},
    "recover": {"stopped": stopped, "torn": torn, "altered": altered, "edited": edited, "catalog": full_history},
}
"""By page: the stores that are there when somebody needs it."""
