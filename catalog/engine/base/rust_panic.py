"""Panics of libraries in Rust, which are no `Exception`."""

from __future__ import annotations


def is_panic(error: BaseException) -> bool:
    """Tell if a library in Rust gave up; the class of its error has no name to import."""
    return type(error).__name__ == "PanicException"
