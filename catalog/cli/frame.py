"""What all commands have in common: their options, how they are told apart, and how they end.

A command is a function from its options to an `Answer`; this module reads the settings before it, and shows the answer
or the error after it.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise
from types import FrameType
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from catalog import __version__
from catalog.cli.parameters import ENVIRONMENT, FILE, STORE
from catalog.cli.render import OutputError, Screen, show_help
from catalog.cli.results import MEANINGS, Answer, Exit, Terminated, stopped_by
from catalog.cli.settings import OPTIONS, Settings, read_settings
from catalog.errors import CatalogError, StoppedError, UsageError

if TYPE_CHECKING:
    from catalog.cli.environment import Environment

_FLAGS = (
    *("store", "config_file", "env", "format", OPTIONS, "spark", "deploy_generation", "lock_timeout", "timeout"),
    *("log_format", "metrics_file", "ready_file"),
)


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
    observed = False
    """Whether what it does can be logged and measured."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        if self.fences:
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text("Fences: whoever leads the store until then can write no more.")


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

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Each command with its first sentence as a whole, where click would cut it."""
        found = [(name, (own.help or "").partition("\n\n")[0]) for name, own in self.commands.items()]
        own = [CompletionItem(name, help=told) for name, told in found if name.startswith(incomplete)]
        return [*own, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Each with its first sentence as a whole, where click would cut it."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, (self.commands[name].help or "").partition("\n\n")[0]) for name in self.list_commands(ctx)]
            )

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if ctx.parent is None:
            formatter.write_paragraph()
            fencing = ", ".join(_fencing(self))
            formatter.write_text(f"These fence whoever leads the store, who can write no more then: {fencing}.")
            formatter.write_paragraph()
            formatter.write_text(f"Exit codes: {'; '.join(f'{code} {told}' for code, told in MEANINGS.items())}.")


def common(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every command, and of the groups before it."""
    for option in reversed(
        [
            click.option(
                "-s", "--store", type=STORE, metavar="URI", help="The store: a folder, or the address of a prefix."
            ),
            click.option("-c", "--config-file", type=FILE, metavar="FILE", help="Read settings from here."),
            click.option(
                "--env", type=ENVIRONMENT, metavar="NAME", help="Take [tool.catalog.env.NAME] of the settings."
            ),
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
    click.option("--lock-timeout", metavar="TIME", help="Wait so long for a live leader, then take over (60s)."),
    click.option("--timeout", metavar="TIME", help="Give up after so long; what was committed by then stays."),
)
_OBSERVED = (
    click.option("--log-format", type=click.Choice(["text", "json"]), help="Log to standard error, in lines of this."),
    click.option("--metrics-file", type=FILE, metavar="FILE", help="Keep metrics there, as Prometheus reads them."),
    click.option("--ready-file", type=FILE, metavar="FILE", help="Be there when the store is ready, and not before."),
)
_SPARK = (click.option("--spark", metavar="ADDRESS", help="A master or Connect server; else this machine."),)


def command(  # noqa: PLR0913 - all that commands can have in common
    group: click.Group,
    name: str | None = None,
    *,
    fences: bool = False,
    leads: bool = False,
    on_spark: bool = False,
    observed: bool = False,
    forgiving: bool = False,
) -> Callable[[Verb], Verb]:
    """Make a function a command of a group; the function stays what it is.

    One that is forgiving runs with what is sound of the settings.
    """

    def decorate(function: Verb) -> Verb:
        path = f"{group.name} {name or function.__name__}" if group.name else name or function.__name__

        def call(**given: Any) -> Exit:  # noqa: ANN401 - click's
            settings = read_settings(flags_of(click.get_current_context()), forgiving=forgiving)
            screen = Screen(settings["format"], settings.secrets, settings["log_format"] if observed else None)
            own = {name: value for name, value in given.items() if name not in _FLAGS}
            try:
                return screen.show(path, function(Run(path, settings, screen), **own))
            except (KeyboardInterrupt, click.Abort) as stopped:
                return _show_stop(screen, path, stopped)
            except _PASSED_ON:
                raise
            except Exception as error:  # noqa: BLE001 - as in `run`, but here it is known what is a secret
                return screen.show(path, Answer(None, explained(error)))

        made: Any = common(call)
        extra = (*(_LEADING if leads else ()), *(_OBSERVED if observed else ()))
        for option in (*(_SPARK if on_spark else ()), *reversed(extra)):
            made = option(made)
        made.__click_params__ += getattr(function, "__click_params__", [])  # click shows the last of them first
        made.__doc__ = function.__doc__
        built: Command = click.command(name or function.__name__, cls=Command)(made)
        built.fences, built.observed = fences, observed
        group.add_command(built)
        return function

    return decorate


_PASSED_ON = (click.exceptions.Exit, click.Abort, OutputError)
"""Not told as what went wrong with a command: there is nothing to tell, or nowhere to tell it."""


def catch_signals() -> None:
    """End in order when asked to; and let no library say what is said here."""

    def terminate(_number: int, _frame: FrameType | None) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, terminate)
    logging.getLogger().addHandler(logging.NullHandler())


def run(root: click.Group, words: Sequence[str]) -> int:
    """Run a command line; whatever goes wrong is said in three lines."""
    try:
        return _run(root, words)
    except (KeyboardInterrupt, click.Abort) as stopped:
        return _show_stop(_screen(root, words), _path(root, words), stopped)
    except OutputError as error:
        return error.settle()


def _show_stop(screen: Screen, path: str, stopped: BaseException) -> Exit:
    return screen.show(path, Answer(None, StoppedError(stopped_by(stopped))))


def _run(root: click.Group, words: Sequence[str]) -> int:
    try:
        return int(root.main(list(words), prog_name="catalog", standalone_mode=False) or 0)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except _PASSED_ON:
        raise
    except Exception as error:  # noqa: BLE001 - nobody is to see a traceback
        screen = _screen(root, words)
        if isinstance(error, click.exceptions.NoArgsIsHelpError) and screen.format == "text":
            return show_help(error.format_message())
        return screen.show(_path(root, words), Answer(None, explained(error)))


def _screen(root: click.Group, words: Sequence[str]) -> Screen:
    """In the formats that words ask for, as far as can be told without understanding them."""
    named = root.commands.get(_path(root, words))
    is_observed = isinstance(named, Command) and named.observed
    logged = [*_asked(words, "--log-format"), os.environ.get("CATALOG_LOG_FORMAT", "") if is_observed else ""]
    asks_json = "json" in (*_asked(words, "--format"), os.environ.get("CATALOG_FORMAT"))
    return Screen(
        "json" if asks_json else "text", log_format=next((own for own in logged if own in {"text", "json"}), None)
    )


def _asked(words: Sequence[str], flag: str) -> list[str]:
    """What a flag is given, as often as it is."""
    after = [following for word, following in pairwise(words) if word == flag]
    return [*after, *(word.removeprefix(f"{flag}=") for word in words if word.startswith(f"{flag}="))]


def pairs(flag: str, values: Sequence[str]) -> dict[str, str]:
    """What NAME=VALUE says, given as often as needed."""
    found = [value.partition("=") for value in values]
    if not all(name and equals for name, equals, _ in found):  # not shown: it may hold a secret
        raise UsageError(
            f"{flag} takes NAME=VALUE", "what it was given is no pair", f"write {flag} aws_region=eu-west-1"
        )
    return {name: value for name, _, value in found}


def flags_of(context: click.Context) -> dict[str, Any]:
    """The settings among the options, those of the command before those of the groups that it is in."""
    found = {} if context.parent is None else flags_of(context.parent)
    own = context.params.items()
    return found | {name: value for name, value in own if name in _FLAGS and value not in (None, {})}


def version_option(function: Callable[..., Any]) -> Callable[..., Any]:
    decorated: Callable[..., Any] = click.version_option(__version__, prog_name="catalog")(function)
    return decorated


def explained(error: Exception) -> CatalogError:
    """What went wrong, in three lines."""
    match error:
        case CatalogError():
            return error
        case click.UsageError():
            return _usage(error)
        case _ if os.environ.get("CATALOG_TRACEBACK"):
            raise error
        case _:
            return _unexpected(error)


def _path(group: click.Group, words: Sequence[str]) -> str:
    """The command that words name, as far as there is one."""
    valued = {name for own in group.params if isinstance(own, click.Option) and not own.is_flag for name in own.opts}
    rest = iter(words)
    for word in rest:
        if word in valued:
            next(rest, None)
        elif not word.startswith("-"):
            found = group.commands.get(word)
            if isinstance(found, click.Group):
                return f"{word} {_path(found, list(rest))}".strip()
            return word if found else ""
    return ""


def _usage(error: click.UsageError) -> UsageError:
    path = error.ctx.command_path if error.ctx else "catalog"
    what, fix = error.format_message().rstrip("."), f"see `{path} --help`"
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        what = "missing command"
    if isinstance(error, click.NoSuchOption):
        what = f"there is no option {error.option_name}"
        known = [name for parameter in (error.ctx.command.params if error.ctx else []) for name in parameter.opts]
        if close := get_close_matches(error.option_name, known, 1):
            fix = f"did you mean {close[0]}?"
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
