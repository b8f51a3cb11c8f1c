"""Large values and many of them: no array meets the limit of 32-bit offsets, and memory stays in proportion."""

from __future__ import annotations

import random
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import settings

from catalog.constraints import CONSTRAINTS
from catalog.engine.log.protocol import FileKind
from catalog.engine.stash.compaction import FILE_BYTES_MAX
from catalog.engine.stash.registry import Registry, encode
from catalog.engine.stash.stash import Stash
from catalog.generated import objects_pb2 as types
from tests.engine.log.places import DeltaPlace, Place

SOAK = settings.get_current_profile_name() == "soak"
REGISTRY = Registry.of(types)
MIB = 1024 * 1024
VALUE_BYTES = 200_000
TRANSACTION_ROWS = 1_000


def open_stash(place: Place) -> Stash:
    return Stash.open(place.open(), REGISTRY, CONSTRAINTS)


@pytest.fixture
def stash(folder: DeltaPlace) -> Stash:
    folder.open().create("made")
    stash = open_stash(folder)
    stash.take_over(1, "test")
    return stash


def text(number: int, length: int) -> str:
    """A text of its own for each number: little of it is random, so that files stay small and reading stays quick."""
    noise = random.Random(number).randbytes(500).hex()  # noqa: S311 - nothing secret
    return noise + "." * (length - len(noise))


def check_rows(stash: Stash, lengths: dict[int, int]) -> None:
    """Exactly these rows, and each says what was written; compared one at a time, to need no more memory."""
    found = 0
    for key, value in stash.view().rows("setting"):
        number = int(types.SettingKey.FromString(key).name)
        wanted = encode(types.SettingValue(value=text(number, lengths[number])))
        assert hash(value) == hash(wanted), number  # a difference of 200 KB is nothing that anyone reads
        found += 1
    assert found == len(lengths)


def write(stash: Stash, numbers: range, length: int) -> None:
    with stash.transaction() as tx:
        for number in numbers:
            tx.insert(types.SettingKey(name=f"{number:06d}"), types.SettingValue(value=text(number, length)))


@contextmanager
def measured(what: str) -> Iterator[None]:
    """Print the time of a step, and the peak of memory since the process began: see them with `-rP`."""
    began = time.perf_counter()
    yield
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(f"soak: {what} in {time.perf_counter() - began:.1f} s, peak {peak // MIB} MiB")  # noqa: T201


def exercise(stash: Stash, place: Place, lengths: dict[int, int]) -> None:
    """Read back, consolidate, read again, all by processes that have nothing in memory yet."""
    with measured("read from tails"):
        check_rows(open_stash(place), lengths)
    with measured("consolidated"):
        stash.consolidate("setting")
    files = [file for file in stash.state.files.values() if file.collection == "setting"]
    assert {file.kind for file in files} == {FileKind.BASE}
    assert sum(file.rows for file in files) == len(lengths)
    assert len(files) >= sum(lengths.values()) // (2 * FILE_BYTES_MAX), "a base file is larger than it may be"
    with measured("read from bases"):
        check_rows(open_stash(place), lengths)
    with measured("read by key"):
        number = max(lengths)
        found = open_stash(place).view().get("setting", encode(types.SettingKey(name=f"{number:06d}")))
        assert found == encode(types.SettingValue(value=text(number, lengths[number])))
    with measured("changed"):
        write(stash, range(number + 1, number + 2), 10)
    check_rows(open_stash(place), lengths | {number + 1: 10})


def test_a_value_of_100_mib_among_large_rows(stash: Stash, folder: DeltaPlace) -> None:
    """One value may be larger than a file is meant to be, with 600 rows of 200 KB beside it."""
    lengths = {0: 100 * MIB, **dict.fromkeys(range(1, 601), VALUE_BYTES)}
    with measured("written"):
        write(stash, range(1), 100 * MIB)
        for first in (1, 301):
            write(stash, range(first, first + 300), VALUE_BYTES)
    exercise(stash, folder, lengths)


@pytest.mark.skipif(not SOAK, reason="4 GB of rows are read again and again: run with --hypothesis-profile soak")
def test_20_000_rows_of_200_kb(stash: Stash, folder: DeltaPlace) -> None:
    """A collection of 4 GB is written, read and consolidated: twice what 32-bit offsets reach."""
    lengths = dict.fromkeys(range(20_000), VALUE_BYTES)
    with measured("written"):
        for first in range(0, 20_000, TRANSACTION_ROWS):
            write(stash, range(first, first + TRANSACTION_ROWS), VALUE_BYTES)
    exercise(stash, folder, lengths)
