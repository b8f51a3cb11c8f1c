"""The versions of the stash that this build knows.

`build_tools` reads and sets these numbers; do not edit them by hand.
"""

from typing import Final, Literal, cast, get_args

from catalog.errors import StoreTooNewError, StoreTooOldError

StashVersion = Literal[14, 15, 16, 17, 18, 19, 20, 21, 22]

MIN_STASH_VERSION: Final = 14
"""The oldest version that can still be upgraded."""

FIRST_PROTO_VERSION: Final = 15
"""The first version whose rows are protobuf; those before are JSON."""

STASH_VERSION: Final = 22
"""The version that this build reads, writes and initialises."""

BUILD: Final = "0.2.0.dev0"
"""The version of this build."""


def parse_version(number: int) -> StashVersion:
    """Return the version as a literal, or raise if this build has no arm for it in the dispatch."""
    if number < MIN_STASH_VERSION:
        raise StoreTooOldError(number, MIN_STASH_VERSION)
    if number not in get_args(StashVersion):
        raise StoreTooNewError(number, STASH_VERSION)
    return cast("StashVersion", number)
