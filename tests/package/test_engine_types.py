"""The engine's own types of tables: their code is what protoc makes of them, and they only ever grow."""

from __future__ import annotations

from build_tools.protos.engine_code import engine_code
from catalog.engine.schema_change import tables_pb2

NUMBERS = {
    "TableValue": "state 1, cur 2, min 3, columns 4, elements 5, next_column 6, change 7, features 8, name 9",
    "Column": (
        "id 1, name 2, type 3, state 4, since 5, initial_default 6, write_default 7, computed 8, replaces 9, up 10, "
        "hidden 11"
    ),
    "Element": (
        "id 1, name 2, kind 3, state 4, since 5, columns 6, stored 7, check 8, support 9, target 10, "
        "target_element 11, built 12, hidden 13"
    ),
    "BulkWriteValue": "pins 1, read_ts 2, who 3, build 4, began_ms 5",
}
"""Fields of messages that stores hold; a later build adds to them, and never changes one."""


def test_the_committed_code_is_made_of_the_proto() -> None:
    """`python -m build_tools.protos.engine_code` writes it."""
    for path, text in engine_code().items():
        assert path.read_text(encoding="utf-8") == text


def test_a_field_keeps_its_number() -> None:
    """Stores of every release are read by every later one."""
    for name, fields in NUMBERS.items():
        found = {field.name: field.number for field in tables_pb2.DESCRIPTOR.message_types_by_name[name].fields}
        for field in fields.split(", "):
            own, number = field.split()
            assert found[own] == int(number), f"{name}.{own}"
