"""Row groups: the pieces of a file that are read by themselves, told by its footer."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from catalog.engine.log.protocol import FileKind
from catalog.errors import CorruptFileError, MissingFileError
from tests.engine.log.places import FENCE, DeltaPlace, Place, created, rows

GROUP_ROWS = 16_384


def numbered(count: int) -> list[bytes]:
    return [f"{number:08d}".encode() for number in range(count)]


def test_a_file_tells_the_bounds_of_its_pieces_and_gives_each_by_itself(place: Place) -> None:
    """Together they are all of it, in order."""
    log, _ = created(place)
    keys = numbered(GROUP_ROWS + 3)
    written = rows(0, *keys)
    file = log.write("role", FileKind.BASE, FENCE, written)
    groups = place.open().groups(file)
    assert [(group.first, group.last, group.rows) for group in groups] == [
        (keys[0], keys[GROUP_ROWS - 1], GROUP_ROWS),
        (keys[GROUP_ROWS], keys[-1], 3),
    ]
    assert all(group.size > 0 for group in groups)
    assert place.open().read(file, ["key"], [1])["key"].to_pylist() == keys[GROUP_ROWS:]
    assert place.open().read(file, None, [0, 1]) == written


def test_keys_that_are_too_long_for_a_footer_are_read_themselves(place: Place) -> None:
    """The bounds are right all the same."""
    log, _ = created(place)
    keys = [letter * 10_000 for letter in (b"a", b"b", b"c")]
    (group,) = log.groups(log.write("role", FileKind.BASE, FENCE, rows(0, *keys)))
    assert (group.first, group.last, group.rows) == (keys[0], keys[-1], 3)


def test_a_footer_that_is_larger_than_most_is_read_whole(place: Place) -> None:
    """Bounds of several thousand bytes each make it long."""
    log, _ = created(place)
    ends = {number for group in range(4) for number in (group * GROUP_ROWS, (group + 1) * GROUP_ROWS - 1)}
    keys = [key + bytes(3_000) * (number in ends) for number, key in enumerate(numbered(4 * GROUP_ROWS))]
    groups = log.groups(log.write("role", FileKind.BASE, FENCE, rows(0, *keys)))
    assert [key for group in groups for key in (group.first, group.last)] == [keys[number] for number in sorted(ends)]


@pytest.mark.parametrize(("kind", "size"), [(FileKind.LAYER, 8_192), (FileKind.BASE, GROUP_ROWS)])
def test_a_piece_is_read_without_the_others(place: Place, kind: FileKind, size: int) -> None:
    """Those of a layer are smaller, since single keys are looked up in it."""
    log, _ = created(place)
    keys = numbered(2 * size + 3)
    grouped = place.open().grouped(log.write("role", kind, FENCE, rows(0, *keys)))
    assert [(group.first, group.last, group.rows) for group in grouped.groups] == [
        (keys[0], keys[size - 1], size),
        (keys[size], keys[2 * size - 1], size),
        (keys[2 * size], keys[-1], 3),
    ]
    assert [grouped.read(number) for number in (1, 2, 0)] == [
        rows(0, *keys[size : 2 * size]),
        rows(0, *keys[2 * size :]),
        rows(0, *keys[:size]),
    ]


@pytest.mark.parametrize("length", [10, 10_000])
def test_few_rows_and_long_keys_are_one_piece(place: Place, length: int) -> None:
    """Footers tell nothing of their keys."""
    log, _ = created(place)
    written = rows(0, *(letter * length for letter in (b"a", b"b", b"c")))
    grouped = log.grouped(log.write("role", FileKind.LAYER, FENCE, written))
    assert [(group.first, group.last, group.rows) for group in grouped.groups] == [(b"a" * length, b"c" * length, 3)]
    assert grouped.read(0) == written


def test_a_file_of_an_earlier_build_is_checked_as_a_whole(folder: DeltaPlace) -> None:
    """Its name does not tell the checksum of its footer."""
    log, _ = created(folder)
    file = log.write("role", FileKind.BASE, FENCE, rows(0, *numbered(100)))
    named = replace(file, path=re.sub("-[0-9a-f]{32}-", f"-{'0' * 32}-", file.path))
    (folder.folder / file.path).rename(folder.folder / named.path)
    assert log.grouped(named).read(0).num_rows == 100
    path = folder.folder / named.path
    whole = path.read_bytes()
    path.write_bytes(whole[:500] + bytes([whole[500] ^ 1]) + whole[501:])
    with pytest.raises(CorruptFileError, match="its checksum does not fit"):
        log.grouped(named)


def test_a_file_that_is_gone_has_no_pieces(place: Place) -> None:
    log, _ = created(place)
    file = log.write("role", FileKind.BASE, FENCE, rows(0, b"a"))
    log.delete([file.path])
    with pytest.raises(MissingFileError):
        log.groups(file)
    with pytest.raises(MissingFileError):
        log.grouped(file)


def test_a_file_that_was_cut_or_overwritten_is_told_from_a_whole_one(folder: DeltaPlace) -> None:
    """Nothing is divided by bounds that nobody wrote."""
    log, _ = created(folder)
    file = log.write("role", FileKind.BASE, FENCE, rows(0, b"a"))
    path = folder.folder / file.path
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    with pytest.raises(CorruptFileError):
        log.groups(file)
    path.write_bytes(b"\xff" * len(whole))
    with pytest.raises(CorruptFileError):
        log.groups(file)
