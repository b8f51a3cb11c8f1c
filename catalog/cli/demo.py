"""The main job, shown: a store of the oldest version is made up, upgraded on Spark, and looked at.

Everything shown is read from that store, which is gone afterwards. `python -m catalog.cli.demo` runs it.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from google.protobuf.message import Message
from google.protobuf.text_format import MessageToString

from catalog import MIN_STASH_VERSION, STASH_VERSION, open_catalog
from catalog.cli import render
from catalog.cli.bars import shown_progress
from catalog.cli.tables import events_table, plan_table
from catalog.cli.upgrading import plan_of
from catalog.engine.events import Event
from catalog.engine.plan import plan
from catalog.errors import CatalogError
from catalog.generator import generate
from catalog.handle import Catalog
from catalog.log.delta import DeltaLog
from catalog.log.protocol import Mark, Operation
from catalog.objects import ClusterReplicaKey, CommentKey, ItemKey, MigrationEventKey
from catalog.stash.view import Bases, load_view
from catalog.upgrade import PROJECT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.console import Console

_ROWS, _SEED = 4_000, 14
_ROWS_SHOWN = 3
_LAST_WITH_COMMENTS = 18
"""The last version at which items hold their comments themselves."""
_STATEMENT = "create_sql"


def main() -> int:
    try:
        with tempfile.TemporaryDirectory(prefix="catalog-demo-") as folder:
            demonstrate(Path(folder) / "store", render.make_console())
    except CatalogError as error:
        render.show_error(render.make_console(sys.stderr), error)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def demonstrate(store: Path, console: Console, *, rows: int = _ROWS, spark: SparkSession | None = None) -> None:
    """Make a store of the oldest version in an empty place, plan its upgrade, upgrade it, and show what came of it."""
    made = generate(PROJECT, store, MIN_STASH_VERSION, rows, _SEED)
    log = DeltaLog(f"{store}/stash")
    before = log.state(log.verify())
    held = sum(1 for count in made.rows.values() if count)
    render.show_heading(console, f"A store of version {before.marks[Mark.STASH_VERSION]}, made up")
    render.say(console, f"{made.total:,} rows in {held} collections, {len(before.files)} files, ts {before.version}")

    render.show_heading(console, f"What an upgrade to version {STASH_VERSION} will rewrite")
    console.print(plan_table(plan_of(plan(PROJECT, before, made.version, STASH_VERSION))))
    render.say(console, "Files to be replaced, with their rows and bytes, as they are now; - where none is.")

    render.show_heading(console, "The upgrade, on Spark")
    with shown_progress(console) as shown:
        open_catalog(store, spark=spark, observer=shown).close()
    with open_catalog(store, "read-only") as cat:
        _show_result(console, cat, log, before.version)


def _show_result(console: Console, cat: Catalog, log: DeltaLog, first_ts: int) -> None:
    render.show_heading(console, f"The store is at version {cat.version}, ts {cat.ts}")
    console.print(events_table(Event(key.id, value) for key, value in cat.rows(MigrationEventKey)))
    for title, key_type in (("Comments", CommentKey), ("Replicas", ClusterReplicaKey)):
        rows = list(cat.rows(key_type))
        render.show_heading(console, f"{title} have rows of their own now: the first of {len(rows):,}")
        told = ((_text(key), _text(value)) for key, value in islice(rows, _ROWS_SHOWN))
        render.show_table(console, ("key", "value"), told)
    comments = Counter(key.item_id for key, _ in cat.rows(CommentKey))
    if comments:
        number = comments.most_common(1)[0][0]
        render.show_heading(console, f"Item {number} through time, but for its {_STATEMENT}")
        render.show_table(console, ("ts", "version", "value"), _past(cat, log, first_ts, number))


def _past(cat: Catalog, log: DeltaLog, first_ts: int, number: int) -> Iterator[tuple[int, int, str]]:
    """An item as it was before the upgrade, while it held its comments, and now."""
    view = load_view(Bases(log), log.state(first_ts), ("item",))
    stored = next(json.loads(value) for key, value in view.rows("item") if json.loads(key)["id"] == number)
    told = json.dumps({name: field for name, field in stored.items() if name != _STATEMENT}, ensure_ascii=False)
    yield first_ts, view.state.marks[Mark.STASH_VERSION], told
    steps = [commit for commit in log.commits(first_ts + 1, cat.ts) if commit.operation is Operation.MIGRATE]
    for ts, version in ((commit.version, commit.marks[Mark.STASH_VERSION]) for commit in steps):
        if version in {_LAST_WITH_COMMENTS, cat.version}:
            for key, value in cat.rows(ItemKey, as_of=ts):
                if key.id == number:  # type: ignore[attr-defined]
                    yield ts, version, _text(value)


def _text(message: Message) -> str:
    shown = type(message)()
    shown.CopyFrom(message)
    if _STATEMENT in message.DESCRIPTOR.fields_by_name:
        shown.ClearField(_STATEMENT)
    return MessageToString(shown, as_one_line=True)


if __name__ == "__main__":
    sys.exit(main())
