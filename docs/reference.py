"""Writes the generated reference pages, and checks that they and all links in the documentation are right.

Without `--write` nothing is changed: a page that differs from what would be written is an error.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from build_tools.codes import CODES
from build_tools.wire import Rule
from catalog import errors
from catalog.cli.frame import Command
from catalog.cli.main import root
from catalog.cli.results import Answer, Exit, envelope, exit_of
from catalog.cli.settings import FILES, OPTIONS, read_settings
from catalog.errors import CatalogError, RetryableError, UpgradeNeededError

ROOT = Path(__file__).parents[1]
GROUPS = {
    "T": "The types",
    "S": "Snapshots",
    "H": "Recorded hashes",
    "V": "Versions",
    "D": "The dispatch",
    "M": "Migrations",
    "I": "Imports elsewhere",
}
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
HEADING = re.compile(r"(?m)^#+ (.+)$")
EXITS = {
    Exit.DONE: ("done, or there was nothing to do", "every command"),
    Exit.FAILED: (
        "it failed, or there are findings",
        "every command; `debug fsck` and `debug upgrade-check` for findings",
    ),
    Exit.USAGE: ("the call or a setting is wrong, or nobody agreed; nothing was done", "every command"),
    Exit.PENDING: (
        "migrations are pending; or the next one was undone, and nobody asked to apply it again",
        "`info --check`, `start --read-only`; `start` and `apply` without `--reapply`",
    ),
    Exit.CHECKSUM: (
        "a migration that the store has behind it is not the one of this build",
        "`validate`, `info --check`, `repair` without `--checksums`; `start` and `apply` with something to apply",
    ),
    Exit.HELD: (
        "another process leads and `--timeout` was over first, or has fenced this one, or is of a higher generation",
        "the commands that fence, and `init`",
    ),
    Exit.TERMINATED: ("ended by SIGTERM; what was committed until then stays", "every command"),
    Exit.UNFINISHED: (
        "a migration began and did not end, or failed; or one runs now and is in the way",
        "`info --check`, `debug vacuum`",
    ),
    Exit.INTERRUPTED: ("somebody pressed Ctrl-C", "every command"),
}
OTHER_VARIABLES = {
    "CATALOG_CONFIG_FILE": "like `--config-file`",
    "CATALOG_ENV": "like `--env`",
    "CATALOG_STORAGE_OPTIONS": 'storage options as one JSON object, such as `{"aws_region": "eu-west-1"}`',
    "CATALOG_TRACEBACK": "if it is set, an error of the program itself ends in its traceback, to be reported",
    "NO_COLOR": "if it is set, nothing is coloured",
}
BY_HAND = "<!-- Generated up to here by docs/reference.py; what follows is written by hand. -->\n"
WIDTH = 80
DRAWN = re.compile(r"(?m)^ {4}(?P<branches>[ │├└─]*)(?P<name>\w+Error)(?: +(?P<caller>\S.*))?$")


def main() -> int:
    problems = []
    for path, text in {
        "docs/reference/cli.md": command_line(),
        "docs/reference/errors.md": error_classes(),
        "docs/reference/gate-codes.md": gate_codes(),
        "docs/reference/wire-rules.md": wire_rules(),
    }.items():
        page = ROOT / path
        if "--write" in sys.argv[1:]:
            page.write_text(text, encoding="utf-8")
        elif not page.is_file() or page.read_text(encoding="utf-8") != text:
            problems.append(f"{path} is not what the code says; write it anew: ./dev docs --write")
    for page in [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]:
        problems += broken_links(page)
    print("\n".join(problems) or "docs: generated pages are current, links are right")
    return 1 if problems else 0


def gate_codes() -> str:
    lines = [
        "# Gate codes",
        "",
        "Generated from `build_tools/codes.py`. Codes are stable: a retired one is never given to something else.",
        "",
    ]
    for letter, title in GROUPS.items():
        lines += [f"## {title}", "", "| code | finding | why it matters |", "|---|---|---|"]
        lines += [
            f"| {code} | {entry.title} | {entry.why} |" for code, entry in CODES.items() if code.startswith(letter)
        ]
        lines.append("")
    return "\n".join(lines)


def wire_rules() -> str:
    lines = [
        "# Wire rules",
        "",
        "Generated from `build_tools/wire.py`: why a change of a message is not wire compatible. Where bytes break,",
        "some row written with the old type does not survive being read and written with the new one; elsewhere the",
        "bytes survive, but not what they mean.",
        "",
        "| rule | bytes break | why |",
        "|---|---|---|",
        *(f"| {rule} | {'yes' if rule.breaks_bytes else 'no'} | {rule.why} |" for rule in Rule),
        "",
    ]
    return "\n".join(lines)


def error_classes() -> str:
    lines = [
        "# Errors",
        "",
        "Generated from `catalog/errors/`. Every error says what happened, why, and what to do next, and carries its",
        "facts as attributes; *words like this* stand for them here. Only those under `RetryableError` are worth",
        "retrying as they are: nothing was changed, and the same may succeed when it is tried again from the start.",
        "",
        "```text",
        *(drawn[0][4:] for drawn in DRAWN.finditer(errors.__doc__ or "")),
        "```",
        "",
    ]
    for name in drawn_errors():
        lines += [f"## {name}", "", *_described(getattr(errors, name)), ""]
    return "\n".join(lines)


def drawn_errors() -> dict[str, tuple[str, str]]:
    """The tree at the top of `catalog.errors`: of each error the one above it, and what a caller can do about it."""
    above: list[str] = []
    found: dict[str, tuple[str, str]] = {}
    for drawn in DRAWN.finditer(errors.__doc__ or ""):
        del above[len(drawn["branches"]) // 4 :]
        parent = above[-1] if above else ""
        found[drawn["name"]] = parent, drawn["caller"] or found.get(parent, ("", ""))[1]
        above.append(drawn["name"])
    return found


def command_line() -> str:
    """All commands from click's own tree, and after it what the page has that is written by hand."""
    lines = [
        "# Command line",
        "",
        "Generated from `catalog/cli/`. The command is `catalog`; each verb is a plain function that Python can",
        "call, in the modules below `catalog/cli`. Answers go to standard output, everything else to standard error.",
        "",
        "- [Commands](#commands), [options of every command](#options-of-every-command)",
        "- [Exit codes](#exit-codes), [the JSON envelope](#the-json-envelope)",
        "- [Settings](#settings), [secrets](#secrets), [what asks](#what-asks)",
        "- [The migrations tool that this grew from](#the-migrations-tool-that-this-grew-from), name by name",
        "",
        "## Commands",
        "",
        "A command that *fences* takes the store over from whoever leads it: that process can write no more, and",
        "learns so at its next commit. Whatever rewrites no rows starts no Java.",
        "",
        "| command | fences | |",
        "|---|---|---|",
        *(
            f"| [`{path}`](#{_slug(path)}) | {'yes' if own.fences else 'no'} | {_first_line(own)} |"
            for path, own in commands()
        ),
        "",
    ]
    for path, own in commands():
        lines += [f"### {path}", "", "```text", *_usage(path, own), "```", ""]
    lines += ["## Options of every command", "", "They may also stand before the command: `catalog -s URI info`.", ""]
    everywhere = [parameter for parameter in root.params if not parameter.is_eager]
    lines += ["```text", *_options(root, everywhere), "```", ""]
    lines += [*_exit_codes(), *_envelopes(), *_settings()]
    page = ROOT / "docs" / "reference" / "cli.md"
    before = page.read_text(encoding="utf-8") if page.is_file() else ""
    return "\n".join([*lines, BY_HAND]) + before.partition(BY_HAND)[2]


def commands(group: click.Group = root, path: str = "catalog") -> Iterator[tuple[str, Command]]:
    """Every command by what is typed for it, in the order of the help."""
    for name, own in group.commands.items():
        if isinstance(own, click.Group):
            yield from commands(own, f"{path} {name}")
        elif isinstance(own, Command):
            yield f"{path} {name}", own


def _first_line(own: click.Command) -> str:
    return (own.help or "").partition("\n")[0]


def _usage(path: str, own: Command) -> list[str]:
    """The help of a command without the options that every command has."""
    context = click.Context(own, info_name=path)
    formatter = click.HelpFormatter(width=WIDTH, max_width=WIDTH)
    formatter.write_usage(path, " ".join(own.collect_usage_pieces(context)))
    own.format_help_text(context, formatter)
    everywhere = [parameter.opts for parameter in root.params if not parameter.is_eager]
    special = [parameter for parameter in own.params if parameter.opts not in everywhere]
    options = _options(own, special)
    return [*formatter.getvalue().rstrip().splitlines(), *(["", *options] if options else [])]


def _options(own: click.Command, parameters: list[click.Parameter]) -> list[str]:
    context = click.Context(own)
    records = [record for option in parameters if (record := option.get_help_record(context)) and record[1]]
    formatter = click.HelpFormatter(width=WIDTH, max_width=WIDTH)
    with formatter.indentation():
        if records:
            formatter.write_dl(records)
    return formatter.getvalue().rstrip("\n").splitlines()


def _exit_codes() -> Iterator[str]:
    raised: dict[Exit, list[str]] = {}
    for name in drawn_errors():
        error = getattr(errors, name)
        if error.__init__ is not CatalogError.__init__:
            raised.setdefault(exit_of(_example(error)), []).append(name)
    yield from ("## Exit codes", "", "| code | meaning | given by | its errors |", "|---|---|---|---|")
    for code in Exit:
        own = raised.get(code, [])
        told = "all [others](errors.md)" if code is Exit.FAILED else ", ".join(f"`{name}`" for name in own) or "none"
        meaning, by = EXITS[code]
        yield f"| {int(code)} | {meaning} | {by} | {told} |"
    yield ""


def _envelopes() -> Iterator[str]:
    yield from ("## The JSON envelope", "")
    yield "With `--format json` a command writes one JSON document, with the same keys whether it succeeds or not:"
    error = UpgradeNeededError("my-catalog", 20, 22)
    for data, error_or_none in (({"version": 22, "…": "…"}, None), ({"version": 20, "…": "…"}, error)):
        told = json.loads(envelope("info", Answer(data, error_or_none)))
        yield from ("", "```json", *json.dumps(told, indent=2, ensure_ascii=False).splitlines(), "```")
    yield from (
        "",
        "`command` is what was typed, without `catalog`. `data` is the answer: there may be one beside an error, as",
        "when `info --check` finds migrations pending; otherwise it is null. `code` names an [error](errors.md).",
        "Progress is then told to a terminal only, on standard error.",
        "",
    )


def _settings() -> Iterator[str]:
    flags = {parameter.name: parameter for _, own in commands() for parameter in own.params}
    yield from ("## Settings", "")
    yield "The first of these that says something stands; `catalog config show` says which that was."
    yield from ("", "1. a flag", "2. a variable `CATALOG_…`", "3. `[tool.catalog.env.NAME]`, if `--env NAME` is given")
    yield f"4. `[tool.catalog]`, in the same file: {' or '.join(f'`{name}`' for name in FILES)}, in this folder or the"
    yield "   nearest above it that has such a table, or the file that `--config-file` names"
    yield from ("5. the default", "", "| setting | flag | variable | default | |", "|---|---|---|---|---|")
    for setting in read_settings({}, {}, Path("/")).all.values():
        option = flags.get(setting.name)
        meaning = option.help if isinstance(option, click.Option) else "The package whose types the store has."
        flag = f"`{option.opts[-1]}`" if option else ""
        default = "" if setting.value is None else f"`{setting.value}`"
        yield f"| `{setting.name}` | {flag} | `CATALOG_{setting.name.upper()}` | {default} | {meaning} |"
    meaning = "A table; each option is a setting of its own."
    yield f"| `{OPTIONS}` | `--storage-option` | `CATALOG_{OPTIONS.upper()}` | | {meaning} |"
    yield from (
        "",
        "- A duration is a number of seconds, or has a unit: `500ms`, `90s`, `5m`, `2h`.",
        "- In a file, `${NAME}` is the variable NAME, which must be set, and `$$` is one dollar sign.",
        "- In a file, a `store` that is a path starts from the folder of that file.",
        "- A setting that nobody knows is an error, and so is a value that does not fit.",
        "",
        "| other variable | |",
        "|---|---|",
        *(f"| `{name}` | {told} |" for name, told in OTHER_VARIABLES.items()),
        "",
        "```toml",
        "[tool.catalog]",
        'store = "var/catalog"',
        'lock_timeout = "2m"',
        "",
        "[tool.catalog.env.production]",
        'store = "s3://bucket/catalog"',
        'storage_options = { aws_region = "eu-west-1", aws_secret_access_key = "${PRODUCTION_KEY}" }',
        "```",
        "",
    )


def _described(error: type[CatalogError]) -> list[str]:
    below = [name for name, (parent, _) in drawn_errors().items() if parent == error.__name__]
    _, caller = drawn_errors()[error.__name__]
    lines = []
    if error.__init__ is CatalogError.__init__:
        lines += [error.__doc__ or "", ""]
    if below and error is not CatalogError:
        lines += [f"Catch it to handle alike: {', '.join(f'[{name}](#{_slug(name)})' for name in below)}.", ""]
    if error is CatalogError:
        return [*lines, "The root of all errors of this package."]
    retry = f"- retry: {'yes' if issubclass(error, RetryableError) else 'no'}, {caller}"
    if error.__init__ is CatalogError.__init__:
        return [*lines, retry]
    example = _example(error)
    parameters = inspect.signature(error).parameters.values()
    facts = ", ".join(f"`{parameter.name}`" for parameter in parameters)
    return [
        *lines,
        f"- when: {example.what.replace('`', '')}",
        f"- why: {example.why}",
        retry,
        f"- next: {example.next}",
        f"- carries: {facts}",
    ]


def _example(error: type[CatalogError]) -> CatalogError:
    make: Callable[..., CatalogError] = error
    return make(*(_placeholder(parameter) for parameter in inspect.signature(error).parameters.values()))


def _placeholder(parameter: inspect.Parameter) -> object:
    shown = f"*{parameter.name}*"
    match parameter.annotation:
        case "tuple[int, int]":
            return shown, shown
        case "tuple[str, ...]":
            return shown, "…"
        case _:
            return shown


def broken_links(page: Path) -> list[str]:
    found = []
    for link in LINK.finditer(page.read_text(encoding="utf-8")):
        target, _, anchor = link["target"].partition("#")
        if target.startswith(("http://", "https://")):
            continue
        file = (page.parent / target).resolve() if target else page
        if not file.exists():
            found.append(f"{page.relative_to(ROOT)} links to {target}, which is not there")
        elif anchor and anchor not in {_slug(heading) for heading in HEADING.findall(file.read_text(encoding="utf-8"))}:
            found.append(f"{page.relative_to(ROOT)} links to {link['target']}, and there is no such heading")
    return found


def _slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


if __name__ == "__main__":
    sys.exit(main())
