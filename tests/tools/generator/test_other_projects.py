"""Made-up stores of a project that this package knows nothing of."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
from google.protobuf.message_factory import GetMessageClass

from catalog.engine.base.project import BuildVersion, Project
from catalog.engine.log.delta import DeltaLog
from catalog.engine.stash.constraints import Constraints, Reference, Unique
from catalog.engine.stash.registry import Registry
from catalog.engine.stash.transaction import Transaction
from catalog.tools.fsck.stash import fsck
from catalog.tools.generator import generate
from tests.gate.wire_schemas import compile_proto
from tests.tools.generator.plain_rows import Plain, plain, stored_rows

TYPES = """
message ConfigKey { string name = 1; }
message ConfigValue { oneof value { uint64 number = 1; string text = 2; } }
message FenceTokenKey { string scope = 1; }
message FenceTokenValue { uint64 deploy_generation = 1; uint64 epoch = 2; string holder = 3; }
message MigrationEventKey { uint64 id = 1; }
message MigrationEventValue { uint64 version = 1; }
enum Colour { COLOUR_UNSPECIFIED = 0; RED = 3; BLUE = 7; }
message Empty {}
message CustomerKey { string id = 1; }
message CustomerValue {
  string email = 1; optional double score = 2; map<string, sint32> points = 3; map<bool, Empty> flags = 4;
  bytes photo = 5; repeated Colour colours = 6; float weight = 7; fixed64 born = 8;
}
message OrderKey { int32 id = 1; }
message OrderValue {
  string customer_id = 1;
  oneof paid { uint32 card = 2; Empty cash = 3; Address bill = 4; }
  optional Address ship_to = 5;
  map<int64, Address> stops = 6;
  repeated Address seen = 7;
}
message Address { string street = 1; optional bool ramp = 2; Colour door = 3; repeated int32 floors = 4; }
message VisitKey { string customer_id = 1; Colour room = 2; }
message VisitValue { string note = 1; }
message IdAllocKey { string name = 1; }
message IdAllocValue { uint64 next_id = 1; }
"""
CONSTRAINTS = Constraints(
    (Unique("customer", ("value.email",)),),
    (Reference("order", "value.customer_id", "customer"), Reference("visit", "key.customer_id", "customer")),
)


def nothing(_transaction: Transaction) -> None:
    """Seed nothing."""


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project of one version, whose generated code is made here."""
    types = ModuleType("shop.generated.objects_v1_pb2")
    vars(types)["DESCRIPTOR_HASH"] = "sha256:of these"
    vars(types)["DESCRIPTOR"] = file = compile_proto(TYPES, 'syntax = "proto3"; package shop;')
    vars(types).update({name: GetMessageClass(found) for name, found in file.message_types_by_name.items()})
    monkeypatch.setitem(sys.modules, "shop", ModuleType("shop"))
    monkeypatch.setitem(sys.modules, "shop.generated", ModuleType("shop.generated"))
    for name in (types.__name__, "shop.generated.objects_pb2"):
        monkeypatch.setitem(sys.modules, name, types)
    return Project("shop", 1, 1, 1, BuildVersion(1), lambda _version, _build: None, CONSTRAINTS, nothing)


def test_rows_of_any_types_keep_the_constraints(shop: Project, tmp_path: Path) -> None:
    """Every kind of field gets values, and the rows of a collection whose keys cannot be counted stay few."""
    made = generate(shop, tmp_path / "store", 1, 900, 5)
    registry = Registry.of(shop.types(1))
    report = fsck(DeltaLog(f"{made.uri}/stash"), registry, CONSTRAINTS, every_state=True)
    assert [str(finding) for finding in report.findings] == []
    rows = stored_rows(made.uri)
    customers = values(registry, "customer", rows["customer"])
    for name in customers[0]:
        assert any(row[name] for row in customers), name
    assert any(row["score"] is None for row in customers)
    assert {colour for row in customers for colour in row["colours"]} == {3, 7}
    orders = values(registry, "order", rows["order"])
    paid = [[row[name] is not None for name in ("card", "cash", "bill")] for row in orders]
    assert all(sum(members) == 1 for members in paid)
    assert all(any(members) for members in zip(*paid, strict=True))
    assert any(row["ship_to"] is None for row in orders)
    assert 10 < len(rows["visit"]) < len(rows["customer"])
    following = {key["name"]: value["next_id"] for key, value in decoded(registry, "id_alloc", rows["id_alloc"])}
    assert following.keys() == {"order"}
    assert following["order"] > max(key["id"] for key, _ in decoded(registry, "order", rows["order"]))


def values(registry: Registry, name: str, rows: list[tuple[bytes, bytes]]) -> list[Plain]:
    return [value for _, value in decoded(registry, name, rows)]


def decoded(registry: Registry, name: str, rows: list[tuple[bytes, bytes]]) -> list[tuple[Plain, Plain]]:
    pairs = (registry.named(name).decode(*row) for row in rows)
    return [(plain(key), plain(value)) for key, value in pairs]


def test_many_keys_are_put_in_order_part_by_part(
    shop: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With other parts come the same rows."""
    whole = generate(shop, tmp_path / "whole", 1, 500, 5)
    module = sys.modules[generate.__module__]
    monkeypatch.setattr(module, "_SORTED_ROWS_MAX", 40)
    monkeypatch.setattr(module, "_BATCH_ROWS_MAX", 16)
    parts = generate(shop, tmp_path / "parts", 1, 500, 5)
    assert parts.rows == whole.rows
    assert stored_rows(parts.uri) == stored_rows(whole.uri)
