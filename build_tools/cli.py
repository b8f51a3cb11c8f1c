"""The commands of the gate and their options; the only module of the gate that prints."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .check import check
from .findings import Format, Report, render
from .project_tree import AMEND, GateError, ProjectTree, translated_file_errors, tree_at

if TYPE_CHECKING:
    from .verbs.new_version import Written

OK, FINDINGS, USAGE = 0, 1, 2


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        with translated_file_errors():
            return _run(options)
    except GateError as error:
        print(error, file=sys.stderr)
        return USAGE


def _run(options: argparse.Namespace) -> int:
    tree = tree_at(options.root)
    if options.verb == "check":
        report = check(tree, require_history=options.require_history, base=options.base)
        print(render(report, Format(options.format)))
        return OK if report.ok else FINDINGS
    _run_verb(tree, options)
    return OK


def _run_verb(tree: ProjectTree, options: argparse.Namespace) -> None:
    from .protos.codegen import generate  # noqa: PLC0415 - a check is run often, and needs none of these
    from .verbs.new_version import make_version  # noqa: PLC0415
    from .verbs.release import release  # noqa: PLC0415
    from .verbs.restyle import restyle  # noqa: PLC0415
    from .verbs.retire import retire  # noqa: PLC0415
    from .verbs.show import overview  # noqa: PLC0415

    match options.verb:
        case "codegen":
            changed = generate(tree)
            written = f"{len(changed)} files written in {tree.relative(tree.generated)}"
            print(written if changed else "the generated code is up to date")
        case "snapshot":
            made, report = make_version(
                options.root,
                options.why,
                amended=options.amend,
                renumbered=options.renumber,
                same_types=options.same_types,
                base=options.base,
            )
            _print_written(made, report)
            if not report.ok:
                print(f"when it is done: {AMEND}")
        case "release":
            _print_written(release(tree, options.number), check(tree))
        case "retire":
            _print_written(retire(tree, options.version), check(tree))
        case "restyle":
            _print_written(restyle(tree, options.migration), check(tree))
        case _:
            print(overview(tree))


def _print_written(written: Written, report: Report) -> None:
    print(written.summary)
    for file in written.written:
        print(f"  {file}")
    for file in written.removed:
        print(f"  {file} (removed)")
    print(f"\n{'' if report.ok else 'Left to do:' + chr(10) * 2}{render(report, Format.TEXT)}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m {__package__}", description="Freezes the types of every version and checks them."
    )
    parser.add_argument("--root", type=Path, help="the project's folder (default: found from here upwards)")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    gate = verbs.add_parser("check", help="report every mistake; exit 0 clean, 1 findings, 2 usage")
    gate.add_argument("--root", type=Path, default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    gate.add_argument("--format", choices=[str(style) for style in Format], default="text")
    gate.add_argument("--require-history", action="store_true", help="missing git history is a finding, not a note")
    gate.add_argument("--base", metavar="REF", help="the branch this one is merged into (default: origin's, or main)")
    verbs.add_parser("codegen", help="generate the code of all types")
    recipe = verbs.add_parser("snapshot", help="make a new version from the edited proto/objects.proto")
    recipe.add_argument("why", nargs="?", help="what changes, in a few words")
    instead = recipe.add_mutually_exclusive_group()
    instead.add_argument("--amend", action="store_true", help="record unreleased versions again, as they are now")
    instead.add_argument("--renumber", action="store_true", help="move this branch's version behind the base branch's")
    instead.add_argument("--same-types", action="store_true", help="a version that changes rows only")
    recipe.add_argument("--base", metavar="REF", help="with --renumber: the branch that took the number")
    freeze = verbs.add_parser("release", help="freeze everything unreleased")
    freeze.add_argument("number", metavar="X.Y.Z")
    old = verbs.add_parser("retire", help="end support for versions below N")
    old.add_argument("version", type=int, metavar="N")
    looks = verbs.add_parser("restyle", help="record a cosmetic edit of a released migration")
    looks.add_argument("migration", metavar="vN_to_vM")
    verbs.add_parser("show", help="list the versions, their steps and releases")
    return parser
