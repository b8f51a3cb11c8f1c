"""Stores of these tests are in memory."""

from tests.volatile import tmp_path

__all__ = ["tmp_path"]
