"""The process that opened something: a child forked from it shares its memory, but none of its rights."""

from __future__ import annotations

import os

from catalog.errors import ForkedClientError, ForkedError


def require_opener(opened_by: int, thing: str) -> None:
    """Refuse to use or to release what another process opened, before anything is locked, read or written."""
    process = os.getpid()
    if process != opened_by:
        raise ForkedError(thing, opened_by, process)


class ProcessClient:
    """A client that works in threads of its own, such as that of object stores: one process uses it, and no child.

    >>> CLIENT = ProcessClient()
    >>> CLIENT.require_own("s3://bucket/store")
    """

    def __init__(self) -> None:
        self.used_by: int | None = None

    def require_own(self, thing: str) -> None:
        """Refuse a child of the process that was the first to use the client; it would hang, and its parent with it."""
        process = os.getpid()
        if self.used_by is None:
            self.used_by = process
        elif self.used_by != process:
            raise ForkedClientError(thing, self.used_by, process)
