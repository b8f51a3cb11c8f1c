"""The page of errors, generated from the tree in the docstring of `catalog.errors` and from the classes."""

from __future__ import annotations

import re

from catalog import errors
from catalog.errors import CatalogError, RetryableError
from docs.links import slug

DRAWN = re.compile(r"(?m)^ {4}(?P<branches>[ │├└─]*)(?P<name>\w+Error)(?: +(?P<caller>\S.*))?$")


def error_classes() -> str:
    lines = [
        "# Errors",
        "",
        "Generated from `catalog/errors/`. Every error says what happened, why, and what to do next, and carries its",
        "facts as attributes; *words like this* stand for the facts here. Only an error under `RetryableError` is",
        "worth a retry as it is: nothing was changed, and the same may succeed when it is tried again from the start.",
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
    """Return, for each error of the tree in `catalog.errors`, its parent and what a caller can do about it."""
    above: list[str] = []
    found: dict[str, tuple[str, str]] = {}
    for drawn in DRAWN.finditer(errors.__doc__ or ""):
        del above[len(drawn["branches"]) // 4 :]
        parent = above[-1] if above else ""
        found[drawn["name"]] = parent, drawn["caller"] or found.get(parent, ("", ""))[1]
        above.append(drawn["name"])
    return found


def _described(error: type[CatalogError]) -> list[str]:
    if error is CatalogError:
        return ["The root of all errors of this package."]
    below = [name for name, (parent, _) in drawn_errors().items() if parent == error.__name__]
    _, caller = drawn_errors()[error.__name__]
    retry = f"- retry: {'yes' if issubclass(error, RetryableError) else 'no'}, {caller}"
    is_kind = error.facts is CatalogError.facts
    lines = [error.__doc__ or "", ""] if is_kind else []
    if below:
        lines += [f"Catches all of: {', '.join(f'[{name}](#{slug(name)})' for name in below)}.", ""]
    if is_kind:
        return [*lines, retry]
    example = example_of(error)
    return [
        *lines,
        f"- when: {example.what.replace('`', '')}",
        f"- why: {example.why}",
        retry,
        f"- next: {example.next}",
        f"- carries: {', '.join(f'`{name}`' for name in error.facts)}",
    ]


def example_of(error: type[CatalogError]) -> CatalogError:
    """Return an error whose facts are their own names."""
    return error(*(_placeholder(name, kind) for name, kind in error.facts.items()))


def _placeholder(name: str, kind: str) -> object:
    word = f"*{name}*"
    numbers = [word, word]  # no tuple: an error joins a tuple of texts
    return {"tuple[int, int]": numbers, "tuple[str, ...]": (word, "…")}.get(kind, word)
