"""Constraints that do not fit the types are refused when a store is opened, not at the first write."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from catalog.engine.log.place import StorePlace
from catalog.engine.stash.constraints import Constraints, Reference, Unique
from catalog.engine.store.catalog import Mode
from catalog.engine.store.leadership import LeadershipOptions
from catalog.engine.store.open import open_store
from catalog.errors import UnfitConstraintError
from catalog.upgrade import PROJECT

UNFIT = {
    "no collection": (Constraints((Unique("rol", ("value.name",)),)), "there is no collection `rol`"),
    "no field": (Constraints((Unique("role", ("value.nam",)),)), "`value.nam` leads to no field: there is no `nam`"),
    "no member": (
        Constraints((Unique("role", ("value.name.first",)),)),
        "`value.name.first` leads to no field: there is no `first`",
    ),
    "no side": (Constraints((Unique("role", ("name",)),)), "`name` does not lead from the key or the value to a field"),
    "one text": (Constraints((Unique("role", "value.name"),)), "its paths are one text, and no tuple of texts"),  # type: ignore[arg-type]
    "no target": (
        Constraints((), (Reference("item", "value.schema_id", "schemas"),)),
        "there is no collection `schemas`",
    ),
    "other type": (
        Constraints((), (Reference("item", "value.name", "schema"),)),
        "`value.name` is of another type than the key of `schema`",
    ),
    "no id": (
        Constraints((), (Reference("item", "value.name", "setting"),)),
        "the key of `setting` is not one field `id`",
    ),
}


@pytest.mark.parametrize("mistake", UNFIT)
def test_a_constraint_that_does_not_fit_the_types_is_refused_before_a_store_is_made(
    tmp_path: Path, mistake: str
) -> None:
    """With the constraint and what is wrong with it; nothing is written."""
    constraints, found = UNFIT[mistake]
    place = StorePlace.at(replace(PROJECT, constraints=constraints), tmp_path / "store")
    with pytest.raises(UnfitConstraintError) as caught:
        open_store(place, Mode.LEADER, LeadershipOptions())
    assert caught.value.found == found
    assert str(caught.value).splitlines()[0].endswith(f"does not fit the types: {found}")
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("mode", [Mode.LEADER, Mode.MEMBER, Mode.READ_ONLY, Mode.SAVEPOINT, Mode.DEBUG])
def test_no_mode_opens_a_store_with_such_a_constraint(tmp_path: Path, mode: Mode) -> None:
    """So that no later call meets it."""
    open_store(StorePlace.at(PROJECT, tmp_path / "store"), Mode.LEADER, LeadershipOptions()).close()
    constraints, _ = UNFIT["no field"]
    place = StorePlace.at(replace(PROJECT, constraints=constraints), tmp_path / "store")
    with pytest.raises(UnfitConstraintError):
        open_store(place, mode, LeadershipOptions())
