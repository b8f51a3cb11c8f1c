"""Version 21 to 22: roles, databases, schemas and items may have an `oid`.

For whom: every store, and none has to change. Why: PostgreSQL clients ask for the numeric id of the objects
they see; it has to be the same after a restart, so it is stored.

`role`, `database`, `schema` and `item` gain the optional field `oid`, under a number that was never used. A
row without it means that no `oid` has been given yet, which is what every row written by version 21 says,
byte for byte. So no row is read or written. Whoever first needs the `oid` of an object gives it one, in a
transaction.
"""

from catalog.actions import Action, wire_compatible


def upgrade() -> list[Action]:
    """Declare the step: four collections whose rows stay as they are."""
    return [
        wire_compatible("role"),
        wire_compatible("database"),
        wire_compatible("schema"),
        wire_compatible("item"),
    ]
