"""The `catalog debug` commands and their options. `commands/debug_<command>.py` has what each one does."""

from __future__ import annotations

import click

from catalog.cli.app import Group, command
from catalog.cli.params import COLLECTION, FILE, FOLDER, STORE, VERSION


@click.group(cls=Group)
def debug() -> None:
    """Inspect, check, copy and edit a store at its own version."""


_html = click.option("--html", type=FILE, metavar="FILE", help="Also write a page for a browser.")


@command(debug)
@click.option(
    "--collection", "only", type=COLLECTION, multiple=True, metavar="NAME", help="Only this collection; repeatable."
)
@click.option("--ignore", type=COLLECTION, multiple=True, metavar="NAME", help="All but this collection; repeatable.")
@click.option("--consolidate", is_flag=True, help="Only the present rows, without their history.")
@click.option("--as-of", type=int, metavar="TS", help="The store as of this ts.")
def dump() -> None:
    """Write every stored row as a line of JSON."""


@command(debug)
def epoch() -> None:
    """Show the leader of a store."""


@command(debug)
@click.option("--shape", is_flag=True, help="Also measure the rows, for `debug generate --like`.")
@click.option("--as-of", type=int, metavar="TS", help="The store as of this ts.")
@_html
def stats() -> None:
    """Show the rows, files and bytes of each collection."""


@command(debug, fences=True, leads=True)
@click.argument("collection", type=COLLECTION)
@click.argument("key")
@click.argument("value")
@click.option("--protected", is_flag=True, help="Allow the engine's own rows, and an allocator that goes back.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def edit() -> None:
    """Replace the VALUE of the row with this KEY; both are JSON.

    Both must have exactly the types of the store's version, and constraints are checked. Shows the change, and asks
    for confirmation.
    """


@command(debug, fences=True, leads=True)
@click.argument("collection", type=COLLECTION)
@click.argument("key")
@click.option("--protected", is_flag=True, help="Allow the engine's own rows, and an allocator that goes back.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def delete() -> None:
    """Delete the row with this KEY, given as JSON."""


@command(debug)
@click.argument("source", type=STORE)
@click.argument("target", type=STORE)
@click.option(
    "--target-option", multiple=True, metavar="NAME=VALUE", help="A storage option of the target; repeatable."
)
@click.option("--anonymise", is_flag=True, help="Replace names, SQL, comments and every other revealing text.")
@click.option("--anonymise-key", metavar="KEY", help="The same key gives the same replacements; keep it secret.")
@click.option("--without-tables", is_flag=True, help="Leave the tables out; the items that name them are copied.")
def copy() -> None:
    """Make a consistent copy of a live store, marked as a copy.

    With --anonymise, the copy has the same rows, references and sizes, but none of the texts, and no tables. Give the
    key in the variable CATALOG_ANONYMISE_KEY: an option can be seen in the list of processes. Without a key, a random
    one is used and forgotten.
    """


@command(debug, "upgrade-check", on_spark=True)
@click.argument("stores", type=STORE, nargs=-1, metavar="[STORE]...")
@click.option(
    "--scratch", type=FOLDER, metavar="DIR", help="The folder for the copies; by default that for temporary files."
)
@_html
def upgrade_check() -> None:
    """Upgrade a scratch copy of each STORE, and report all problems.

    Runs every step on Spark and verifies every row. The stores themselves are not changed. The exit code is 1 if at
    least one of them cannot be upgraded as it is.
    """


@command(debug)
@click.option("--version", type=VERSION, metavar="N", help="The version; by default the oldest that can be upgraded.")
@click.option(
    "--rows", type=click.IntRange(0), metavar="N", default=1000, help="The approximate number of rows (1000)."
)
@click.option("--seed", type=int, metavar="N", default=0, help="The same seed gives the same rows (0).")
@click.option(
    "--like", type=FILE, metavar="FILE", help="The output of `debug stats --shape --format json` for a real store."
)
def generate() -> None:
    """Generate a store of any version with random rows, at an empty place."""


@command(debug)
@click.option("--every-state", is_flag=True, help="Also check the files and checksums of every retained state.")
def fsck() -> None:
    """Check everything in a store; changes nothing."""


@command(debug)
@click.argument("collections", type=COLLECTION, nargs=-1, metavar="[COLLECTION]...")
def compact() -> None:
    """Merge the files of each collection; changes no row, and does not fence."""


@command(debug)
@click.option("--retention", metavar="TIME", help="Keep the states of the last TIME (7d).")
@click.option("--dry-run", is_flag=True, help="Show what would be deleted; delete nothing.")
@click.option("--yes", is_flag=True, help="Do not ask for the confirmation that --retention needs.")
def vacuum() -> None:
    """Delete files that no retained state refers to.

    Fails while a migration runs.
    """
