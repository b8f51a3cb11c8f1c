"""The types of parameters: what each takes, and what shells offer for it.

An option or argument of any command is declared with one of these, and is completed everywhere from then on. They take
what click's own types take; whether a store has such a collection or version its verb says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import click
from click.shell_completion import CompletionItem

from catalog.cli import candidates
from catalog.cli.candidates import Candidate, Flags

Find = Callable[[Flags], Iterable[Candidate]]


class Text(click.types.StringParamType):
    """A text for which shells offer what is found."""

    def __init__(self, find: Find) -> None:
        self._find = find

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        return _offered(self._find, ctx, param, incomplete)


class Number(click.types.IntParamType):
    """A whole number for which shells offer what is found."""

    def __init__(self, find: Find) -> None:
        self._find = find

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        return _offered(self._find, ctx, param, incomplete)


class Place(click.types.StringParamType):
    """A path, or an address: shells offer the files or folders that they see themselves."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem[str]]:
        return [CompletionItem(incomplete, type=self._kind)]


COLLECTION: Final = Text(candidates.collections)
"""The name of a collection, as the store's own version has it."""
ENVIRONMENT: Final = Text(candidates.environments)
VERSION: Final = Number(candidates.versions)
"""Any that this build knows."""
LATER_VERSION: Final = Number(candidates.later_versions)
"""One that the store can be upgraded to."""
EARLIER_VERSION: Final = Number(candidates.earlier_versions)
"""One that the store may have been at before."""
STORE: Final = Place("dir")
"""A folder, or the address of a prefix."""
FOLDER: Final = Place("dir")
FILE: Final = Place("file")


def _offered(
    find: Find, context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    from catalog.cli.frame import flags_of  # noqa: PLC0415 - which declares options of these types

    is_repeatable = parameter.nargs == -1 or (isinstance(parameter, click.Option) and parameter.multiple)
    given = context.params.get(parameter.name or "") if is_repeatable else None
    taken = set(map(str, given or ()))
    return [
        CompletionItem(value, help=told or None)
        for value, told in find(flags_of(context))
        if value.startswith(incomplete) and value not in taken
    ]
