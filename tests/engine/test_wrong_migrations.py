"""Migrations that are wrong, each in one way: none of them is applied, and each is told what it broke."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message import Message

from catalog.actions import Action, columnar, delete, insert, per_row, retire, wire_compatible
from catalog.engine.events import State
from catalog.engine.run import upgrade
from catalog.engine.violations import Rule
from catalog.errors import StepRefusedError
from catalog.log.protocol import Mark
from catalog.stash.collections import encode
from catalog.upgrade import PROJECT
from tests.engine.stores import append, events_of, findings_of, lead, project_with, rows_of, state_of, version_of

old: Any = PROJECT.types(21)
new: Any = PROJECT.types(22)
Stores = Callable[[int], Path]
UNKNOWN = b"\xa0\x06\x01"
"""Field 100, a number."""


def same(kind: str, key: Message, value: Message) -> tuple[Message, Message]:
    """A row with the types of the next version."""
    return (
        getattr(new, f"{kind}Key").FromString(key.SerializeToString()),
        getattr(new, f"{kind}Value").FromString(value.SerializeToString()),
    )


def role(number: int) -> Any:  # noqa: ANN401
    return new.RoleKey(id=new.RoleId(user=number))


def lose_rows(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.slice(1)


def one_key(_key: Any, value: Any) -> tuple[Message, Message]:  # noqa: ANN401
    return same("Setting", old.SettingKey(name="only"), value)


def key_of_another_part(key: Any, value: Any) -> Iterator[tuple[Message, Message]]:  # noqa: ANN401
    yield same("Cluster", key, value)
    yield new.ClusterReplicaKey(id=1), new.ClusterReplicaValue(cluster_id=key.id, name=f"of {key.id}")


def one_name(key: Any, value: Any) -> tuple[Message, Message]:  # noqa: ANN401
    value.name = "alike"
    return same("Cluster", key, value)


def owned_by_nobody(key: Any, value: Any) -> tuple[Message, Message]:  # noqa: ANN401
    value.owner_id.CopyFrom(old.RoleId(user=987_654))
    return same("Database", key, value)


def keep(_key: Any, _value: Any) -> bool:  # noqa: ANN401
    return False


def everyone(_key: Any, _value: Any) -> bool:  # noqa: ANN401
    return True


def keep_role(key: Any, value: Any) -> tuple[Message, Message]:  # noqa: ANN401
    return same("Role", key, value)


def keep_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch


def with_unknown(key: Any, value: Any) -> tuple[Message, Message]:  # noqa: ANN401
    return new.SettingKey(name=key.name), new.SettingValue.FromString(value.SerializeToString() + UNKNOWN)


def raising(key: Any, value: Any) -> tuple[Message, Message]:  # noqa: ANN401
    if key.name == sorted_setting():
        raise LookupError("no idea what to do")
    return same("Setting", key, value)


def raising_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    if sorted_setting() in batch["key"].field("name").to_pylist():
        raise LookupError("no idea what to do")
    return batch


def sorted_setting() -> str:
    """The setting that generated stores have."""
    return "the one"


def undeclared(key: Any, value: Any) -> Iterator[tuple[Message, Message]]:  # noqa: ANN401
    yield same("Setting", key, value)
    yield new.ServerConfigurationKey(name=key.name), new.ServerConfigurationValue(value="?")


def wrong_value(key: Any, _value: Any) -> tuple[Message, Message]:  # noqa: ANN401
    return new.SettingKey(name=key.name), new.ServerConfigurationValue(value="?")


def of_the_old_version(key: Any, value: Any) -> tuple[Message, Message]:  # noqa: ANN401
    return key, value


def refused(store: Path, version: int, *actions: Action) -> StepRefusedError:
    """The step is refused, and nothing is changed but what is told of it."""
    before, state = rows_of(store), state_of(store)
    runner = lead(store, project_with(version, *actions))
    with pytest.raises(StepRefusedError) as caught:
        upgrade(runner)
    error = caught.value
    assert rows_of(store) == before
    assert version_of(store) == version
    after = state_of(store)
    assert after.marks[Mark.RUNNING_STEP] == 0
    own = {path for path, file in state.files.items() if file.collection not in {"migration_event", "fence_token"}}
    assert own <= after.files.keys()
    (event,) = events_of(store)
    assert (event.state, event.value.error) == (State.ERROR, error.what)
    assert event.value.HasField("completed_ms")
    assert str(error).splitlines() == [error.what, f"why:  {error.why}", f"next: {error.next}"]
    assert error.rule in error.why
    return error


SETTING = encode(new.SettingKey(name="the one")), encode(new.SettingValue(value="1"))

WRONG: dict[str, tuple[Rule, str, tuple[Action, ...]]] = {
    "loses rows": (Rule.ROWS, "cluster {id:", (columnar("cluster", lose_rows),)),
    "one key for all": (Rule.KEY, 'setting {name: "only"}: two rows', (per_row("setting", one_key),)),
    "one key from each": (
        Rule.KEY,
        "cluster_replica {id: 1}: two rows",
        (per_row("cluster", key_of_another_part, into=("cluster_replica",)),),
    ),
    "one name for all": (
        Rule.UNIQUE,
        "value.name is 'alike' also in cluster {id:",
        (per_row("cluster", one_name),),
    ),
    "refers to nothing": (
        Rule.REFERENCE,
        "value.owner_id refers to role {id { user: 987654 }}, which is not there",
        (per_row("database", owned_by_nobody),),
    ),
    "deletes what is referred to": (
        Rule.REFERENCE,
        "value.cluster_id refers to cluster {id:",
        (delete("cluster", everyone),),
    ),
    "writes unknown fields": (Rule.ENCODE, "setting {name:", (per_row("setting", with_unknown),)),
    "raises": (Rule.CHANGE, 'setting {name: "the one"}: LookupError: no idea', (per_row("setting", raising),)),
    "raises on a batch": (
        Rule.CHANGE,
        'setting {name: "the one"}: LookupError: no idea',
        (columnar("setting", raising_batch),),
    ),
    "makes undeclared rows": (
        Rule.CHANGE,
        "it makes a row of server_configuration, which `into` does not name",
        (per_row("setting", undeclared),),
    ),
    "makes a row of two collections": (
        Rule.CHANGE,
        "it makes a row of setting whose value is a ServerConfigurationValue",
        (per_row("setting", wrong_value),),
    ),
    "keeps the old types": (Rule.CHANGE, 'setting {name: "', (per_row("setting", of_the_old_version),)),
    "inserts what is there": (
        Rule.KEY,
        'setting {name: "the one"}: two rows have this key',
        (insert("setting", lambda: [(new.SettingKey(name="the one"), new.SettingValue(value="2"))]),),
    ),
    "inserts twice": (
        Rule.KEY,
        'setting {name: "new"}: two rows have this key',
        (insert("setting", lambda: [(new.SettingKey(name="new"), new.SettingValue(value=v)) for v in "ab"]),),
    ),
    "inserts by two actions": (
        Rule.KEY,
        'setting {name: "new"}: two rows have this key',
        (
            insert("setting", lambda: [(new.SettingKey(name="new"), new.SettingValue(value="a"))]),
            insert("setting", lambda: [(new.SettingKey(name="new"), new.SettingValue(value="b"))]),
        ),
    ),
    "inserts a name that is there": (
        Rule.UNIQUE,
        "role {id { user: ",
        (
            insert("role", lambda: [(role(77_001), new.RoleValue(name="twice"))]),
            insert("role", lambda: [(role(77_002), new.RoleValue(name="twice"))]),
        ),
    ),
    "inserts what refers to nothing": (
        Rule.REFERENCE,
        "value.member_of refers to role {id { user: 77009 }}, which is not there",
        (insert("role", lambda: [(role(77_001), new.RoleValue(name="x", member_of=[role(77_009).id]))]),),
    ),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_a_wrong_migration_is_refused(copy_of: Stores, mistake: str) -> None:
    """Before its commit, with the collection, the key and the rule named."""
    rule, found, actions = WRONG[mistake]
    store = copy_of(21)
    append(store, "setting", (*SETTING, 1))
    error = refused(store, 21, *actions)
    assert error.rule == rule
    assert found in error.what


@pytest.mark.parametrize(
    "action",
    [per_row("role", keep_role), columnar("role", keep_batch), delete("role", keep)],
    ids=["per row", "columnar", "delete"],
)
@pytest.mark.parametrize(
    ("value", "rule"), [(encode(new.RoleValue(name="x")) + UNKNOWN, Rule.UNKNOWN_FIELDS), (b"\xff\xff", Rule.DECODE)]
)
def test_a_stored_row_that_would_be_changed_unseen_is_refused(
    copy_of: Stores, action: Action, value: bytes, rule: Rule
) -> None:
    """A field that the types do not know, and bytes that are no message."""
    store = copy_of(21)
    append(store, "role", (encode(role(77_001)), value, 1))
    error = refused(store, 21, action)
    assert error.rule == rule
    assert "role {id { user: 77001 }}" in error.what


@pytest.mark.parametrize("value", [b"{", b'{"value": 1}', b'{"value":"1","more":2}', b"\xff"])
def test_a_legacy_row_that_its_types_would_not_write_is_refused(copy_of: Stores, value: bytes) -> None:
    """Before protobuf as well."""
    store = copy_of(14)
    append(store, "setting", (b'{"name":"odd"}', value, 1))
    before = rows_of(store)
    with pytest.raises(StepRefusedError, match=r'\{"name":"odd"\}') as caught:
        upgrade(lead(store))
    assert caught.value.rule == Rule.DECODE
    assert (version_of(store), rows_of(store)) == (14, before)


def test_a_collection_that_is_left_behind_is_refused(copy_of: Stores) -> None:
    """Nobody could read it any more."""
    error = refused(copy_of(20), 20, wire_compatible("item"))
    assert error.rule == Rule.COLLECTION
    assert "timestamp: version 21 has no such collection" in error.what


def test_a_collection_may_be_retired(copy_of: Stores) -> None:
    """The same without the mistake is applied."""
    store = copy_of(20)
    before = rows_of(store)
    upgrade(lead(store, project_with(20, retire("timestamp"))))
    assert version_of(store) == 21
    assert rows_of(store) == {name: rows for name, rows in before.items() if name != "timestamp"}


def test_a_row_that_was_deleted_may_be_inserted_again(copy_of: Stores) -> None:
    """Its retraction is still in the tail, and is of an earlier ts."""
    store = copy_of(21)
    append(store, "setting", (*SETTING, 1))
    append(store, "setting", (*SETTING, -1))
    row = new.SettingKey(name="the one"), new.SettingValue(value="again")
    upgrade(lead(store, project_with(21, insert("setting", lambda: [row]))))
    assert dict(rows_of(store)["setting"])[SETTING[0]] == encode(row[1])
    assert findings_of(store) == []


def test_rows_that_are_inserted_may_refer_to_rows_that_stay(copy_of: Stores) -> None:
    """And to each other."""
    store = copy_of(21)
    present = new.RoleKey.FromString(rows_of(store)["role"][0][0])
    rows = [
        (role(77_001), new.RoleValue(name="x", member_of=[present.id, role(77_002).id])),
        (role(77_002), new.RoleValue(name="y")),
    ]
    upgrade(lead(store, project_with(21, insert("role", lambda: rows))))
    assert dict(rows_of(store)["role"])[encode(role(77_001))] == encode(rows[0][1])
    assert findings_of(store) == []


def test_many_violations_are_counted_and_some_are_named(copy_of: Stores) -> None:
    """The first is told with how many there are."""
    store = copy_of(21)
    owners = len(rows_of(store)["database"])
    error = refused(store, 21, per_row("database", owned_by_nobody))
    assert error.count == owners
