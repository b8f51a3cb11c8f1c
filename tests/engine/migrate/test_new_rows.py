"""Rows that a migration makes one by one: the batch that they become is what a plain reading of each row tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.actions import PerRow, per_row
from catalog.engine.base.descriptors import descriptor_of, holds_map
from catalog.engine.base.raised_text import error_text
from catalog.engine.migrate import rewriters
from catalog.engine.migrate.new_rows import RewrittenBatch
from catalog.engine.migrate.rewriters import REWRITERS, RewriterContext
from catalog.engine.migrate.row_errors import RowError
from catalog.engine.migrate.row_types import registry_of
from catalog.engine.migrate.row_verifier import EncodedRows
from catalog.engine.migrate.violations import RowRule
from catalog.engine.stash.registry import encode
from catalog.upgrade import PROJECT

types: Any = PROJECT.types(22)
Row = tuple[Message, Message]
REGISTRY = registry_of(PROJECT, 22)
UNREADABLE = b"\x0a\x05abc"


def configuration(key: Any) -> Message:  # noqa: ANN401
    found: Message = types.ServerConfigurationKey(name=key.name)
    return found


def copied(key: Any, value: Any) -> Iterator[Row]:  # noqa: ANN401
    yield key, value
    yield configuration(key), types.ServerConfigurationValue(value=value.value)


def refused(key: Any, value: Any) -> Iterator[Row]:  # noqa: ANN401
    yield from copied(key, value)
    raise LookupError(f"no idea what to do with {key.name}")


def foreign(message: Message) -> Message:
    """The same message, of a class that another pool of descriptors made."""
    pool, file = DescriptorPool(), FileDescriptorProto()
    descriptor_of(type(message)).file.CopyToProto(file)
    for name in file.dependency:
        pool.AddSerializedFile(descriptor_of(type(message)).file.pool.FindFileByName(name).serialized_pb)
    pool.Add(file)
    kind = GetMessageClass(pool.FindMessageTypeByName(message.DESCRIPTOR.full_name))
    return kind.FromString(message.SerializeToString())


FATES: dict[str, Callable[[Any, Any], Any]] = {
    "stays": lambda key, value: (key, value),
    "goes": lambda *_: None,
    "goes, as an empty list": lambda *_: [],
    "changes": lambda key, value: (key, types.SettingValue(value=value.value + "!")),
    "is renamed": lambda key, value: (types.SettingKey(name=key.name + "?"), value),
    "becomes two": lambda key, value: [(key, value), (types.SettingKey(name=key.name + "2"), value)],
    "becomes two, itself last": lambda key, value: [(types.SettingKey(name=key.name + "3"), value), (key, value)],
    "is doubled": lambda key, value: [(key, value), (key, value)],
    "moves": lambda key, value: (configuration(key), types.ServerConfigurationValue(value=value.value)),
    "stays and is copied": copied,
    "is refused after it was copied": refused,
    "goes to a collection that is not named": lambda key, value: [(key, value), (types.RoleKey(), types.RoleValue())],
    "gets the value of another": lambda key, _: (key, types.ServerConfigurationValue()),
    "gets no value": lambda key, _: (key, None),
    "gets no key": lambda _, value: [("a key", value)],
    "becomes no pair": lambda *_: [1],
    "is of the same type in another pool": lambda key, value: tuple(map(foreign, (key, value))),
}
"""The fates of a row."""


def change(key: Any, value: Any) -> Any:  # noqa: ANN401
    return FATES[value.value](key, value)


def expected(rows: list[tuple[bytes, bytes]], *, is_thorough: bool) -> RewrittenBatch:
    """The batch, told row by row."""
    batch, made = RewrittenBatch(), dict[str, list[tuple[bytes, bytes]]]()
    for number, (key, value) in enumerate(rows):
        outcome = becomes(number, key, value)
        if isinstance(outcome, RowError):
            batch.errors.append(outcome)
            if not is_thorough:
                return RewrittenBatch(errors=batch.errors)
            continue
        own = [row for name, *row in outcome if name == "setting"]
        for name, *row in outcome:
            made.setdefault(name, []).append((row[0], row[1]))
            batch.inserted[name] += 1
        batch.inserted["setting"] -= bool(own)
        batch.deleted += not own
        batch.changed += bool(own) and [key, value] not in own
    batch.keys_changed = [key for key, _ in made.get("setting", [])] != [key for key, _ in rows]
    batch.rows = {name: encoded(own) for name, own in made.items()}
    return batch


def becomes(number: int, key: bytes, value: bytes) -> list[tuple[str, bytes, bytes]] | RowError:
    try:
        old = types.SettingKey.FromString(key), types.SettingValue.FromString(value)
    except Exception as error:  # noqa: BLE001 - protobuf's own
        return RowError(RowRule.DECODE, number, key, str(error))
    try:
        answer = change(*old)
        answer = list(answer) if isinstance(answer, Iterator) else answer  # a generator raises while it is read
    except Exception as error:  # noqa: BLE001 - whatever a migration raises
        return RowError(RowRule.CHANGE, number, key, error_text(error))
    try:
        found = [] if answer is None else [answer] if isinstance(answer, tuple) else answer
        return [(collection_of(k, v), encode(k), encode(v)) for k, v in found]
    except Exception as error:  # noqa: BLE001 - what the engine finds of an answer has no line in the migration
        return RowError(RowRule.CHANGE, number, key, f"{type(error).__name__}: {error}")


def collection_of(key: Any, value: Any) -> str:  # noqa: ANN401
    collection = REGISTRY.of_key(key)
    if collection.name not in {"setting", "server_configuration"}:
        raise ValueError(f"it makes a row of {collection.name}, which `into` does not name")
    if value.DESCRIPTOR.full_name != descriptor_of(collection.value_type).full_name:
        raise ValueError(f"it makes a row of {collection.name} whose value is a {value.DESCRIPTOR.name}")
    return collection.name


def encoded(rows: list[tuple[bytes, bytes]]) -> EncodedRows:
    return EncodedRows(*(pa.array(column, pa.binary()) for column in zip(*rows, strict=True)))


def rewritten(rows: list[tuple[bytes, bytes]], *, is_thorough: bool) -> RewrittenBatch:
    action = per_row("setting", change, into=("server_configuration",))
    context = RewriterContext("v21_to_v22", REGISTRY.named("setting"), REGISTRY, 0, is_thorough)
    return REWRITERS[PerRow](context, (action,)).rewrite(encoded(rows), None)


def stored(number: int, fate: str) -> tuple[bytes, bytes]:
    return encode(types.SettingKey(name=f"{number:03}")), encode(types.SettingValue(value=fate))


FATE = st.sampled_from([*FATES, *["stays"] * 8])


@settings(deadline=None)
@given(st.lists(FATE | st.none(), min_size=1, max_size=12), st.booleans(), st.sampled_from([1, 2, 5, 100]))
def test_a_batch_is_the_sum_of_its_rows(fates: list[str | None], is_thorough: bool, at_once: int) -> None:  # noqa: FBT001
    """Rows, errors with their rule, key and text, and all counts, for any mixture of what may become of rows, however
    many of them are objects of Python at once.
    """
    rows = [(b"%03d" % n, UNREADABLE) if fate is None else stored(n, fate) for n, fate in enumerate(fates)]
    with mock.patch.object(rewriters, "_ROWS_AT_ONCE", at_once):
        found = rewritten(rows, is_thorough=is_thorough)
    told = expected(rows, is_thorough=is_thorough)
    assert found.errors == told.errors
    assert {name: pairs(own) for name, own in found.rows.items() if len(own.keys)} == {
        name: pairs(own) for name, own in told.rows.items()
    }
    assert (found.changed, found.deleted, +found.inserted) == (told.changed, told.deleted, +told.inserted)
    assert found.keys_changed == told.keys_changed


@pytest.mark.parametrize("fate", FATES)
def test_every_fate_alone(fate: str) -> None:
    """None of them hides behind another one."""
    rows = [stored(number, fate) for number in range(3)]
    found, told = rewritten(rows, is_thorough=True), expected(rows, is_thorough=True)
    assert [tuple(error) for error in found.errors] == [tuple(error) for error in told.errors]
    assert (found.changed, found.deleted, +found.inserted) == (told.changed, told.deleted, Counter(+told.inserted))


def test_only_messages_without_maps_have_one_order() -> None:
    """A map inside a message inside a message counts, and a message that contains itself is no endless search."""
    file = FileDescriptorProto(name="orders.proto", package="orders", syntax="proto3")
    entry = file.message_type.add(name="Mapped").nested_type.add(name="PairsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=9, label=1)
    entry.field.add(name="value", number=2, type=9, label=1)
    mapped = file.message_type[0]
    mapped.field.add(name="pairs", number=1, type=11, label=3, type_name=".orders.Mapped.PairsEntry")
    for name, inside in (("Middle", "Mapped"), ("Outer", "Middle"), ("Endless", "Endless")):
        file.message_type.add(name=name).field.add(
            name="inside", number=1, type=11, label=1, type_name=f".orders.{inside}"
        )
    pool = DescriptorPool()
    pool.Add(file)
    found = {name: holds_map(pool.FindMessageTypeByName(f"orders.{name}")) for name in ("Mapped", "Outer", "Endless")}
    assert found == {"Mapped": True, "Outer": True, "Endless": False}


def pairs(rows: EncodedRows) -> list[tuple[bytes, bytes]]:
    return list(zip(rows.keys.to_pylist(), rows.values.to_pylist(), strict=True))
