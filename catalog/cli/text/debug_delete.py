"""`catalog debug delete` as text: the same as that of an edit."""

from catalog.cli.text.debug_edit import render, render_plan

__all__ = ["render", "render_plan"]
