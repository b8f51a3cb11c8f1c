"""`catalog ddl resume` as text: as `catalog ddl run`."""

from __future__ import annotations

from catalog.cli.text.ddl_run import render, render_result

__all__ = ["render", "render_result"]
