"""The frame of all pages: their templates, and the escaping of texts.

Texts of a store stay texts: they are escaped, characters that a page may not contain are spelt out, and secrets are
redacted. As a second line of defence, a page forbids scripts and requests.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from catalog.cli.text import formats
from catalog.engine.base.project import Project
from catalog.errors.visible_text import visible

Redact = Callable[[str], str]
"""Removes secrets from a text."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """The build that made a page, and the time."""

    build: str
    made_at: datetime

    @classmethod
    def now(cls, project: Project) -> Self:
        return cls(str(project.build), datetime.now(UTC))


def render(template: str, redact: Redact, **told: object) -> str:
    environment = Environment(
        loader=PackageLoader("catalog.cli.html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else visible(redact(str(value))),
    )
    environment.filters |= {
        name: getattr(formats, name) for name in ("count", "size", "duration", "share", "plural", "utc")
    }
    environment.filters["redacted"] = redact
    css = environment.get_template("page.css").render()
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    style = Markup(css)  # noqa: S704 - our own file
    return environment.get_template(template).render(style=style, style_hash=f"sha256-{digest}", **told) + "\n"
