"""`catalog debug`: the verbs for whoever looks after stores, and their options."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from catalog.cli.frame import Group, Run, command, pairs
from catalog.cli.parameters import COLLECTION, FILE, FOLDER, STORE, VERSION
from catalog.cli.results import Answer
from catalog.cli.settings import is_secret
from catalog.errors import UsageError

if TYPE_CHECKING:
    from catalog.editing import Edit


@click.group(cls=Group)
def debug() -> None:
    """Look inside a store at its own version, check it, copy it, mend it by hand."""


_html = click.option("--html", type=FILE, metavar="FILE", help="Also write it as a page for a browser.")


@command(debug)
@click.option("--collection", "only", type=COLLECTION, multiple=True, metavar="NAME", help="These alone; repeatable.")
@click.option("--ignore", type=COLLECTION, multiple=True, metavar="NAME", help="All but these; repeatable.")
@click.option("--consolidate", is_flag=True, help="Only rows that are there, each once.")
@click.option("--as-of", type=int, metavar="TS", help="As it was then.")
def dump(run: Run, *, only: tuple[str, ...], ignore: tuple[str, ...], consolidate: bool, as_of: int | None) -> Answer:
    """Write every stored row as a line of JSON, typed as at the store's own version."""
    from catalog.cli.reading import dump  # noqa: PLC0415 - a verb loads what it needs, and no other's

    return dump(run.environment, only=only, ignore=ignore, consolidate=consolidate, as_of=as_of)


@command(debug)
def epoch(run: Run) -> Answer:
    """Show who leads a store."""
    from catalog.cli.reading import epoch  # noqa: PLC0415

    return epoch(run.environment)


@command(debug)
@click.option("--shape", is_flag=True, help="Also measure rows, for `debug generate --like`.")
@click.option("--as-of", type=int, metavar="TS", help="As it was then.")
@_html
def stats(run: Run, *, shape: bool, as_of: int | None, html: str | None) -> Answer:
    """Show rows, files and bytes of each collection."""
    from catalog.cli.reading import stats  # noqa: PLC0415

    if html is None:
        return stats(run.environment, shape=shape, as_of=as_of)
    from catalog.cli.paging import stats_with_page  # noqa: PLC0415

    return stats_with_page(run.environment, html, run.screen.redact, shape=shape, as_of=as_of)


@command(debug, fences=True, leads=True)
@click.argument("collection", type=COLLECTION)
@click.argument("key")
@click.argument("value")
@click.option("--protected", is_flag=True, help="Allow the engine's own rows: version, fence, events.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def edit(run: Run, *, collection: str, key: str, value: str, protected: bool, yes: bool) -> Answer:
    """Replace the VALUE of a row, both given as JSON.

    Typed strictly at the store's own version; constraints are checked. Shows the change and asks.
    """
    from catalog.cli.editing import plan, write  # noqa: PLC0415

    environment = run.environment
    planned = plan(environment, collection, key, value, protected=protected)
    _ask(run, environment.store, planned, yes=yes)
    return write(environment, planned)


@command(debug, fences=True, leads=True)
@click.argument("collection", type=COLLECTION)
@click.argument("key")
@click.option("--protected", is_flag=True, help="Allow the engine's own rows: version, fence, events.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(run: Run, *, collection: str, key: str, protected: bool, yes: bool) -> Answer:
    """Delete a row; its key is given as JSON."""
    from catalog.cli.editing import plan, write  # noqa: PLC0415

    environment = run.environment
    planned = plan(environment, collection, key, None, protected=protected)
    _ask(run, environment.store, planned, yes=yes)
    return write(environment, planned)


def _ask(run: Run, store: str, planned: Edit, *, yes: bool) -> None:
    if not planned.is_same:
        run.screen.preview(planned)
        run.screen.confirm(f"The leader of {store} will be fenced, and this change committed.", yes=yes)


@command(debug)
@click.argument("source", type=STORE)
@click.argument("target", type=STORE)
@click.option("--target-option", multiple=True, metavar="NAME=VALUE", help="A storage option of the target alone.")
@click.option("--anonymise", is_flag=True, help="Replace names, SQL, comments and every other text that may tell.")
@click.option("--anonymise-key", metavar="KEY", help="Replace them as other copies with this key do; keep it secret.")
def copy(
    run: Run, *, source: str, target: str, target_option: tuple[str, ...], anonymise: bool, anonymise_key: str | None
) -> Answer:
    """Make a consistent copy of a live store, marked as a copy.

    With --anonymise the copy has the same rows, references and sizes, and none of the texts. The key is better given
    as CATALOG_ANONYMISE_KEY, where no list of processes shows it; without one, it is made up and thrown away.
    """
    from catalog.cli.debugging import copy  # noqa: PLC0415

    options = pairs("--target-option", target_option)
    run.screen.secrets += tuple(value for name, value in options.items() if is_secret(name))
    if anonymise_key is not None and not anonymise:
        raise UsageError(
            "--anonymise-key was given without --anonymise",
            "the copy would show every name",
            "add --anonymise, or leave the key out",
        )
    key = os.environ.get("CATALOG_ANONYMISE_KEY") or None if anonymise_key is None else anonymise_key
    run.screen.secrets += () if key is None else (key,)
    return copy(run.environment_at(source), target, target_options=options, anonymise=anonymise, key=key)


@command(debug, "upgrade-check", on_spark=True)
@click.argument("stores", type=STORE, nargs=-1, metavar="[STORE]...")
@click.option(
    "--scratch", type=FOLDER, metavar="DIR", help="For the copies; by default the folder for temporary files."
)
@_html
def upgrade_check(run: Run, *, stores: tuple[str, ...], scratch: str | None, html: str | None) -> Answer:
    """Upgrade a scratch copy of each STORE, and tell everything that is wrong.

    Every step runs on Spark and is verified on every row. The stores themselves are never touched. Exit code 1 means
    that at least one of them could not be upgraded as it is.
    """
    from catalog.cli.debugging import upgrade_check  # noqa: PLC0415

    environments = [run.environment_at(store) for store in stores] or [run.environment]
    if html is None:
        with run.screen.progress() as shown:
            return upgrade_check(environments, scratch=scratch, observer=shown)
    from catalog.cli.paging import upgrade_check_with_page  # noqa: PLC0415

    with run.screen.progress() as shown:
        return upgrade_check_with_page(environments, html, run.screen.redact, scratch=scratch, observer=shown)


@command(debug)
@click.option("--version", type=VERSION, metavar="N", help="By default the oldest that can be upgraded.")
@click.option("--rows", type=click.IntRange(0), metavar="N", default=1000, help="About so many (1000).")
@click.option("--seed", type=int, metavar="N", default=0, help="The same seed makes the same rows (0).")
@click.option(
    "--like", type=FILE, metavar="FILE", help="What `debug stats --shape --format json` said of a real store."
)
def generate(run: Run, *, version: int | None, rows: int, seed: int, like: str | None) -> Answer:
    """Make up a store of any version, in an empty place."""
    from catalog.cli.debugging import generate  # noqa: PLC0415

    return generate(run.environment, version=version, rows=rows, seed=seed, like=like)


@command(debug)
def fsck(run: Run) -> Answer:
    """Check everything in a store that can be checked; changes nothing."""
    from catalog.cli.debugging import fsck  # noqa: PLC0415

    return fsck(run.environment)


@command(debug)
@click.argument("collections", type=COLLECTION, nargs=-1, metavar="[COLLECTION]...")
def compact(run: Run, *, collections: tuple[str, ...]) -> Answer:
    """Make few files of many; no row changes, and nobody is fenced."""
    from catalog.cli.debugging import compact  # noqa: PLC0415

    return compact(run.environment, collections)


@command(debug)
@click.option("--retention", metavar="TIME", help="Keep what was the newest within this time (7d).")
@click.option("--dry-run", is_flag=True, help="Say what would be deleted, and delete nothing.")
@click.option("--yes", is_flag=True, help="Do not ask; it does for a --retention of one's own.")
def vacuum(run: Run, *, retention: str | None, dry_run: bool, yes: bool) -> Answer:
    """Delete files that no retained state refers to.

    Refuses while a migration runs.
    """
    from catalog.cli.debugging import vacuum  # noqa: PLC0415

    if retention is not None and not dry_run:
        run.screen.preview(vacuum(run.environment, retention=retention, dry_run=True).data)
        run.screen.confirm("What is deleted cannot be read again, and steps of before cannot be undone.", yes=yes)
    return vacuum(run.environment, retention=retention, dry_run=dry_run)
