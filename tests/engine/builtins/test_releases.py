"""The release matrix: from each of a series of releases to every later one, and a backport that must not be."""

from __future__ import annotations

import random
from dataclasses import replace

import pyarrow as pa
import pytest

from catalog.engine.base.project import BuildVersion
from catalog.engine.builtins.declaration import Builtin, Declaration, Instruction, Mechanism
from catalog.engine.builtins.migrate import run_read_only
from catalog.engine.shard.schema import Column, Schema
from catalog.errors import CatalogError, UninstructedSchemaError
from tests.engine.builtins.logs import STASH, Disk
from tests.engine.builtins.releases import Author, name
from tests.engine.builtins.world import lead, open_process


def releases(seed: int, count: int = 8) -> list[Declaration]:
    return Author(random.Random(seed)).releases(count, 5)  # noqa: S311 - no secret


def failures(series: list[Declaration]) -> dict[tuple[BuildVersion, BuildVersion], CatalogError]:
    """Every upgrade from one of the releases to a later one that does not work."""
    failed: dict[tuple[BuildVersion, BuildVersion], CatalogError] = {}
    for position, first in enumerate(series):
        disk = Disk()
        disk.open(STASH).create("made")
        lead(open_process(disk, first, 1))
        for later in series[position + 1 :]:
            own = disk.forked()
            try:
                run_read_only(open_process(own, later, 2))
                outcome = lead(open_process(own, later, 2))
            except CatalogError as error:
                failed[first.build, later.build] = error
            else:
                assert {used.fingerprint for used in outcome.used.values()} == set(later.fingerprints().values())
                assert set(outcome.used) == {builtin.name for builtin in later.builtins}
    return failed


@pytest.mark.parametrize("seed", range(4))
def test_every_upgrade_from_a_release_to_a_later_one_works(seed: int) -> None:
    """However many are left out in between."""
    assert failures(releases(seed)) == {}


def backported(series: list[Declaration], position: int, builtin: Builtin) -> list[Declaration]:
    """The same releases, and a patch of one of them that evolves a builtin, made after all of them."""
    before = series[position]
    build = replace(before.build, patch=1)
    evolved = Builtin(builtin.name, Schema((*builtin.schema.columns, Column(999, "backported", pa.string()))))
    builtins = tuple(evolved if one.name == builtin.name else one for one in before.builtins)
    patch = Declaration(build, builtins, (*before.instructions, Instruction(build, builtin.name, Mechanism.EVOLUTION)))
    return [*series[: position + 1], patch, *series[position + 1 :]]


def test_a_migration_that_was_backported_into_a_patch_release_is_caught() -> None:
    """0.3.1 has a schema that 0.4.0, released before it, knows nothing of: the way from one to the other is closed."""
    series = releases(7)
    target = next(one for one in series[2].builtins if one in series[3].builtins)
    found = backported(series, 2, target)
    failed = failures(found)
    assert {first for first, _ in failed} == {found[3].build}
    error = failed[found[3].build, series[3].build]
    assert isinstance(error, UninstructedSchemaError)
    assert error.name == str(target.name)


def test_a_backport_is_caught_also_where_a_later_release_happens_to_lead_across_it() -> None:
    """An evolution of the same builtin there would delete what was backported, without a word."""
    series = releases(7)
    found = backported(series, 2, series[2].builtins[0])
    lacking = {
        (first.build, later.build) for n, first in enumerate(found) for later in found[n + 1 :] if later.lacks(first)
    }
    assert lacking == {(found[3].build, later.build) for later in found[4:]}
    assert not any(later.lacks(first) for n, first in enumerate(series) for later in series[n + 1 :])


def test_a_removed_instruction_is_caught() -> None:
    """A later release that forgot one cannot be reached from before it."""
    first = Declaration(BuildVersion(0, 1), (Builtin(name("a"), Schema.of(Column(0, "x", pa.int8()))),))
    evolved = Builtin(name("a"), Schema.of(Column(0, "x", pa.int8()), Column(1, "y", pa.int8())))
    second = Declaration(
        BuildVersion(0, 2), (evolved,), (Instruction(BuildVersion(0, 2), name("a"), Mechanism.EVOLUTION),)
    )
    assert failures([first, second]) == {}
    forgetful = Declaration(BuildVersion(0, 3), (evolved,))
    failed = failures([first, second, forgetful])
    assert set(failed) == {(BuildVersion(0, 1), BuildVersion(0, 3))}
    assert isinstance(failed[BuildVersion(0, 1), BuildVersion(0, 3)], UninstructedSchemaError)
