"""The `catalog ddl` and `catalog table` commands and their options; `commands/` has what each one does."""

from __future__ import annotations

import click

from catalog.cli.app import Group, command
from catalog.cli.params import CHANGE, FILE, TABLE


@click.group(cls=Group)
def ddl() -> None:
    """Change the schemas of tables while they are read and written."""


@command(ddl)
@click.argument("statement")
@click.option("--detach", is_flag=True, help="Only submit it: the next leader, or `ddl adopt`, carries it out.")
@click.option(
    "--patience", metavar="TIME", default="60s", help="Wait this long for bulk writes that began before (60s)."
)
@click.option("--hold", is_flag=True, help="Stop before the old form goes, until it is resumed or cancelled.")
@click.option(
    "--rows-per-s", type=click.IntRange(0), metavar="N", default=0, help="The greatest speed; 0 for no limit (0)."
)
@click.option("--dry-run", is_flag=True, help="Show the stages; write nothing.")
def run() -> None:
    """Carry out a STATEMENT: CREATE, ALTER or DROP TABLE, CREATE or DROP INDEX.

    Shows its progress until it ends. A violation undoes the whole change. Ctrl-C leaves the change as it is, to be
    resumed or cancelled.
    """


@command(ddl, "list")
@click.option("--all", "everything", is_flag=True, help="Also the changes that are over.")
def list_changes() -> None:
    """List the schema changes that are not over."""


@command(ddl)
@click.argument("number", type=CHANGE, metavar="ID")
@click.option("--follow", is_flag=True, help="Show its progress until it is over, paused or held.")
def show() -> None:
    """Show a schema change: its stages, its progress, and what it waits for.

    With --follow, the exit code is 1 if the change fails, is cancelled or is paused.
    """


@command(ddl)
@click.argument("number", type=CHANGE, metavar="ID")
def pause() -> None:
    """Stop a schema change after its present step."""


@command(ddl)
@click.argument("number", type=CHANGE, metavar="ID")
def resume() -> None:
    """Carry on a schema change that was paused, is held, or was left by its process."""


@command(ddl)
@click.argument("number", type=CHANGE, metavar="ID")
def cancel() -> None:
    """Undo a schema change, in one commit; refused once it is visible."""


@command(ddl)
def adopt() -> None:
    """Carry out the schema changes that nobody carries out.

    These are the detached ones, and those whose processes have stopped. A process that does not answer is watched for
    a minute.
    """


@click.group(cls=Group)
def table() -> None:
    """Show, check and load a table."""


@command(table, "show")
@click.argument("name", type=TABLE)
def show_table() -> None:
    """Show the columns, indexes and constraints of a table, and the change that works on it."""


@command(table)
@click.argument("name", type=TABLE)
def check() -> None:
    """Compare every index with its rows both ways, and check every constraint.

    Changes nothing. The exit code is 1 if something is wrong.
    """


@command(table)
@click.argument("name", type=TABLE)
@click.argument("files", type=FILE, nargs=-1, required=True, metavar="FILE [FILE]...")
@click.option("--upsert", is_flag=True, help="Also replace rows that are there; by default keys must be new.")
def load() -> None:
    """Write the rows of parquet files to a table, in one commit.

    A column is found by its name. Columns with a default may be missing. Defaults, indexes and constraints apply as in
    every transaction.
    """
