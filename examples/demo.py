"""A demonstration: generate a store of the oldest version, upgrade it on Spark, and show the result.

Everything shown is read from that store, which is removed afterwards. `./dev demo` runs it with the built wheel.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from google.protobuf.message import Message
from google.protobuf.text_format import MessageToString

from catalog import MIN_STASH_VERSION, STASH_VERSION, Catalog, open_catalog
from catalog.cli.commands.apply import plan_of
from catalog.cli.screen import make_console, say
from catalog.cli.text.apply import plan_table
from catalog.cli.text.formats import size
from catalog.cli.text.progress import shown_progress
from catalog.cli.text.table import NONE, TextTable, table
from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.protocol import AppTxn, Operation
from catalog.engine.migrate.plan import LiveRows, plan
from catalog.engine.migrate.recorder import MigrationEvent
from catalog.engine.stash.view import BaseFileCache, load_view
from catalog.engine.storage.layout import stash_uri
from catalog.errors import CatalogError
from catalog.objects import ClusterReplicaKey, CommentKey, ItemKey, MigrationEventKey
from catalog.tools.generator import generate
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
            demonstrate(Path(folder) / "store", make_console())
    except CatalogError as error:
        say(make_console(sys.stderr), *str(error).splitlines())
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def demonstrate(store: Path, console: Console, *, rows: int = _ROWS, spark: SparkSession | None = None) -> None:
    """Make a store of the oldest version in an empty place, plan its upgrade, upgrade it, and show what came of it."""
    made = generate(PROJECT, store, MIN_STASH_VERSION, rows, _SEED)
    log = DeltaLog(stash_uri(str(store)))
    before = log.state(log.verify())
    held = sum(1 for count in made.rows.values() if count)
    _show_heading(console, f"A store of version {before.app_txns[AppTxn.STASH_VERSION]}, made up")
    say(console, f"{made.total:,} rows in {held} collections, {len(before.files)} files, ts {before.version}")

    _show_heading(console, f"What an upgrade to version {STASH_VERSION} will rewrite")
    console.print(plan_table(plan_of(plan(PROJECT, before, made.version, STASH_VERSION, LiveRows(log)))))
    say(console, "Files to be replaced, with their rows and bytes, as they are now; - where none is.")

    _show_heading(console, "The upgrade, on Spark")
    with shown_progress(console) as shown:
        open_catalog(store, spark=spark, observer=shown).close()
    with open_catalog(store, "read-only") as cat:
        _show_result(console, cat, log, before.version)


def _show_result(console: Console, cat: Catalog, log: DeltaLog, first_ts: int) -> None:
    _show_heading(console, f"The store is at version {cat.version}, ts {cat.ts}")
    console.print(_events_table(MigrationEvent(key.id, value) for key, value in cat.rows(MigrationEventKey)))
    for title, key_type in (("Comments", CommentKey), ("Replicas", ClusterReplicaKey)):
        rows = list(cat.rows(key_type))
        _show_heading(console, f"{title} have rows of their own now: the first of {len(rows):,}")
        shown = ((_text(key), _text(value)) for key, value in islice(rows, _ROWS_SHOWN))
        _show_table(console, ("key", "value"), shown)
    comments = Counter(key.item_id for key, _ in cat.rows(CommentKey))
    if comments:
        number = comments.most_common(1)[0][0]
        _show_heading(console, f"Item {number} through time, but for its {_STATEMENT}")
        _show_table(console, ("ts", "version", "value"), _past(cat, log, first_ts, number))


def _past(cat: Catalog, log: DeltaLog, first_ts: int, number: int) -> Iterator[tuple[int, int, str]]:
    """An item as it was before the upgrade, while it held its comments, and now."""
    view = load_view(BaseFileCache(log), log.state(first_ts), ("item",))
    stored = next(json.loads(value) for key, value in view.rows("item") if json.loads(key)["id"] == number)
    text = json.dumps({name: field for name, field in stored.items() if name != _STATEMENT}, ensure_ascii=False)
    yield first_ts, view.state.app_txns[AppTxn.STASH_VERSION], text
    steps = [commit for commit in log.commits(first_ts + 1, cat.ts) if commit.operation is Operation.MIGRATE]
    for ts, version in ((commit.version, commit.app_txns[AppTxn.STASH_VERSION]) for commit in steps):
        if version in {_LAST_WITH_COMMENTS, cat.version}:
            for key, value in cat.rows(ItemKey, as_of=ts):
                if key.id == number:  # type: ignore[attr-defined]
                    yield ts, version, _text(value)


def _show_heading(console: Console, text: str) -> None:
    console.print()
    console.print(text, style="bold")


def _show_table(console: Console, names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    console.print(table(names, rows=rows))


def _events_table(events: Iterable[MigrationEvent]) -> TextTable:
    """Show the result of each run of a step."""
    made = table(["version", "step", "state"], ["rows before", "rows after", "bytes", "seconds"])
    for event in events:
        value = event.value
        counted, ended = value.HasField("rows_after"), value.HasField("completed_ms")
        made.add_row(
            str(value.version),
            value.name,
            event.state.name,
            *((f"{value.rows_before:,}", f"{value.rows_after:,}") if counted else (NONE, NONE)),
            f"{size(value.bytes_before)} to {size(value.bytes_after)}" if counted else NONE,
            f"{(value.completed_ms - value.started_ms) / 1000:.1f}" if ended else NONE,
        )
    return made


def _text(message: Message) -> str:
    shown = type(message)()
    shown.CopyFrom(message)
    if _STATEMENT in message.DESCRIPTOR.fields_by_name:
        shown.ClearField(_STATEMENT)
    return MessageToString(shown, as_one_line=True)


if __name__ == "__main__":
    sys.exit(main())
