"""The `catalog` command line: its commands and their options. `commands/<command>.py` has what each one does."""

from __future__ import annotations

import gc
import os
import sys

import click

from catalog.cli.app import Group, command, common, run, version_option
from catalog.cli.completion import VARIABLE, Shell, complete
from catalog.cli.debug_group import debug
from catalog.cli.params import COLLECTION, EARLIER_VERSION, FOLDER, LATER_VERSION, STORE
from catalog.cli.screen import show_candidates
from catalog.cli.signals import catch_signals
from catalog.cli.tables_group import ddl, table


@click.group(name="", cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@common
@version_option
def root(**_given: object) -> None:
    """The durable, versioned catalog of a Spark environment."""


def main() -> None:
    if shell := os.environ.get(VARIABLE):
        show_candidates(complete(root, shell, sys.argv[1:]))
        sys.exit()
    catch_signals()
    ended = run(root, sys.argv[1:])
    gc.freeze()  # the process ends: a last search for garbage would take a tenth of the time of a short command
    sys.exit(ended)


@command(root, fences=True, leads=True, on_spark=True, observed=True)
@click.option("--read-only", is_flag=True, help="Write nothing; run an upgrade on a scratch copy.")
@click.option("--reapply", is_flag=True, help="Also apply migrations that were undone.")
@click.option("--backup", type=STORE, metavar="URI", help="First copy the store to this place.")
def start() -> None:
    """Start the environment: lead its store, initialise or upgrade it.

    Run this in the entry point of a service. The exit code is 3 if --read-only finds pending migrations.
    """


@command(root, leads=True)
@click.option("--dry-run", is_flag=True, help="Show what would be written; write nothing.")
def init() -> None:
    """Initialise an empty store at the current version."""


@command(root)
@click.argument("path", type=FOLDER)
@click.option("--name", metavar="NAME", help="The name of the package; by default that of the folder.")
def new() -> None:
    """Create a new catalog project in the empty folder PATH.

    It has some types, their first version, the gate, tests and CI. Without --name, asks for the name on a terminal.
    """


@command(root)
@click.argument("why", required=False)
@click.option("--amend", is_flag=True, help="Record the unreleased versions again, as edited.")
@click.option("--renumber", is_flag=True, help="Renumber this branch's version to follow the base branch.")
@click.option("--same-types", is_flag=True, help="Create a version that changes rows, but no types.")
@click.option("--base", metavar="REF", help="With --renumber: the base branch.")
@click.option("--root", type=FOLDER, metavar="DIR", help="The project; by default this folder or the nearest above.")
def create() -> None:
    """Create a new version from the edited proto/objects.proto.

    Freezes the types, and writes the migration, its test, its entry in the upgrade and its hashes. WHY becomes the
    first line of the migration. Then lists what is left to fill in.
    """


@command(root, fences=True, leads=True, on_spark=True, observed=True)
@click.option("--all", "everything", is_flag=True, help="Run every pending migration; the default.")
@click.option("--next", "only_next", is_flag=True, help="Run only the next migration.")
@click.option("--until", type=LATER_VERSION, metavar="N", help="Run the migrations up to version N.")
@click.option("--dry-run", is_flag=True, help="Show the plan; write nothing.")
@click.option("--reapply", is_flag=True, help="Also apply migrations that were undone.")
def apply() -> None:
    """Run the pending migrations.

    --dry-run lists the steps, and the collections, files, rows and bytes that each rewrites. It does not fence.
    """


@command(root)
@click.option("--check", is_flag=True, help="Exit with 3, 4 or 6 if the store is not up to date and sound.")
def info() -> None:
    """Show the version of a store, its earlier versions, and those it can be upgraded to."""


@command(root)
@click.option("--graph", is_flag=True, help="Draw a graph of the versions.")
@click.option("--all", "unfolded", is_flag=True, help="Show every commit on its own line.")
@click.option("--tables", is_flag=True, help="Show the commits of the tables, which have a ts of their own.")
@click.option("--since", metavar="WHEN", help="Start at a ts, an age or a time: 41, 2h, 2026-11-17T09:30.")
@click.option(
    "--limit", type=click.IntRange(0), metavar="N", default=30, help="The greatest number of lines (30); 0 for all."
)
def history() -> None:
    """Show what happened to a store, the newest first.

    Lists commits, migrations and undos, failed runs, fences and maintenance. Consecutive ordinary commits share a
    line. Migrations are kept for ever, other commits until retention ends. Times are UTC.
    """


@command(root)
def validate() -> None:
    """Compare recorded checksums with the migrations and types of this build.

    Lists every mismatch. The exit code is 4 if there is one.
    """


@command(root, fences=True, leads=True)
@click.option("--to", type=EARLIER_VERSION, metavar="N", help="Undo down to version N; by default one step.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def undo() -> None:
    """Undo the newest migration.

    Restores exactly the rows from before it, with one commit per step. If that is not possible, changes nothing and
    says why.
    """


@command(root, fences=True)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def abort() -> None:
    """Mark a running migration as failed.

    Fences its process and records the run as ERROR, in one commit. None of its changes was applied.
    """


@command(root)
@click.option("--checksums", is_flag=True, help="Also record the checksums of this build's migrations.")
@click.option("--accept-loss", is_flag=True, help="Leave out a commit of which nothing proves what it held.")
@click.option("--dry-run", is_flag=True, help="Show what is wrong; change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def repair() -> None:
    """Repair what a crash, or a damaged log entry, can leave behind.

    Restores a damaged log entry if its content can be proven, else says what is lost and, if it is the newest, sets
    it aside. Records the run of a dead process as ERROR. With --checksums, shows each mismatch and records the checksum
    of this build. Does not fence.
    """


@command(root, fences=True)
@click.option("--dry-run", is_flag=True, help="Show what would be removed; remove nothing.")
@click.option("--name", metavar="NAME", help="Confirm with the name of the store, the last part of its URI.")
def clean() -> None:
    """Remove a store; its name must be typed, or given by --name."""


@command(root)
@click.argument("collection", type=COLLECTION)
@click.option("--key", metavar="KEY", help="The key of one row, as JSON or FIELD=VALUE,FIELD=VALUE.")
@click.option("--where", multiple=True, metavar="TEST", help="Only rows that pass, such as 'name~^u' or 'key.id>=3'.")
@click.option("--as-of", type=int, metavar="TS", help="The rows as of this ts.")
@click.option(
    "--limit", type=click.IntRange(0), metavar="N", default=100, help="The greatest number of rows (100); 0 for all."
)
def show() -> None:
    """Show the rows of a COLLECTION, at the store's own version.

    A TEST is a field, one of = != < <= > >= ~ (a pattern), and a value. The field belongs to the value of a row, or
    else to its key; `key.` or `value.` before it chooses one. Dots separate nested fields.
    """


@command(root)
@click.argument("collection", type=COLLECTION)
@click.option(
    "--since", metavar="WHEN", help="Only changes after a ts, an age, a time or `now`: 41, 2h, 2026-11-17T09:30."
)
@click.option("--until", type=click.IntRange(0), metavar="TS", help="End after this ts.")
@click.option("--once", is_flag=True, help="End at the newest ts.")
def subscribe() -> None:
    """Follow a COLLECTION: show its rows, and then every change.

    Continues until Ctrl-C, or until the store changes its version; the last lines say from which ts to resume. With
    --format json, each row is a line with its ts and diff, and the last line is the document of the command.
    """


@command(root, on_spark=True, forgiving=True)
@click.option("--deep", is_flag=True, help="Also read every row, and start Spark; this may take long.")
@click.option("--probe", is_flag=True, help="Also write an object to the object store, and delete it.")
@click.option("--scratch", type=FOLDER, metavar="DIR", help="The folder for scratch copies.")
def doctor() -> None:
    """Examine this machine and, if one is named, a store.

    Each check is ok, a warning or a problem, and says what to do. Leaves everything as it was; writes to a folder to
    test it, to an object store only with --probe. Starts Java only with --deep or --spark. The exit code is 0 with
    warnings; with problems it is 1, or the exit code that all of them share.
    """


@command(root, forgiving=True)
@click.argument("shell", type=click.Choice([*map(str, Shell)]), metavar="SHELL")
def completion() -> None:
    """Print the completion script of a SHELL: bash, zsh or fish.

    For bash, in ~/.bashrc: eval "$(catalog completion bash)"; for zsh the same in ~/.zshrc; for fish, in
    ~/.config/fish/config.fish: catalog completion fish | source.
    """


@command(root, on_spark=True)
@click.argument("statement", required=False)
@click.option("--as-of", type=int, metavar="TS", help="The rows as of this ts.")
@click.option(
    "--limit", type=click.IntRange(0), metavar="N", default=100, help="The greatest number of rows (100); 0 for all."
)
@click.option("--csv", is_flag=True, help="Write rows as CSV.")
def sql() -> None:
    """Query a store with an SQL STATEMENT, on Spark.

    Each collection is a table with a column for each field of key and value; fields of the same name are key_NAME and
    value_NAME. SHOW TABLES lists the tables, DESCRIBE the columns of one. Statements that write are refused. Without
    a statement, or with -, reads it from standard input; on a terminal, starts a shell.
    """


@command(root)
def tables() -> None:
    """List the tables of a store."""


root.add_command(table)
root.add_command(ddl)


@root.group(cls=Group)
def config() -> None:
    """Show the settings."""


@command(config, "show")
def show_config() -> None:
    """Show every setting, and where it came from."""


root.add_command(debug)
