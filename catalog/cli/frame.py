"""What all commands have in common: their options, how they are told apart, and how they end.

A command is a function from its options to an `Answer`; this module reads the settings before it, and shows the answer
or the error after it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import click

from catalog import __version__
from catalog.cli.results import Answer, Exit
from catalog.cli.settings import OPTIONS, Settings, read_settings
from catalog.errors import CatalogError, UsageError

if TYPE_CHECKING:
    from catalog.cli.environment import Environment
    from catalog.cli.render import Screen

_FLAGS = ("store", "config_file", "env", "format", OPTIONS, "spark", "deploy_generation", "lock_timeout", "timeout")


@dataclass(slots=True)
class Run:
    """One call of a command."""

    command: str
    settings: Settings
    screen: Screen

    @property
    def environment(self) -> Environment:
        return self.environment_at(None)

    def environment_at(self, store: str | None) -> Environment:
        from catalog.cli.environment import Environment  # noqa: PLC0415 - help and settings need no store

        return Environment.of(self.settings, store)


Verb = Callable[..., Answer]


class Command(click.Command):
    """A command that may fence: take a store over from whoever leads it."""

    fences = False

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        if self.fences:
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text("Fences: whoever leads the store meanwhile can write no more.")


class Group(click.Group):
    """A group that knows what was probably meant."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            close = get_close_matches(name, self.list_commands(ctx), 1)
            raise UsageError(
                f"there is no command `{ctx.command_path} {name}`",
                f"the commands are {', '.join(self.list_commands(ctx))}",
                f"did you mean `{ctx.command_path} {close[0]}`?" if close else f"see `{ctx.command_path} --help`",
            )
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        return list(self.commands)  # as they were declared: those used most come first

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if ctx.parent is None:
            formatter.write_paragraph()
            formatter.write_text(f"Commands that fence: {', '.join(_fencing(self))}.")
            formatter.write_text("What they do to whoever leads the store stands in the help of each.")


def common(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every command, and of the groups before it."""
    for option in reversed(
        [
            click.option("-s", "--store", metavar="URI", help="The store: a folder, or the address of a prefix."),
            click.option("-c", "--config-file", metavar="FILE", help="Read settings from here."),
            click.option("--env", metavar="NAME", help="Take [tool.catalog.env.NAME] of the settings."),
            click.option("--format", type=click.Choice(["text", "json"]), help="For people, or one JSON document."),
            click.option(
                "--storage-option",
                OPTIONS,
                metavar="NAME=VALUE",
                multiple=True,
                callback=lambda _context, _option, values: pairs("--storage-option", values),
                help="What the object store needs; repeatable.",
            ),
        ]
    ):
        function = option(function)
    return function


_LEADING = (
    click.option("--deploy-generation", metavar="N", help="Lead as this deployment; never goes down."),
    click.option("--lock-timeout", metavar="TIME", help="Wait so long for a live leader (60s), then take over."),
    click.option("--timeout", metavar="TIME", help="Give up after so long; what is not committed stays undone."),
)
_SPARK = (click.option("--spark", metavar="ADDRESS", help="A master or Connect server; else this machine."),)


def command(
    group: click.Group, name: str | None = None, *, fences: bool = False, leads: bool = False, on_spark: bool = False
) -> Callable[[Verb], Verb]:
    """Make a function a command of a group; the function stays what it is."""

    def decorate(function: Verb) -> Verb:
        path = f"{group.name} {name or function.__name__}" if group.name else name or function.__name__

        def call(**given: Any) -> Exit:  # noqa: ANN401 - click's
            context = click.get_current_context()
            flags = _flags(context, given)
            screen = _screen(flags)
            run = Run(path, read_settings(flags), screen)
            screen.redact(run.settings.secrets)
            own = {name: value for name, value in given.items() if name not in _FLAGS}
            try:
                answer = function(run, **own)
            except CatalogError as error:
                answer = Answer(None, error)
            return screen.show(path, answer)

        made: Any = common(call)
        for option in (*(_SPARK if on_spark else ()), *reversed(_LEADING if leads or fences else ())):
            made = option(made)
        made.__click_params__ += getattr(function, "__click_params__", [])  # click shows the last of them first
        made.__doc__ = function.__doc__
        built: Command = click.command(name or function.__name__, cls=Command)(made)
        built.fences = fences
        group.add_command(built)
        return function

    return decorate


def run(root: click.Group, words: Sequence[str]) -> int:
    """Run a command line; whatever goes wrong is said in three lines."""
    try:
        return int(root.main(list(words), prog_name="catalog", standalone_mode=False) or 0)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except (KeyboardInterrupt, click.Abort):
        return Exit.INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains when it flushes
        return Exit.DONE
    except Exception as error:  # noqa: BLE001 - nobody is to see a traceback
        return _failed(words, error)


def pairs(flag: str, values: Sequence[str]) -> dict[str, str]:
    """What NAME=VALUE says, given as often as needed."""
    found = [value.partition("=") for value in values]
    for name, equals, _ in found:
        if not (name and equals):
            raise UsageError(f"{flag} takes NAME=VALUE", f"{name!r} is no pair", f"write {flag} aws_region=eu-west-1")
    return {name: value for name, _, value in found}


def version_option(function: Callable[..., Any]) -> Callable[..., Any]:
    decorated: Callable[..., Any] = click.version_option(__version__, prog_name="catalog")(function)
    return decorated


def _failed(words: Sequence[str], error: Exception) -> int:
    """Say what kept a command from running, in the format that was asked for as far as can be told."""
    match error:
        case CatalogError():
            told: CatalogError = error
        case click.UsageError():
            told = _usage(error)
        case _ if os.environ.get("CATALOG_TRACEBACK"):
            raise error
        case _:
            told = _unexpected(error)
    asks_json = "--format=json" in words or ("--format", "json") in pairwise(words)
    path = [word for word in words if not word.startswith("-")]
    return _screen({"format": "json" if asks_json else None}).show(_known_path(path), Answer(None, told))


def _known_path(words: Sequence[str]) -> str:
    return " ".join(words[:2]) if words and words[0] in {"debug", "config"} else " ".join(words[:1])


def _screen(flags: dict[str, Any]) -> Screen:
    from catalog.cli.render import Screen  # noqa: PLC0415 - help shows nothing through it

    asked = flags.get("format") or os.environ.get("CATALOG_FORMAT")
    return Screen("json" if asked == "json" else "text")


def _flags(context: click.Context, given: dict[str, Any]) -> dict[str, Any]:
    """The settings among the options, those of the command before those of the groups that it is in."""
    found: dict[str, Any] = {}
    levels = [given]
    parent = context.parent
    while parent is not None:
        levels.append(parent.params)
        parent = parent.parent
    for level in reversed(levels):
        found |= {name: value for name, value in level.items() if name in _FLAGS and value not in (None, {})}
    return found


def _usage(error: click.UsageError) -> UsageError:
    path = error.ctx.command_path if error.ctx else "catalog"
    what, fix = error.format_message().rstrip("."), f"see `{path} --help`"
    if isinstance(error, click.NoSuchOption):
        what = f"there is no option {error.option_name}"
        known = [name for parameter in (error.ctx.command.params if error.ctx else []) for name in parameter.opts]
        if close := error.possibilities or get_close_matches(error.option_name, known, 1):
            fix = f"did you mean {' or '.join(close)}?"
    return UsageError(what[:1].lower() + what[1:], f"`{path}` was not run", fix)


def _unexpected(error: Exception) -> CatalogError:
    return CatalogError(
        f"unexpected {type(error).__name__}: {error}",
        "this is an error of the program, or of a library under it",
        "report it with what CATALOG_TRACEBACK=1 shows",
    )


def _fencing(group: click.Group, path: str = "") -> Iterator[str]:
    for name, own in group.commands.items():
        if isinstance(own, click.Group):
            yield from _fencing(own, f"{path}{name} ")
        elif isinstance(own, Command) and own.fences:
            yield f"{path}{name}"
