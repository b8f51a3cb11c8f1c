"""Fields that the types do not declare are never stored: not in keys, not in values, at no depth."""

from __future__ import annotations

import pytest
from google.protobuf.message import Message

from catalog.constraints import CONSTRAINTS
from catalog.engine.stash.registry import Registry, encode
from catalog.engine.stash.stash import Stash
from catalog.errors import UnknownFieldsError
from catalog.generated import objects_pb2 as types
from tests.earlier_builds import store_row
from tests.engine.log.places import Place

ANN = types.RoleId(user=1000)
UNKNOWN = b"\x98\x06\x07"  # field 99, the number 7


@pytest.fixture
def stash(place: Place) -> Stash:
    log = place.open()
    log.create("made")
    stash = Stash.open(log, Registry.of(types), CONSTRAINTS)
    stash.take_over(1, "test")
    with stash.transaction() as tx:
        tx.insert(types.RoleKey(id=ANN), types.RoleValue(name="ann"))
    return stash


def with_unknown(message: Message) -> Message:
    return type(message).FromString(message.SerializeToString() + UNKNOWN)


def nested(message: Message, *names: str) -> Message:
    """A message with the field inside of those of some names."""
    inner = message
    for name in names:
        found = getattr(inner, name)
        inner = found if isinstance(found, Message) else found[0]
    inner.MergeFromString(UNKNOWN)
    return message


KEYS = {
    "in the key": (with_unknown(types.RoleKey(id=ANN)), ("99",)),
    "in a message of the key": (nested(types.RoleKey(id=ANN), "id"), ("id.99",)),
    "below an empty one": (
        nested(types.RoleKey(id=types.RoleId(public=types.Empty())), "id", "public"),
        ("id.public.99",),
    ),
    "in a new key": (with_unknown(types.RoleKey(id=types.RoleId(user=5))), ("99",)),
}
OWNED = types.DatabaseValue(name="d", owner_id=ANN, privileges=[types.AclItem(grantee=ANN, grantor=ANN)])
VALUES = {
    "in the value": (with_unknown(OWNED), ("99",)),
    "in a message of it": (nested(types.DatabaseValue.FromString(encode(OWNED)), "owner_id"), ("owner_id.99",)),
    "in a list": (
        nested(types.DatabaseValue.FromString(encode(OWNED)), "privileges", "grantor"),
        ("privileges[0].grantor.99",),
    ),
}


@pytest.mark.parametrize("verb", ["insert", "update", "upsert", "delete", "get"])
@pytest.mark.parametrize("where", KEYS)
def test_a_key_with_unknown_fields_is_refused(stash: Stash, verb: str, where: str) -> None:
    """It would be a second row of the same name that no constraint sees."""
    key, fields = KEYS[where]
    before = stash.ts
    with pytest.raises(UnknownFieldsError) as caught, stash.transaction() as tx:
        getattr(tx, verb)(key, *([types.RoleValue(name="ann")] if verb in {"insert", "update", "upsert"} else []))
    assert (caught.value.part, caught.value.fields, stash.refresh()) == ("key", fields, before)
    assert "`role` has fields that RoleKey does not" in str(caught.value)


@pytest.mark.parametrize("verb", ["insert", "upsert", "update"])
@pytest.mark.parametrize("where", VALUES)
def test_a_value_with_unknown_fields_is_refused(stash: Stash, verb: str, where: str) -> None:
    """No version of the types would read them, and a migration would lose them."""
    value, fields = VALUES[where]
    if verb == "update":
        with stash.transaction() as tx:
            tx.insert(types.DatabaseKey(id=1), types.DatabaseValue(name="d", owner_id=ANN))
    before = stash.ts
    with pytest.raises(UnknownFieldsError) as caught, stash.transaction() as tx:
        getattr(tx, verb)(types.DatabaseKey(id=1), value)
    assert (caught.value.part, caught.value.fields, stash.refresh()) == ("value", fields, before)
    assert 'the value of the row {"id": 1} of `database`' in str(caught.value)


def test_a_known_message_is_stored_whatever_it_holds(stash: Stash) -> None:
    """Empty messages, unset fields and enum numbers that no name stands for are no unknown fields."""
    with stash.transaction() as tx:
        tx.insert(types.RoleKey(id=types.RoleId(public=types.Empty())), types.RoleValue(name="public"))
        tx.insert(types.DatabaseKey(id=1), OWNED)
    with stash.transaction() as tx:
        assert tx.get(types.DatabaseKey(id=1)) == OWNED


def test_a_key_that_an_earlier_build_stored_so_can_be_read_and_deleted(stash: Stash) -> None:
    """Or there would be no way out; it cannot be written again."""
    key = with_unknown(types.RoleKey(id=ANN))
    with stash.transaction() as tx:
        store_row(tx, key, types.RoleValue(name="double"))
    with pytest.raises(UnknownFieldsError), stash.transaction() as tx:
        tx.update(key, types.RoleValue(name="other"))
    with stash.transaction() as tx:
        assert tx.get(key) == types.RoleValue(name="double")
        tx.delete(key)
    assert [row for row, _ in stash.view().rows("role")] == [encode(types.RoleKey(id=ANN))]
