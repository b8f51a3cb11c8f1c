"""The verbs of bulk writes."""

from __future__ import annotations

from enum import StrEnum


class Verb(StrEnum):
    APPEND = "append"
    """Adds rows whose keys are new."""
    UPSERT = "upsert"
    """Adds rows, or sets the columns of the frame in those that are there."""
    DELETE = "delete"
    """Removes the rows of the keys that are there."""
