"""The dispatch: the migration that follows each version, and the project as the engine gets it.

A migration leads to the next version, never further. Each arm imports its own module, so that a store that is up to
date loads none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, assert_never

from catalog.authoring import BuildVersion, MigrationModule, Project, Transaction
from catalog.constraints import CONSTRAINTS
from catalog.privacy import PRIVACY
from catalog.version import BUILD, FIRST_PROTO_VERSION, MIN_STASH_VERSION, STASH_VERSION, StashVersion, parse_version

if TYPE_CHECKING:
    from catalog.authoring import Declaration, Sample


def migration_from(version: StashVersion, build: BuildVersion) -> MigrationModule | None:
    """Return the migration that a store of this version needs next, or None if it is up to date.

    `build` is for guards: `case 17 if build < BuildVersion(0, 50)` directly before `case 17` selects another migration
    for those builds.
    """
    match version:
        case 14:
            from catalog.migrations import v14_to_v15

            return v14_to_v15
        case 15:
            from catalog.migrations import v15_to_v16

            return v15_to_v16
        case 16:
            from catalog.migrations import v16_to_v17

            return v16_to_v17
        case 17:
            from catalog.migrations import v17_to_v18

            return v17_to_v18
        case 18:
            from catalog.migrations import v18_to_v19

            return v18_to_v19
        case 19:
            from catalog.migrations import v19_to_v20

            return v19_to_v20
        case 20:
            from catalog.migrations import v20_to_v21

            return v20_to_v21
        case 21:
            from catalog.migrations import v21_to_v22

            return v21_to_v22
        case 22:
            return None
        case _:
            assert_never(version)


def _initialize(transaction: Transaction) -> None:
    from catalog.initialize import initialize

    initialize(transaction)


def _samples(version: int) -> Mapping[str, Sample]:
    from catalog.samples import samples

    return samples(version)


def _builtins() -> Declaration:
    from catalog.builtins import DECLARED

    return DECLARED


PROJECT = Project(
    name="catalog",
    minimum=MIN_STASH_VERSION,
    first_proto=FIRST_PROTO_VERSION,
    current=STASH_VERSION,
    build=BuildVersion.parse(BUILD),
    migration_from=lambda version, build: migration_from(parse_version(version), build),
    constraints=CONSTRAINTS,
    initialize=_initialize,
    samples=_samples,
    builtins=_builtins,
    privacy=PRIVACY,
)
