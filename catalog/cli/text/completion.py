"""`catalog completion` as text: the script alone, for a shell to evaluate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


def render(data: Mapping[str, str]) -> Iterator[str]:
    yield data["script"].rstrip("\n")
