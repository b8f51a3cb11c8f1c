"""The verbs of the `catalog` command and their options."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec

import click

from catalog import __version__


@click.group()
@click.version_option(__version__, prog_name="catalog")
def main() -> None:
    """The durable, versioned catalog of a Spark environment."""


@main.command()
@click.argument("why", required=False)
@click.option("--amend", is_flag=True, help="Record unreleased versions again, as they are now.")
@click.option("--renumber", is_flag=True, help="Move this branch's version behind the base branch's.")
@click.option("--same-types", is_flag=True, help="Make a version that changes rows only.")
@click.option("--base", metavar="REF", help="With --renumber: the branch that took the number.")
@click.option("--root", metavar="DIR", help="The project's folder; by default found from here upwards.")
def create(
    why: str | None, *, amend: bool, renumber: bool, same_types: bool, base: str | None, root: str | None
) -> None:
    """Make a new version from the edited proto/objects.proto.

    Freezes the types and writes the migration, its test, its arm and its hashes; WHY becomes the migration's first
    line. Then tells what is left to fill in.
    """
    words = ["--root", root] if root is not None else []
    words += ["snapshot"]
    words += [why] if why is not None else []
    words += ["--amend"] * amend + ["--renumber"] * renumber + ["--same-types"] * same_types
    words += ["--base", base] if base is not None else []
    sys.exit(_run_gate(words))


def _run_gate(words: list[str]) -> int:
    """Run the gate that the wheel carries, or in a source tree the one beside the package."""
    name = "catalog._gate" if find_spec("catalog._gate") else "build_tools"
    status: int = import_module(f"{name}.command_line").main(words)
    return status
