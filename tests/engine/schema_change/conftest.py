"""Processes over one store with a table of accounts."""

from __future__ import annotations

import pytest

from tests.engine.schema_change.accounts import ACCOUNTS
from tests.engine.schema_change.stores import Disk, Process


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def member(disk: Disk) -> Process:
    """A process beside an empty table of accounts."""
    process = disk.open()
    process.ddl(ACCOUNTS)
    return process


@pytest.fixture
def other(disk: Disk, member: Process) -> Process:
    """Another process over the same store; two accounts are there."""
    member.insert("accounts", {"id": 1, "owner": "ann", "amount": 10}, {"id": 2, "owner": "bob", "amount": 20})
    return disk.open("host-2:2")
