"""Errors that the code of a project raises, as texts with its file and line."""

from __future__ import annotations

import re
from pathlib import Path
from traceback import walk_tb
from typing import Final

from catalog.errors import CatalogError

_CALLERS: Final = tuple(Path(__file__).parents[2] / name for name in ("engine", "tools", "cli"))
"""The folders of the code that calls a project; `catalog/migrations` and its other files are beside them."""
_LIBRARIES: Final = re.compile(r"<frozen|[/\\](?:pyspark|py4j|pyarrow|google[/\\]protobuf|importlib)[/\\]")
_STATE: Final = re.compile(r"\s*SQLSTATE: \w+;?")


def error_text(error: BaseException, *, innermost: bool = False) -> str:
    """Return the first line of an error that a project or the codec raised, with the project's file and line.

    That is the file which was called; with `innermost`, the one that raised it.
    """
    if isinstance(error, CatalogError):
        return error.what
    first = _STATE.sub("", next(iter(str(error).strip().splitlines()), ""))  # Spark's has the plan after it
    return f"{type(error).__name__}: {first}{_place(error, innermost=innermost)}"


def _place(error: BaseException, *, innermost: bool) -> str:
    """Return the line of the project at which an error was raised; empty if the engine itself raised it."""
    calls = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    outside = [call for call in calls if not any(map(Path(call[0]).is_relative_to, _CALLERS))]
    if innermost:
        outside = [call for call in outside if not _LIBRARIES.search(call[0])][-1:]
    elif outside and _LIBRARIES.search(outside[0][0]):
        return ""
    lines = [line for file, line in outside if file == outside[0][0]]
    return f" ({Path(outside[0][0]).name}, line {lines[-1]})" if lines else ""
