"""The framework of all commands: common options, settings, errors, exit codes.

A command is declared in `main` or `debug_group`. When it runs, this module reads the settings, loads the function of
the command, and shows its result or its error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from catalog import __version__
from catalog.cli.answer import MEANINGS, CommandResult, ExitCode, module_name
from catalog.cli.params import ENVIRONMENT, FILE, STORE, flags_of, pairs
from catalog.cli.screen import OutputError, Screen, show_help
from catalog.cli.settings import FORMATS, OPTIONS, Settings, read_settings
from catalog.cli.signals import stopped_by
from catalog.engine.base.fence import LOCK_TIMEOUT_S
from catalog.errors import CatalogError, StoppedError, UsageError

if TYPE_CHECKING:
    from catalog.cli.context import StoreTarget

CommandFunction = Callable[..., CommandResult]
Declaration = Callable[[], None]
"""A function without a body: its decorators are the options of a command, its docstring is the help."""


@dataclass
class Invocation:
    command: str
    settings: Settings
    screen: Screen

    @cached_property
    def target(self) -> StoreTarget:
        """The store that the settings name."""
        return self.target_at(None)

    def target_at(self, store: str | None) -> StoreTarget:
        from catalog.cli.context import StoreTarget  # noqa: PLC0415 - help and settings need no store

        return StoreTarget.of(self.settings, store)


class Command(click.Command):
    """A command that may fence: take the store over from its leader."""

    fences = False
    observed = False
    """True if its events can be logged and measured."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if isinstance(ctx.obj, Screen):
            ctx.obj.command = ctx.command_path.partition(" ")[2]
            ctx.obj.log_format = _format(os.environ.get("CATALOG_LOG_FORMAT")) if self.observed else None
        return super().parse_args(ctx, args)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        if self.fences:
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text("Fences the leader of the store: that process can no longer write.")


class Group(click.Group):
    """A group that suggests the command that was probably meant."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if isinstance(ctx.obj, Screen):
            ctx.obj.command = ctx.command_path.partition(" ")[2]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            close = get_close_matches(name, self.list_commands(ctx), 1)
            raise UsageError(
                f"there is no command `{ctx.command_path} {name}`",
                f"the commands are {', '.join(self.list_commands(ctx))}",
                f"did you mean `{ctx.command_path} {close[0]}`?" if close else f"see `{ctx.command_path} --help`",
            )
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        return list(self.commands)  # in the order of their declaration: the most used ones come first

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Offer each command with its whole first sentence, which click would cut."""
        own = [CompletionItem(name, help=text) for name, text in self._summaries() if name.startswith(incomplete)]
        return [*own, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """List each command with its whole first sentence, which click would cut."""
        with formatter.section("Commands"):
            formatter.write_dl(self._summaries())

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if ctx.parent is None:
            formatter.write_paragraph()
            fencing = ", ".join(_fencing(self))
            formatter.write_text(f"These commands fence the leader of the store, which can no longer write: {fencing}.")
            formatter.write_paragraph()
            formatter.write_text(f"Exit codes: {'; '.join(f'{code} {text}' for code, text in MEANINGS.items())}.")

    def _summaries(self) -> list[tuple[str, str]]:
        return [(name, (own.help or "").partition("\n\n")[0]) for name, own in self.commands.items()]


def _setting(*declarations: str, **attributes: Any) -> Callable[[Any], Any]:  # noqa: ANN401 - click's
    """Declare an option that is a setting: it is found by `flags_of`, and is no argument of the command's function."""

    def remember(context: click.Context, option: click.Parameter, value: Any) -> None:  # noqa: ANN401 - click's
        if value not in {None, ()}:
            flags_of(context)[option.name] = pairs(option.opts[0], value) if option.multiple else value

    return click.option(*declarations, expose_value=False, callback=remember, **attributes)


_COMMON = (
    _setting("-s", "--store", type=STORE, metavar="URI", help="The store: a folder, or a URI such as s3://bucket/dir."),
    _setting("-c", "--config-file", type=FILE, metavar="FILE", help="Read settings from this file."),
    _setting("--env", type=ENVIRONMENT, metavar="NAME", help="Read settings from [tool.catalog.env.NAME]."),
    _setting("--format", type=click.Choice(FORMATS), help="Output for people, or one JSON document."),
    _setting(
        "--storage-option",
        OPTIONS,
        metavar="NAME=VALUE",
        multiple=True,
        help="An option of the object store; repeatable.",
    ),
)
_LEADING = (
    _setting("--deploy-generation", metavar="N", help="The number of this deployment; it never decreases."),
    _setting(
        "--lock-timeout",
        metavar="TIME",
        help=f"Wait this long for a live leader, then take over ({LOCK_TIMEOUT_S:.0f}s).",
    ),
    _setting("--timeout", metavar="TIME", help="Stop after this time; what was committed by then stays."),
)
_OBSERVED = (
    _setting("--log-format", type=click.Choice(FORMATS), help="Log to standard error in this format."),
    _setting("--metrics-file", type=FILE, metavar="FILE", help="Keep metrics for Prometheus in this file."),
    _setting("--ready-file", type=FILE, metavar="FILE", help="Create this file when the store is ready."),
)
_SPARK = (_setting("--spark", metavar="ADDRESS", help="A master or Connect server; by default this machine."),)


def common(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that every command has, and the group before it."""
    for option in reversed(_COMMON):
        function = option(function)
    return function


def command(  # noqa: PLR0913 - all that commands can have in common
    group: click.Group,
    name: str | None = None,
    *,
    fences: bool = False,
    leads: bool = False,
    on_spark: bool = False,
    observed: bool = False,
    forgiving: bool = False,
) -> Callable[[Declaration], Declaration]:
    """Declare a command of a group; `function_of` says where the function is that runs it.

    A forgiving command runs even if some of the settings are invalid, without those.
    """

    def decorate(declared: Declaration) -> Declaration:
        word = name or declared.__name__
        path = f"{group.name} {word}" if group.name else word

        def call(**given: Any) -> ExitCode:  # noqa: ANN401 - click's
            settings = read_settings(flags_of(click.get_current_context()), forgiving=forgiving)
            screen = Screen(path, settings["format"], settings.secrets, settings["log_format"] if observed else None)
            try:
                return screen.show(function_of(path)(Invocation(path, settings, screen), **given))
            except (click.exceptions.Exit, OutputError):
                raise
            except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - as in `run`, but here secrets are known
                return screen.show(CommandResult(None, explained(error)))

        made: Any = common(call)
        extra = (*(_LEADING if leads else ()), *(_OBSERVED if observed else ()))
        for option in (*(_SPARK if on_spark else ()), *reversed(extra)):
            made = option(made)
        made.__click_params__ += getattr(declared, "__click_params__", [])  # click shows the last of them first
        made.__doc__ = declared.__doc__
        built: Command = click.command(word, cls=Command)(made)
        built.fences, built.observed = fences, observed
        group.add_command(built)
        return declared

    return decorate


def function_of(path: str) -> CommandFunction:
    """Load the function of a command: `upgrade_check` in `commands.debug_upgrade_check` for `debug upgrade-check`."""
    function: CommandFunction = getattr(
        import_module(f"catalog.cli.commands.{module_name(path)}"), module_name(path.rpartition(" ")[2])
    )
    return function


def version_option(function: Callable[..., Any]) -> Callable[..., Any]:
    decorated: Callable[..., Any] = click.version_option(__version__, prog_name="catalog")(function)
    return decorated


def run(root: click.Group, words: Sequence[str]) -> int:
    """Run a command line and return its exit code; report every error in three lines."""
    screen = Screen()
    try:
        try:
            return int(root.main(list(words), prog_name="catalog", standalone_mode=False, obj=screen) or 0)
        except click.exceptions.Exit as ended:
            return ended.exit_code
        except OutputError:
            raise
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - every error is reported in the same way
            _learn_formats(screen, words)
            if isinstance(error, click.exceptions.NoArgsIsHelpError) and screen.format == "text":
                return show_help(error.format_message())
            return screen.show(CommandResult(None, explained(error)))
    except OutputError as error:
        return error.settle()


_FORMAT_OPTIONS = click.Command(
    "formats",
    params=[click.Option(["--format"], envvar="CATALOG_FORMAT"), click.Option(["--log-format"])],
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    add_help_option=False,
)


def _learn_formats(screen: Screen, words: Sequence[str]) -> None:
    """Take the formats from a command line that click has refused, and of which it has kept nothing."""
    given = _FORMAT_OPTIONS.make_context("formats", list(words), resilient_parsing=True).params
    screen.format = _format(given["format"]) or screen.format
    screen.log_format = _format(given["log_format"]) or screen.log_format


def _format(value: str | None) -> str | None:
    return value if value in FORMATS else None


def explained(error: BaseException) -> CatalogError:
    """Return an error that says what happened, why, and what to do next."""
    match error:
        case CatalogError():
            return error
        case KeyboardInterrupt() | click.Abort():
            return StoppedError(stopped_by(error))
        case click.UsageError():
            return _usage(error)
        case _ if os.environ.get("CATALOG_TRACEBACK"):
            raise error
        case _:
            return CatalogError(
                f"unexpected {type(error).__name__}: {error}",
                "this is an error of the program, or of a library under it",
                "report it with the output of the same command with CATALOG_TRACEBACK=1",
            )


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


def _fencing(group: click.Group, path: str = "") -> Iterator[str]:
    for name, own in group.commands.items():
        if isinstance(own, click.Group):
            yield from _fencing(own, f"{path}{name} ")
        elif isinstance(own, Command) and own.fences:
            yield f"{path}{name}"
