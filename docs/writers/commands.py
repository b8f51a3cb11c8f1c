"""The page of the command line, from click's own tree of commands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click

from catalog import errors
from catalog.cli.answer import CommandResult, ExitCode, envelope, exit_of
from catalog.cli.app import Command
from catalog.cli.main_group import root
from catalog.cli.settings import FILES, OPTIONS, read_settings
from catalog.errors import CatalogError, UpgradeNeededError
from docs.links import ROOT, slug
from docs.writers.errors import drawn_errors, example_of

PAGE = ROOT / "docs" / "reference" / "cli.md"
EXITS = {
    ExitCode.DONE: ("done, or there was nothing to do", "every command"),
    ExitCode.FAILED: (
        "it failed, or there are findings",
        "every command; `debug fsck`, `debug upgrade-check` and `doctor` for findings",
    ),
    ExitCode.USAGE: ("the call or a setting is wrong, or it was not confirmed; nothing was done", "every command"),
    ExitCode.PENDING: (
        "migrations are pending; or the next one was undone, and nobody asked to apply it again",
        "`info --check`, `start --read-only`; `start` and `apply` without `--reapply`",
    ),
    ExitCode.CHECKSUM: (
        "an applied migration differs from the one of this build",
        "`validate`, `info --check`, `doctor`, `repair` without `--checksums`; `start`, `apply` if something is to do",
    ),
    ExitCode.HELD: (
        "another process leads and `--timeout` was over first, or has fenced this one, or is of a higher generation",
        "the commands that fence, `init`, and `doctor` for a deployment that was replaced",
    ),
    ExitCode.TERMINATED: ("ended by SIGTERM; what was committed until then stays", "every command"),
    ExitCode.UNFINISHED: (
        "a migration began and did not end, or failed; or one runs now and is in the way",
        "`info --check`, `doctor`, `debug vacuum`",
    ),
    ExitCode.INTERRUPTED: ("interrupted by Ctrl-C", "every command"),
}
OTHER_VARIABLES = {
    "CATALOG_ANONYMISE_KEY": "like `--anonymise-key` of `debug copy`; a secret",
    "CATALOG_CONFIG_FILE": "like `--config-file`",
    "CATALOG_ENV": "like `--env`",
    "CATALOG_STORAGE_OPTIONS": 'storage options as one JSON object, such as `{"aws_region": "eu-west-1"}`',
    "CATALOG_TRACEBACK": "if it is set, an error of the program itself ends in its traceback, to be reported",
    "NO_COLOR": "if it is set, nothing is coloured",
}
WITHOUT_FLAG = {
    "class_archive": "The folder of the archive of Java's classes, or `off`; by default in the user's cache.",
    "project": "The package whose types the store has.",
}
BY_HAND = "<!-- Generated up to here by docs/reference.py; what follows is written by hand. -->\n"
WIDTH = 80


def command_line() -> str:
    """All commands from click's own tree, and after it what the page has that is written by hand."""
    lines = [
        "# Command line",
        "",
        "Generated from `catalog/cli/`. Each command is a function in `catalog/cli/commands/`, in a module of its",
        "name. Results go to standard output, everything else to standard error.",
        "",
        "- [Commands](#commands), [options of every command](#options-of-every-command)",
        "- [Exit codes](#exit-codes), [the JSON envelope](#the-json-envelope)",
        "- [Settings](#settings), [secrets](#secrets), [what asks](#what-asks)",
        "- [The migrations tool that this grew from](../comparison.md), name by name",
        "",
        "## Commands",
        "",
        "A command that *fences* takes the store over from its leader: that process can no longer write, and gets",
        "an error at its next commit. Only commands that rewrite rows start Java.",
        "",
        "| command | fences | |",
        "|---|---|---|",
        *(
            f"| [`{path}`](#{slug(path)}) | {'yes' if own.fences else 'no'} | {_first_line(own)} |"
            for path, own in commands()
        ),
        "",
    ]
    for path, own in commands():
        lines += [f"### {path}", "", "```text", *_usage(path, own), "```", ""]
    lines += [
        "## Options of every command",
        "",
        "They may also be given before the command: `catalog -s URI info`.",
        "",
    ]
    everywhere = [parameter for parameter in root.params if not parameter.is_eager]
    lines += ["```text", *_options(root, everywhere), "```", ""]
    lines += [*_exit_codes(), *_envelopes(), *_settings()]
    before = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
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
    context = _context(own, path)
    formatter = click.HelpFormatter(width=WIDTH, max_width=WIDTH)
    formatter.write_usage(path, " ".join(own.collect_usage_pieces(context)))
    own.format_help_text(context, formatter)
    everywhere = [parameter.opts for parameter in root.params if not parameter.is_eager]
    special = [parameter for parameter in own.params if parameter.opts not in everywhere]
    options = _options(own, special)
    return [*formatter.getvalue().rstrip().splitlines(), *(["", *options] if options else [])]


def _context(own: click.Command, path: str | None = None) -> click.Context:
    """As a run of the command has it: click remembers the names of the help option that it meets first."""
    return click.Context(own, info_name=path, help_option_names=root.context_settings["help_option_names"])


def _options(own: click.Command, parameters: list[click.Parameter]) -> list[str]:
    context = _context(own)
    records = [record for option in parameters if (record := option.get_help_record(context)) and record[1]]
    formatter = click.HelpFormatter(width=WIDTH, max_width=WIDTH)
    with formatter.indentation():
        if records:
            formatter.write_dl(records)
    return formatter.getvalue().rstrip("\n").splitlines()


def _exit_codes() -> Iterator[str]:
    raised: dict[ExitCode, list[str]] = {}
    for name in drawn_errors():
        error = getattr(errors, name)
        if error.facts is not CatalogError.facts:
            raised.setdefault(exit_of(example_of(error)), []).append(name)
    yield from ("## Exit codes", "", "| code | meaning | given by | its errors |", "|---|---|---|---|")
    for code in ExitCode:
        own = raised.get(code, [])
        told = (
            "all [others](errors.md)" if code is ExitCode.FAILED else ", ".join(f"`{name}`" for name in own) or "none"
        )
        meaning, by = EXITS[code]
        yield f"| {int(code)} | {meaning} | {by} | {told} |"
    yield ""


def _envelopes() -> Iterator[str]:
    yield from ("## The JSON envelope", "")
    yield "With `--format json` a command writes one JSON document, with the same keys whether it succeeds or not:"
    error = UpgradeNeededError("my-catalog", 20, 22)
    for data, error_or_none in (({"version": 22, "…": "…"}, None), ({"version": 20, "…": "…"}, error)):
        told = json.loads(envelope("info", CommandResult(data, error_or_none)))
        yield from ("", "```json", *json.dumps(told, indent=2, ensure_ascii=False).splitlines(), "```")
    yield from (
        "",
        "`command` is the command, without `catalog`. `data` is the result. With an error it is null, unless the",
        "command has a result all the same, as when `info --check` finds pending migrations. `code` names an",
        "[error](errors.md).",
        "Progress is then shown on a terminal only, on standard error.",
        "",
        "`subscribe` writes each row as a line of its own as soon as it is committed: an object with `collection`,",
        "`key`, `value`, `ts` and `diff`. The envelope is the last line, and the only one with `ok`.",
        "",
    )


def _settings() -> Iterator[str]:
    flags = {parameter.name: parameter for _, own in commands() for parameter in own.params}
    yield from ("## Settings", "")
    yield "The first source that has a value wins; `catalog config show` names the source of each setting."
    yield from ("", "1. a flag", "2. a variable `CATALOG_…`", "3. `[tool.catalog.env.NAME]`, if `--env NAME` is given")
    yield f"4. `[tool.catalog]`, in the same file: {' or '.join(f'`{name}`' for name in FILES)}, in this folder or the"
    yield "   nearest above it that has such a table, or the file that `--config-file` names"
    yield from ("5. the default", "", "| setting | flag | variable | default | |", "|---|---|---|---|---|")
    for setting in read_settings({}, {}, Path("/")).all.values():
        option = flags.get(setting.name)
        meaning = option.help if isinstance(option, click.Option) else WITHOUT_FLAG[setting.name]
        flag = f"`{option.opts[-1]}`" if option else ""
        default = "" if setting.value is None else f"`{setting.value}`"
        yield f"| `{setting.name}` | {flag} | `CATALOG_{setting.name.upper()}` | {default} | {meaning} |"
    meaning = "A table; each option is a setting of its own."
    yield f"| `{OPTIONS}` | `--storage-option` | `CATALOG_{OPTIONS.upper()}` | | {meaning} |"
    yield from (
        "",
        "- A duration is a number of seconds, or has a unit: `500ms`, `90s`, `5m`, `2h`.",
        "- In a file, `${NAME}` is the variable NAME, which must be set, and `$$` is one dollar sign.",
        "- In a file, a path starts from the folder of that file.",
        "- An unknown setting is an error, and so is an invalid value.",
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
