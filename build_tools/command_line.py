"""The verbs of the gate and their options; the only module of the gate that prints."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .check import check
from .codegen import generate
from .findings import Format, render
from .overview import overview
from .release import release
from .restyle import restyle
from .retire import retire
from .snapshot import Made, amend, create, renumber
from .tree import AMEND, GateError, Tree, find_tree

OK, FINDINGS, USAGE = 0, 1, 2


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        tree = find_tree(Path.cwd()) if options.root is None else find_tree(options.root, search=False)
        return _run(tree, options)
    except GateError as error:
        print(error, file=sys.stderr)
    except (OSError, UnicodeDecodeError) as error:
        print(GateError("a file cannot be read or written", str(error), "mend that first"), file=sys.stderr)
    return USAGE


def _run(tree: Tree, options: argparse.Namespace) -> int:
    match options.verb:
        case "check":
            report = check(tree, require_history=options.require_history, base=options.base)
            print(render(report, Format(options.format)))
            return OK if report.ok else FINDINGS
        case "codegen":
            changed = generate(tree)
            print(
                f"{len(changed)} files written in {tree.relative(tree.generated)}"
                if changed
                else "generated code is fresh"
            )
        case "snapshot":
            return _recipe(tree, options)
        case "release":
            _tell(release(tree, options.number))
            _tell_what_is_left(tree)
        case "retire":
            _tell(retire(tree, options.version))
            _tell_what_is_left(tree)
        case "restyle":
            _tell(restyle(tree, options.migration))
            _tell_what_is_left(tree)
        case _:
            print(overview(tree))
    return OK


def _recipe(tree: Tree, options: argparse.Namespace) -> int:
    if options.amend:
        made = amend(tree)
    elif options.renumber:
        made = renumber(tree, options.base)
    else:
        made = create(tree, options.why or "", same_types=options.same_types)
    _tell(made)
    if not _tell_what_is_left(tree):
        print(f"when it is done: {AMEND}")
    return OK


def _tell(made: Made) -> None:
    print(made.summary)
    for file in made.written:
        print(f"  {file}")
    for file in made.removed:
        print(f"  {file} (removed)")


def _tell_what_is_left(tree: Tree) -> bool:
    report = check(tree)
    print(f"\n{'' if report.ok else 'Left to do:' + chr(10) * 2}{render(report, Format.TEXT)}")
    return report.ok


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
