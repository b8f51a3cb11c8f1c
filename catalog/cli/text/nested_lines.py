"""Values as lines of text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


def nested(value: Any, indent: str = "") -> Iterator[str]:  # noqa: ANN401 - JSON
    """A value as lines, each field on its own."""
    if isinstance(value, Mapping):
        for name, own in value.items():
            if isinstance(own, Mapping | list) and own:
                yield f"{indent}{name}:"
                yield from nested(own, f"{indent}  ")
            else:
                yield f"{indent}{name}: {compact(own)}"
    elif isinstance(value, list):
        for own in value:
            first, *rest = nested(own, "") if isinstance(own, Mapping | list) and own else [compact(own)]
            yield f"{indent}- {first}"
            yield from (f"{indent}  {line}" for line in rest)
    else:
        yield f"{indent}{compact(value)}"


def compact(value: Any) -> str:  # noqa: ANN401 - JSON
    return json.dumps(value, ensure_ascii=False)
