"""What all pages have in common: their templates, and what becomes of a text before it stands on one.

Whatever a store says is text and stays text: it is escaped where it is put in, a character that no page may hold is
spelt out, and a secret is blotted. As a second wall, a page forbids itself scripts and every request.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from catalog.cli.pages import quantities

Redact = Callable[[str], str]
"""Blots secrets out of a text."""

_UNFIT = re.compile(
    "[\x00-\x08\x0b-\x0d\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff\u202a-\u202e\u2066-\u2069]"
)
"""What a page may not hold, and what would turn the text after it around."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """Who made a page, and when."""

    build: str
    made_at: datetime


def render(template: str, redact: Redact, **told: object) -> str:
    """A page, from its template and what it tells."""
    environment = Environment(
        loader=PackageLoader("catalog.cli.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else spelt(redact(str(value))),
    )
    environment.filters |= {
        name: getattr(quantities, name) for name in ("count", "size", "duration", "share", "plural", "utc")
    }
    environment.filters["redacted"] = redact
    css = environment.get_template("page.css").render()
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    style = Markup(css)  # noqa: S704 - our own file
    return environment.get_template(template).render(style=style, style_hash=f"sha256-{digest}", **told) + "\n"


def spelt(text: str) -> str:
    r"""A text in which characters that are unfit for a page are written as `\u202e`."""
    return _UNFIT.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
