"""The console of rich, which spells out what cannot be seen: it gets texts of stores."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.segment import Segment

from catalog.errors.visible_text import visible


class VisibleConsole(Console):
    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        """Return a buffer as text with its styles; all that the console writes, progress too, comes by here."""
        return super()._render_buffer(own if own.control else Segment(visible(own.text), own.style) for own in buffer)
