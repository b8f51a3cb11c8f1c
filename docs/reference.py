"""Writes the generated reference pages, and checks that they and all links in the documentation are right.

Without `--write` nothing is changed: a page that differs from what would be written is an error.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path

from build_tools.codes import CODES
from build_tools.wire import Rule
from catalog import errors
from catalog.errors import CatalogError, RetryableError

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
DRAWN = re.compile(r"(?m)^ {4}(?P<branches>[ │├└─]*)(?P<name>\w+Error)(?: +(?P<caller>\S.*))?$")


def main() -> int:
    problems = []
    for path, text in {
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
    parameters = list(inspect.signature(error).parameters.values())
    make: Callable[..., CatalogError] = error
    example = make(*(_placeholder(parameter) for parameter in parameters))
    facts = ", ".join(f"`{parameter.name}`" for parameter in parameters)
    return [
        *lines,
        f"- when: {example.what.replace('`', '')}",
        f"- why: {example.why}",
        retry,
        f"- next: {example.next}",
        f"- carries: {facts}",
    ]


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
