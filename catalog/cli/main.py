"""The `catalog` command: its verbs and their options, each handed to a plain function."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from catalog.cli.completion import VARIABLE, Shell, complete, script_of
from catalog.cli.debug import debug
from catalog.cli.frame import Group, Run, catch_signals, command, common, run, version_option
from catalog.cli.parameters import COLLECTION, EARLIER_VERSION, FOLDER, LATER_VERSION, STORE
from catalog.cli.render import show_candidates
from catalog.cli.results import Answer
from catalog.errors import ChecksumError, UsageError


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
    sys.exit(run(root, sys.argv[1:]))


@command(root, fences=True, leads=True, on_spark=True, observed=True)
@click.option("--read-only", is_flag=True, help="Serve it as it is, or try the upgrade on a scratch copy.")
@click.option("--reapply", is_flag=True, help="Apply again what somebody undid.")
@click.option("--backup", type=STORE, metavar="URI", help="Make a consistent copy there first.")
def start(run: Run, *, read_only: bool, reapply: bool, backup: str | None) -> Answer:
    """Start the environment: lead its store, initialise or upgrade it.

    What the entry point of a service runs. Ends with 3 if --read-only finds migrations pending.
    """
    from catalog.cli.upgrading import start  # noqa: PLC0415 - a verb loads what it needs, and no other's
    from catalog.cli.watching import watched  # noqa: PLC0415

    environment = run.environment
    with watched(run, environment) as watch:
        return watch.settle(start(environment, read_only=read_only, reapply=reapply, backup=backup, observer=watch))


@command(root, leads=True)
@click.option("--dry-run", is_flag=True, help="Say what would be written, and write nothing.")
def init(run: Run, *, dry_run: bool) -> Answer:
    """Initialise an empty store at the current version."""
    from catalog.cli.upgrading import init  # noqa: PLC0415

    return init(run.environment, dry_run=dry_run)


@command(root)
@click.argument("path", type=FOLDER)
@click.option("--name", metavar="NAME", help="What its package is called; by default like the folder.")
def new(run: Run, *, path: str, name: str | None) -> Answer:
    """Make a catalog of your own in an empty folder, PATH.

    With types to begin with, their first version, the gate, tests and CI. Asks for a name on a terminal.
    """
    from catalog.cli.creating import new, offer_name  # noqa: PLC0415

    if name is None:
        offered, fits = offer_name(path)
        name = run.screen.ask("Name of the package", offered, offers=fits)
    return new(path, name)


@command(root)
@click.argument("why", required=False)
@click.option("--amend", is_flag=True, help="Record unreleased versions again, as they are now.")
@click.option("--renumber", is_flag=True, help="Move this branch's version behind the base branch's.")
@click.option("--same-types", is_flag=True, help="Make a version that changes rows only.")
@click.option("--base", metavar="REF", help="With --renumber: the branch that took the number.")
@click.option("--root", type=FOLDER, metavar="DIR", help="The project's folder; by default found from here upwards.")
def create(_run: Run, why: str | None, **options: Any) -> Answer:  # noqa: ANN401 - click's
    """Make a new version from the edited proto/objects.proto.

    Freezes the types and writes the migration, its test, its arm and its hashes; WHY becomes the migration's first
    line. Then tells what is left to fill in.
    """
    from catalog.cli.creating import create  # noqa: PLC0415

    return create(why, **options)


@command(root, fences=True, leads=True, on_spark=True, observed=True)
@click.option("--all", "everything", is_flag=True, help="Every migration that is pending; the default.")
@click.option("--next", "only_next", is_flag=True, help="The next one alone.")
@click.option("--until", type=LATER_VERSION, metavar="N", help="Those up to version N, N included.")
@click.option("--dry-run", is_flag=True, help="Show the plan, and write nothing.")
@click.option("--reapply", is_flag=True, help="Apply again what somebody undid.")
def apply(run: Run, *, everything: bool, only_next: bool, until: int | None, dry_run: bool, reapply: bool) -> Answer:
    """Run the migrations that are pending.

    --dry-run answers steps, forms, collections, files, rows and bytes to rewrite; it fences nobody.
    """
    from catalog.cli.upgrading import apply, plan_apply  # noqa: PLC0415
    from catalog.cli.watching import watched  # noqa: PLC0415

    if everything + only_next + (until is not None) > 1:
        raise UsageError(
            "--all, --next and --until exclude each other", "each says how far to go", "give one of them, or none"
        )
    environment = run.environment
    if dry_run:
        return plan_apply(environment, until=until, only_next=only_next, reapply=reapply)
    with watched(run, environment) as watch:
        return watch.settle(apply(environment, until=until, only_next=only_next, reapply=reapply, observer=watch))


@command(root)
@click.option("--check", is_flag=True, help="Exit with 3, 4 or 6 if the store is not up to date and in order.")
def info(run: Run, *, check: bool) -> Answer:
    """Show the version of a store, and every version that it has been or can be at."""
    from catalog.cli.looking import info  # noqa: PLC0415

    return info(run.environment, check=check)


@command(root)
@click.option("--graph", is_flag=True, help="Draw the versions as rails.")
@click.option("--all", "unfolded", is_flag=True, help="Every commit on a line of its own.")
@click.option("--since", metavar="WHEN", help="From a ts, a time ago or a time on: 41, 2h, 2026-11-17T09:30.")
@click.option("--limit", type=click.IntRange(0), metavar="N", default=30, help="At most so many lines (30); 0: all.")
def history(run: Run, *, graph: bool, unfolded: bool, since: str | None, limit: int) -> Answer:
    """Show what happened to a store, the newest first.

    Commits, migrations and undos, failed runs, fences and maintenance. Ordinary commits that follow each other are one
    line. Migrations are told for ever, other commits until they are retired. Times are UTC.
    """
    from catalog.cli.answers import Graph  # noqa: PLC0415
    from catalog.cli.recalling import history  # noqa: PLC0415

    answer = history(run.environment, since=since, limit=limit, unfolded=unfolded)
    return Answer(Graph(answer.data)) if graph and run.screen.format == "text" else answer


@command(root)
def validate(run: Run) -> Answer:
    """Compare recorded checksums with the migrations and types of this build.

    Every mismatch is listed, not only the first; the exit code is 4 then.
    """
    from catalog.cli.looking import validate  # noqa: PLC0415

    return validate(run.environment)


@command(root, fences=True, leads=True)
@click.option("--to", type=EARLIER_VERSION, metavar="N", help="Down to version N; by default one step.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def undo(run: Run, *, to: int | None, yes: bool) -> Answer:
    """Take the newest migration back.

    Gives back the rows from before it exactly, in one commit a step, or does nothing and says why.
    """
    from catalog.cli.upgrading import plan_undo, undo  # noqa: PLC0415

    environment = run.environment
    planned = plan_undo(environment, to=to)
    if not planned.data.steps:
        return planned
    run.screen.preview(planned.data)
    run.screen.confirm("Its leader will be fenced, and this undone.", yes=yes)
    return undo(environment, to=planned.data.version)


@command(root, fences=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
def abort(run: Run, *, yes: bool) -> Answer:
    """Give up a migration that is said to run.

    Its process is fenced and the run is an ERROR, in one commit. Nothing of it was applied.
    """
    from catalog.cli.upgrading import abort, running  # noqa: PLC0415

    environment = run.environment
    found = running(environment)
    if not found.data.steps:
        return found
    run.screen.preview(found.data)
    run.screen.confirm("Whoever runs it will be fenced, and it will be given up.", yes=yes)
    return abort(environment)


@command(root)
@click.option("--checksums", is_flag=True, help="Record the checksums of this build's migrations instead.")
@click.option("--dry-run", is_flag=True, help="Say what is wrong, and change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def repair(run: Run, *, checksums: bool, dry_run: bool, yes: bool) -> Answer:
    """Mend what a crash can leave behind.

    Sets aside a torn log entry that was never acknowledged, and marks the run of a dead process as ERROR. With
    --checksums shows each difference, and records what this build has. Fences nobody.
    """
    from catalog.cli.mending import diagnose, is_mendable, repair  # noqa: PLC0415

    environment = run.environment
    found = diagnose(environment, checksums=checksums)
    diagnosis = found.data.diagnosis
    if dry_run or not is_mendable(diagnosis, checksums=checksums):
        return found
    run.screen.preview(found.data)
    run.screen.confirm(f"This will be mended in {environment.store}.", yes=yes)
    left = found.error if isinstance(found.error, ChecksumError) else None
    return Answer(repair(environment, diagnosis, checksums=checksums).data, left)


@command(root, fences=True)
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@click.option("--name", metavar="NAME", help="Agree beforehand, by the last part of the store's address.")
def clean(run: Run, *, dry_run: bool, name: str | None) -> Answer:
    """Remove a store, after its name is typed or given."""
    from catalog.cli.mending import clean, name_of  # noqa: PLC0415

    environment = run.environment
    planned, expected = clean(environment, dry_run=True), name_of(environment)
    if dry_run:
        return planned
    if name is not None and name != expected:
        raise click.UsageError(f"--name {name} is not the name of this store, which is {expected}")
    run.screen.preview(planned.data)
    question = "Its leader will be fenced, and it will be removed for ever."
    run.screen.confirm(question, yes=name == expected, expected=expected, flag=f"--name {expected}")
    return clean(environment)


@command(root)
@click.argument("collection", type=COLLECTION)
@click.option("--key", metavar="KEY", help="This row: its key as JSON, or FIELD=VALUE,FIELD=VALUE.")
@click.option("--where", multiple=True, metavar="TEST", help="Rows that pass, such as 'name~^u' or 'key.id>=3'.")
@click.option("--as-of", type=int, metavar="TS", help="As they were then.")
@click.option("--limit", type=click.IntRange(0), metavar="N", default=100, help="At most so many (100); 0: all.")
def show(
    run: Run, *, collection: str, key: str | None, where: tuple[str, ...], as_of: int | None, limit: int
) -> Answer:
    """Show the rows of a COLLECTION, at the store's own version.

    A test is a FIELD, one of = != < <= > >= ~ (a pattern), and a value. A field is looked for in the value and then in
    the key, unless it begins with `key.` or `value.`; dots lead into what it holds.
    """
    from catalog.cli.reading import show  # noqa: PLC0415

    return show(run.environment, collection, key=key, where=where, as_of=as_of, limit=limit)


@command(root)
@click.argument("collection", type=COLLECTION)
@click.option("--since", metavar="WHEN", help="Only changes after a ts, a time or `now`: 41, 2h, 2026-11-17T09:30.")
@click.option("--until", type=click.IntRange(0), metavar="TS", help="End when this ts is reached.")
@click.option("--once", is_flag=True, help="End at the newest ts.")
def subscribe(run: Run, *, collection: str, since: str | None, until: int | None, once: bool) -> Answer:
    """Follow a COLLECTION: show its rows, and then every change as it comes.

    Goes on until Ctrl-C, or until the store changes its version; how it ended says from which ts to go on. With
    --format json each row is a line with its ts and diff, and the document that says how it ended is the last.
    """
    from catalog.cli.subscribing import subscribe  # noqa: PLC0415

    if once and until is not None:
        raise UsageError("--once and --until exclude each other", "each says where to end", "give one of them, or none")
    return subscribe(run.environment, collection, run.screen.stream, since=since, until=until, once=once)


@command(root, on_spark=True, forgiving=True)
@click.option("--deep", is_flag=True, help="Read every row, and start Spark; it takes as long as that takes.")
@click.option("--probe", is_flag=True, help="Also write to an object store: one object, deleted at once.")
@click.option("--scratch", type=FOLDER, metavar="DIR", help="Where scratch copies would be made.")
def doctor(run: Run, *, deep: bool, probe: bool, scratch: str | None) -> Answer:
    """Examine this machine and, if one is named, a store.

    Says of each thing whether it is ok, a warning or a problem, and what to do. Changes nothing: a folder is written to
    and left as it was, an object store only with --probe. Starts no Java without --deep or --spark. Warnings end with
    0, problems with 1, or with the exit code that all of them would lead to.
    """
    from catalog.cli.examining import doctor  # noqa: PLC0415

    return doctor(run.settings, deep=deep, probe=probe, scratch=scratch)


@command(root, forgiving=True)
@click.argument("shell", type=click.Choice([*map(str, Shell)]), metavar="SHELL")
def completion(run: Run, *, shell: str) -> Answer:
    """Print the script by which a SHELL completes commands: bash, zsh or fish.

    For bash, in ~/.bashrc: eval "$(catalog completion bash)"; for zsh the same in ~/.zshrc; for fish, in
    ~/.config/fish/config.fish: catalog completion fish | source.
    """
    from catalog.cli.answers import Script  # noqa: PLC0415

    if run.settings.all["format"].source != "--format":
        run.screen.format = "text"  # a shell evaluates it, in whatever format programs are answered otherwise
    return Answer(Script(shell, script_of(Shell(shell))))


@command(root, on_spark=True)
@click.argument("statement", required=False)
@click.option("--as-of", type=int, metavar="TS", help="Rows as they were then.")
@click.option("--limit", type=click.IntRange(0), metavar="N", default=100, help="At most so many (100); 0: all.")
@click.option("--csv", is_flag=True, help="Write rows as CSV.")
def sql(run: Run, *, statement: str | None, as_of: int | None, limit: int, csv: bool) -> Answer:
    """Ask a store by a STATEMENT of SQL, answered by Spark.

    Its collections are relations: a column for each field of key and value; those with a name in common are key_NAME
    and value_NAME. SHOW TABLES lists them, DESCRIBE their columns. Nothing that writes is run. Without a statement, or
    with -, it is read from standard input; on a terminal there is a shell.
    """
    from catalog.cli.asking import Inquiry, read_statement, rows_answer  # noqa: PLC0415

    if csv and run.screen.format == "json":
        raise UsageError(
            "--csv and --format json exclude each other", "each says how to write rows", "give one of them"
        )
    inquiry = Inquiry(run.environment, as_of, limit, run.screen.waiting)
    if statement is None and run.screen.is_attended:
        from catalog.cli.shell import SqlShell  # noqa: PLC0415

        return SqlShell(inquiry, run.screen, csv=csv).run()
    return rows_answer(run.screen, inquiry.ask(read_statement(statement)), csv=csv)


@root.group(cls=Group)
def config() -> None:
    """The settings of this command."""


@command(config, "show")
def show_config(run: Run) -> Answer:
    """Show every setting, and where it came from."""
    from catalog.cli.looking import show_config  # noqa: PLC0415

    return show_config(run.settings)


root.add_command(debug)
