"""Migrations that are wrong, each in one way: none of them is applied, and each is told what it broke."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message import Message

from catalog.actions import Action, columnar, delete, insert, per_row, retire, wire_compatible
from catalog.engine.log.protocol import AppTxn
from catalog.engine.migrate.executor import upgrade
from catalog.engine.migrate.recorder import RunState
from catalog.engine.migrate.violations import RowRule
from catalog.engine.stash.registry import encode
from catalog.errors import MigrationFailedError, StepRefusedError, UnwrittenStepError
from catalog.upgrade import PROJECT
from tests.engine.migrate.stores import (
    append,
    events_of,
    findings_of,
    lead,
    project_with,
    rows_of,
    state_of,
    version_of,
)

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
    assert after.app_txns[AppTxn.RUNNING_STEP] == 0
    own = {path for path, file in state.files.items() if file.collection not in {"migration_event", "fence_token"}}
    assert own <= after.files.keys()
    (event,) = events_of(store)
    assert (event.state, event.value.error) == (RunState.ERROR, error.what)
    assert event.value.HasField("completed_ms")
    assert str(error).splitlines() == [error.what, f"why:  {error.why}", f"next: {error.next}"]
    assert error.rule in error.why
    return error


SETTING = encode(new.SettingKey(name="the one")), encode(new.SettingValue(value="1"))

WRONG: dict[str, tuple[RowRule, str, tuple[Action, ...]]] = {
    "loses rows": (RowRule.ROWS, 'cluster {"id":', (columnar("cluster", lose_rows),)),
    "one key for all": (RowRule.KEY, 'setting {"name": "only"}: two rows', (per_row("setting", one_key),)),
    "one key from each": (
        RowRule.KEY,
        'cluster_replica {"id": 1}: two rows',
        (per_row("cluster", key_of_another_part, into=("cluster_replica",)),),
    ),
    "one name for all": (
        RowRule.UNIQUE,
        "value.name is 'alike' also in cluster {\"id\":",
        (per_row("cluster", one_name),),
    ),
    "refers to nothing": (
        RowRule.REFERENCE,
        'value.owner_id refers to role {"id": {"user": 987654}}, which does not exist',
        (per_row("database", owned_by_nobody),),
    ),
    "deletes what is referred to": (
        RowRule.REFERENCE,
        'value.cluster_id refers to cluster {"id":',
        (delete("cluster", everyone),),
    ),
    "writes unknown fields": (RowRule.ENCODE, 'setting {"name":', (per_row("setting", with_unknown),)),
    "raises": (RowRule.CHANGE, 'setting {"name": "the one"}: LookupError: no idea', (per_row("setting", raising),)),
    "raises on a batch": (
        RowRule.CHANGE,
        'setting {"name": "the one"}: LookupError: no idea',
        (columnar("setting", raising_batch),),
    ),
    "returns no row": (
        RowRule.CHANGE,
        "TypeError: it returned the str 'x'; needed: a row (key, value), several of them, or None",
        (per_row("setting", lambda _key, _value: "x"),),  # type: ignore[arg-type, return-value]
    ),
    "returns more than a row": (
        RowRule.CHANGE,
        "TypeError: it returned the tuple (",
        (per_row("setting", lambda key, value: (key, value, 1)),),  # type: ignore[arg-type, return-value]
    ),
    "deletes by what is no truth": (
        RowRule.CHANGE,
        "TypeError: it returned the str 'no'; needed: True or False",
        (delete("setting", lambda _key, _value: "no"),),  # type: ignore[arg-type, return-value]
    ),
    "deletes by nothing": (
        RowRule.CHANGE,
        "TypeError: it returned None; needed: True or False",
        (delete("setting", lambda _key, _value: None),),  # type: ignore[arg-type, return-value]
    ),
    "makes undeclared rows": (
        RowRule.CHANGE,
        "it makes a row of server_configuration, which `into` does not name",
        (per_row("setting", undeclared),),
    ),
    "makes a row of two collections": (
        RowRule.CHANGE,
        "it makes a row of setting whose value is a ServerConfigurationValue",
        (per_row("setting", wrong_value),),
    ),
    "keeps the old types": (RowRule.CHANGE, 'setting {"name": "', (per_row("setting", of_the_old_version),)),
    "inserts what is there": (
        RowRule.KEY,
        'setting {"name": "the one"}: two rows have this key',
        (insert("setting", lambda: [(new.SettingKey(name="the one"), new.SettingValue(value="2"))]),),
    ),
    "inserts twice": (
        RowRule.KEY,
        'setting {"name": "new"}: two rows have this key',
        (insert("setting", lambda: [(new.SettingKey(name="new"), new.SettingValue(value=v)) for v in "ab"]),),
    ),
    "inserts by two actions": (
        RowRule.KEY,
        'setting {"name": "new"}: two rows have this key',
        (
            insert("setting", lambda: [(new.SettingKey(name="new"), new.SettingValue(value="a"))]),
            insert("setting", lambda: [(new.SettingKey(name="new"), new.SettingValue(value="b"))]),
        ),
    ),
    "inserts a name that is there": (
        RowRule.UNIQUE,
        'role {"id": {"user": ',
        (
            insert("role", lambda: [(role(77_001), new.RoleValue(name="twice"))]),
            insert("role", lambda: [(role(77_002), new.RoleValue(name="twice"))]),
        ),
    ),
    "inserts what refers to nothing": (
        RowRule.REFERENCE,
        'value.member_of refers to role {"id": {"user": 77009}}, which does not exist',
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
    ("value", "rule"),
    [(encode(new.RoleValue(name="x")) + UNKNOWN, RowRule.UNKNOWN_FIELDS), (b"\xff\xff", RowRule.DECODE)],
)
def test_a_stored_row_that_would_be_changed_unseen_is_refused(
    copy_of: Stores, action: Action, value: bytes, rule: RowRule
) -> None:
    """A field that the types do not know, and bytes that are no message."""
    store = copy_of(21)
    append(store, "role", (encode(role(77_001)), value, 1))
    error = refused(store, 21, action)
    assert error.rule == rule
    assert 'role {"id": {"user": 77001}}' in error.what


@pytest.mark.parametrize("value", [b"{", b'{"value": 1}', b'{"value":"1","more":2}', b"\xff"])
def test_a_legacy_row_that_its_types_would_not_write_is_refused(copy_of: Stores, value: bytes) -> None:
    """Before protobuf as well."""
    store = copy_of(14)
    append(store, "setting", (b'{"name":"odd"}', value, 1))
    before = rows_of(store)
    with pytest.raises(StepRefusedError, match=r'\{"name":"odd"\}') as caught:
        upgrade(lead(store))
    assert caught.value.rule == RowRule.DECODE
    assert (version_of(store), rows_of(store)) == (14, before)


def of_no_kind(key: Any, value: Any) -> tuple[Message, Message]:  # noqa: ANN401
    value.event_type = 99
    return same("AuditLog", key, value)


def of_no_kind_in_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    members = {field.name: batch["value"].field(number) for number, field in enumerate(batch["value"].type)}
    members["event_type"] = pa.array([99] * batch.num_rows, pa.int32())
    values = pa.StructArray.from_arrays(list(members.values()), fields=list(batch["value"].type))
    return pa.record_batch([batch["key"], values], names=["key", "value"])


@pytest.mark.parametrize("action", [per_row("audit_log", of_no_kind), columnar("audit_log", of_no_kind_in_columns)])
def test_an_enum_value_that_the_types_do_not_declare_is_refused(copy_of: Stores, action: Action) -> None:
    """By the step itself, with key, field, value and the number of rows."""
    store = copy_of(21)
    rows = len(rows_of(store)["audit_log"])
    error = refused(store, 21, action)
    assert error.rule == RowRule.ENUM
    assert f"value.event_type is 99, which AuditEventType does not declare ({rows} rows)" in error.what


@pytest.mark.parametrize("action", [per_row("audit_log", of_no_kind), columnar("audit_log", of_no_kind_in_columns)])
def test_an_enum_value_that_was_stored_before_does_not_stop_a_step(copy_of: Stores, action: Action) -> None:
    """An earlier build wrote it, and a store is not held at its version for it."""
    store = copy_of(21)
    key, value = rows_of(store)["audit_log"][0]
    odd = old.AuditLogValue.FromString(value)
    odd.event_type = 99
    append(store, "audit_log", (key, value, -1), (key, encode(odd), 1))
    upgrade(lead(store, project_with(21, action)))
    assert version_of(store) == 22


def test_a_columnar_change_that_returns_no_batch_is_told_so(copy_of: Stores) -> None:
    """A forgotten `return` is the usual reason."""
    error = refused(copy_of(21), 21, columnar("setting", lambda _batch: None))
    assert "TypeError: it returned None; needed: a RecordBatch" in error.what


def failing() -> Any:  # noqa: ANN401
    raise KeyError("owner")


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        (failing, "KeyError: 'owner' (test_wrong_migrations.py, line "),
        (lambda: None, "the insert of setting returned None; needed: rows (key, value)"),
        (lambda: ["ab"], "the insert of setting made the str 'ab'; needed: a row (key, value)"),
    ],
    ids=["raises", "nothing", "no rows"],
)
def test_an_error_of_a_migration_outside_of_any_row_says_what_to_correct(
    copy_of: Stores, rows: Callable[[], Any], found: str
) -> None:
    """After a clean gate: with its file and line, and with how to try it."""
    store = copy_of(21)
    with pytest.raises(MigrationFailedError) as caught:
        upgrade(lead(store, project_with(21, insert("setting", rows))))
    assert caught.value.what.startswith("v21_to_v22 was not applied: ")
    assert found in caught.value.what
    assert "correct v21_to_v22.py, and try it on a copy: `catalog debug upgrade-check`" in caught.value.next
    assert version_of(store) == 21


def test_an_upgrade_function_that_raises_is_told_with_its_line(copy_of: Stores) -> None:
    """Before anything is begun."""
    store = copy_of(21)
    project = project_with(21)
    module = project.migration_from(21, project.build)
    module.upgrade = failing  # type: ignore[union-attr, method-assign]
    with pytest.raises(MigrationFailedError, match=r"KeyError: 'owner' \(test_wrong_migrations.py, line "):
        upgrade(lead(store, replace(project, migration_from=lambda *_: module)))
    assert (version_of(store), events_of(store)) == (21, [])


def test_a_migration_that_cannot_be_loaded_is_told_with_its_line(copy_of: Stores) -> None:
    """A wrong call of an action, for one."""

    def load(*_: object) -> Any:  # noqa: ANN401
        return per_row("setting")  # type: ignore[call-arg]  # that is the mistake

    store = copy_of(21)
    with pytest.raises(
        MigrationFailedError, match=r"v21_to_v22 was not applied: TypeError: .*missing 1 required"
    ) as caught:
        upgrade(lead(store, replace(project_with(21), migration_from=load)))
    assert "(test_wrong_migrations.py, line " in caught.value.what
    assert version_of(store) == 21


def test_a_collection_that_is_left_behind_is_refused(copy_of: Stores) -> None:
    """Nobody could read it any more."""
    error = refused(copy_of(20), 20, wire_compatible("item"))
    assert error.rule == RowRule.COLLECTION
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


@pytest.mark.parametrize(
    "actions",
    [
        (delete("role", everyone), columnar("role", keep_batch)),
        (columnar("role", keep_batch), delete("role", everyone)),
        (delete("role", everyone), per_row("role", keep_role)),
        (columnar("role", keep_batch), per_row("role", keep_role)),
    ],
)
def test_two_actions_that_replace_the_rows_of_a_collection_are_refused(
    copy_of: Stores, actions: tuple[Action, ...]
) -> None:
    """In either order: a delete before another action made the engine run the delete alone."""
    store = copy_of(21)
    before = rows_of(store)
    with pytest.raises(UnwrittenStepError, match=r"two actions replace the rows of role: .* and .* of role"):
        upgrade(lead(store, project_with(21, *actions)))
    assert rows_of(store) == before


def test_several_deletes_of_a_collection_are_one(copy_of: Stores) -> None:
    """Rows go that any of them matches."""
    store = copy_of(21)
    append(store, "setting", (*SETTING, 1))
    upgrade(lead(store, project_with(21, delete("setting", keep), delete("setting", everyone))))
    assert "setting" not in rows_of(store)
