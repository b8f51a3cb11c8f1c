"""The page of errors, from the tree that is drawn in `catalog.errors` and from the errors themselves."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

from catalog import errors
from catalog.errors import CatalogError, RetryableError
from docs.links import slug

DRAWN = re.compile(r"(?m)^ {4}(?P<branches>[ │├└─]*)(?P<name>\w+Error)(?: +(?P<caller>\S.*))?$")


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


def _described(error: type[CatalogError]) -> list[str]:
    below = [name for name, (parent, _) in drawn_errors().items() if parent == error.__name__]
    _, caller = drawn_errors()[error.__name__]
    lines = []
    if error.__init__ is CatalogError.__init__:
        lines += [error.__doc__ or "", ""]
    if below and error is not CatalogError:
        lines += [f"Catch it to handle alike: {', '.join(f'[{name}](#{slug(name)})' for name in below)}.", ""]
    if error is CatalogError:
        return [*lines, "The root of all errors of this package."]
    retry = f"- retry: {'yes' if issubclass(error, RetryableError) else 'no'}, {caller}"
    if error.__init__ is CatalogError.__init__:
        return [*lines, retry]
    example = example_of(error)
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


def example_of(error: type[CatalogError]) -> CatalogError:
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
