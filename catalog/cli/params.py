"""Types of parameters, with their shell completion.

They accept what click's own types accept; the command checks if the store has such a collection or version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from catalog.cli.completion import candidates
from catalog.cli.completion.candidates import Candidate, Flags
from catalog.errors import UsageError

Find = Callable[[Flags], Iterable[Candidate]]


class CompletedText(click.types.StringParamType):
    def __init__(self, find: Find) -> None:
        self._find = find

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        return _offered(self._find, ctx, param, incomplete)


class CompletedNumber(click.types.IntParamType):
    def __init__(self, find: Find) -> None:
        self._find = find

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        return _offered(self._find, ctx, param, incomplete)


class PathOrUri(click.types.StringParamType):
    """A path or URI; the shell completes files or folders itself."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem[str]]:
        return [CompletionItem(incomplete, type=self._kind)]


COLLECTION: Final = CompletedText(candidates.collections)
"""The name of a collection, as the store's own version has it."""
ENVIRONMENT: Final = CompletedText(candidates.environments)
VERSION: Final = CompletedNumber(candidates.versions)
"""Any that this build knows."""
LATER_VERSION: Final = CompletedNumber(candidates.later_versions)
"""One that the store can be upgraded to."""
EARLIER_VERSION: Final = CompletedNumber(candidates.earlier_versions)
"""One that the store may have been at before."""
TABLE: Final = CompletedText(candidates.tables)
CHANGE: Final = CompletedNumber(candidates.changes)
"""The number of a schema change."""
STORE: Final = PathOrUri("dir")
"""A folder, or the address of a prefix."""
FOLDER: Final = PathOrUri("dir")
FILE: Final = PathOrUri("file")


def flags_of(context: click.Context) -> dict[str, Any]:
    """Return the settings among the options, for `read_settings`; those of a command override those of its group."""
    flags: dict[str, Any] = context.meta.setdefault("catalog.flags", {})
    return flags


def pairs(flag: str, values: Sequence[str]) -> dict[str, str]:
    """Parse the values of a repeatable NAME=VALUE option."""
    found = [value.partition("=") for value in values]
    if not all(name and equals for name, equals, _ in found):  # not shown: it may hold a secret
        raise UsageError(f"{flag} takes NAME=VALUE", "its value is not a pair", f"write {flag} aws_region=eu-west-1")
    return {name: value for name, _, value in found}


def _offered(
    find: Find, context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    is_repeatable = parameter.nargs == -1 or (isinstance(parameter, click.Option) and parameter.multiple)
    given = context.params.get(parameter.name or "") if is_repeatable else None
    taken = set(map(str, given or ()))
    return [
        CompletionItem(value, help=text or None)
        for value, text in find(flags_of(context))
        if value.startswith(incomplete) and value not in taken
    ]
