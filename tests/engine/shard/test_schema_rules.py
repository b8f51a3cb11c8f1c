"""Which schema may follow which: each rule by its name, at the top and in every kind of nesting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from catalog.engine.shard.array_migration import ArrayMigration
from catalog.engine.shard.schema_rules import EvolutionRule, Incompatible, TrackedSchema, backward_compatible

Fields = list[pa.Field]
A = pa.field("a", pa.int32(), nullable=False)
B = pa.field("b", pa.string())
C = pa.field("c", pa.int64())
D = pa.field("d", pa.float64())
OLD = [A, B, C]
ROWS: list[dict[str, Any]] = [{"a": 1, "b": "x", "c": 10}, {"a": 2, "b": None, "c": None}]


class Nesting:
    """A place in a schema where there is a struct, and rows that have theirs there."""

    def __init__(self, path: str, type_: Callable[[Fields], pa.DataType], row: Callable[[Any], Any]) -> None:
        self.path, self._type, self._row = path, type_, row

    def schema(self, fields: Fields) -> pa.Schema:
        return pa.schema([pa.field("top", self._type(fields))])

    def batch(self, fields: Fields, structs: list[Any]) -> pa.RecordBatch:
        """A row for each struct, and at the end one that has none."""
        schema = self.schema(fields)
        column = pa.array([*(self._row(struct) for struct in structs), None], schema.field("top").type)
        return pa.RecordBatch.from_arrays([column], schema=schema)


class Top(Nesting):
    def __init__(self) -> None:
        super().__init__("", pa.struct, lambda struct: struct)

    def schema(self, fields: Fields) -> pa.Schema:
        return pa.schema(fields)

    def batch(self, fields: Fields, structs: list[Any]) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist(structs, schema=pa.schema(fields))


NESTINGS = {
    "top": Top(),
    "struct": Nesting("top.", pa.struct, lambda struct: struct),
    "nested struct": Nesting(
        "top.in.", lambda fields: pa.struct([("in", pa.struct(fields))]), lambda struct: {"in": struct}
    ),
    "list": Nesting("top.item.", lambda fields: pa.list_(pa.struct(fields)), lambda struct: [struct, None, struct]),
    "map value": Nesting(
        "top.value.", lambda fields: pa.map_(pa.string(), pa.struct(fields)), lambda struct: [("k", struct)]
    ),
    "list of lists": Nesting(
        "top.item.item.", lambda fields: pa.list_(pa.list_(pa.struct(fields))), lambda struct: [[struct], [], None]
    ),
    "map of structs of lists": Nesting(
        "top.value.in.item.",
        lambda fields: pa.map_(pa.int8(), pa.struct([("in", pa.list_(pa.struct(fields)))])),
        lambda struct: [(1, {"in": [struct]}), (2, None)],
    ),
}
nested = pytest.mark.parametrize("nesting", NESTINGS.values(), ids=NESTINGS.keys())

ALLOWED: dict[str, tuple[Fields, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "nothing": (OLD, lambda row: row),
    "make nullable": ([A.with_nullable(True), B, C], lambda row: row),  # noqa: FBT003 - positional in pyarrow
    "delete the first": ([B, C], lambda row: {"b": row["b"], "c": row["c"]}),
    "delete one in the middle": ([A, C], lambda row: {"a": row["a"], "c": row["c"]}),
    "delete the last": ([A, B], lambda row: {"a": row["a"], "b": row["b"]}),
    "add at the end": ([*OLD, D], lambda row: {**row, "d": None}),
    "add at the beginning": ([D, *OLD], lambda row: {"d": None, **row}),
    "add in the middle": ([A, D, B, C], lambda row: {"a": row["a"], "d": None, "b": row["b"], "c": row["c"]}),
    "add a struct with a field that is not nullable": (
        [*OLD, pa.field("d", pa.struct([A]))],
        lambda row: {**row, "d": None},
    ),
    "add a list": ([*OLD, pa.field("d", pa.list_(A))], lambda row: {**row, "d": None}),
    "add a map": ([*OLD, pa.field("d", pa.map_(pa.string(), A.type))], lambda row: {**row, "d": None}),
    "all at once": ([D, A.with_nullable(True), C], lambda row: {"d": None, "a": row["a"], "c": row["c"]}),  # noqa: FBT003
    "delete all": ([], lambda _: {}),
}
allowed = pytest.mark.parametrize(("new", "change"), ALLOWED.values(), ids=ALLOWED.keys())

REFUSED: dict[str, tuple[Fields, str, EvolutionRule]] = {
    "reorder two": ([B, A, C], "b", EvolutionRule.REORDERED),
    "reorder the last to the front": ([C, A, B], "c", EvolutionRule.REORDERED),
    "reorder around a deletion": ([C, A], "c", EvolutionRule.REORDERED),
    "reorder around an addition": ([A, C, D, B], "c", EvolutionRule.REORDERED),
    "retype": ([A, pa.field("b", pa.binary()), C], "b", EvolutionRule.RETYPED),
    "widen": ([pa.field("a", pa.int64(), nullable=False), B, C], "a", EvolutionRule.RETYPED),
    "narrow": ([A, B, pa.field("c", pa.int32())], "c", EvolutionRule.RETYPED),
    "retype to a struct": ([A, pa.field("b", pa.struct([B])), C], "b", EvolutionRule.RETYPED),
    "retype to a list": ([A, pa.field("b", pa.list_(B.type)), C], "b", EvolutionRule.RETYPED),
    "add one that is not nullable": ([*OLD, D.with_nullable(False)], "d", EvolutionRule.ADDED_NOT_NULLABLE),  # noqa: FBT003
    "make not nullable": ([A, B.with_nullable(False), C], "b", EvolutionRule.MADE_NOT_NULLABLE),  # noqa: FBT003
    "rename to one that is not nullable": (
        [pa.field("z", A.type, nullable=False), B, C],
        "z",
        EvolutionRule.ADDED_NOT_NULLABLE,
    ),
}
refused = pytest.mark.parametrize(("new", "field", "rule"), REFUSED.values(), ids=REFUSED.keys())


@nested
@allowed
def test_an_allowed_change_migrates_rows(
    nesting: Nesting, new: Fields, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    """Deleted fields are dropped, added ones null, all else is as it was; a slice is migrated as the whole is."""
    migration = backward_compatible(nesting.schema(OLD), nesting.schema(new))
    assert isinstance(migration, ArrayMigration)
    old = nesting.batch(OLD, ROWS)
    expected = nesting.batch(new, [change(row) for row in ROWS])
    for start in (0, 1):
        found = migration.apply(old.slice(start))
        found.validate(full=True)
        assert found.num_rows == old.num_rows - start
        if found.num_columns:
            assert found.schema.equals(expected.schema)
            assert found.to_pylist() == expected.slice(start).to_pylist()
    assert migration.is_noop == (new == OLD)
    assert migration.apply(old.slice(0, 0)).num_rows == 0


@nested
@refused
def test_any_other_change_is_refused_by_field_and_rule(
    nesting: Nesting, new: Fields, field: str, rule: EvolutionRule
) -> None:
    """The reason says which field it is, by its whole path, and which rule it breaks."""
    for old in (nesting.schema(OLD), TrackedSchema(nesting.schema(OLD))):
        reason = backward_compatible(old, nesting.schema(new))
        assert isinstance(reason, Incompatible)
        assert (reason.field, reason.rule) == (nesting.path + field, rule)
        assert reason.why.startswith(f"{nesting.path}{field}: {rule}, ")
    assert isinstance(TrackedSchema(nesting.schema(OLD)).evolved(nesting.schema(new)), Incompatible)


@nested
@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_a_deleted_field_is_never_used_again(nesting: Nesting, name: str) -> None:
    """However long ago, with whatever type, and although rows of the last schema know nothing of it."""
    without = [field for field in OLD if field.name != name]
    known = _evolved(TrackedSchema(nesting.schema(OLD)), nesting.schema(without))
    known = _evolved(known, nesting.schema([*without, D]))
    for again in (pa.field(name, pa.int8()), next(field for field in OLD if field.name == name).with_nullable(True)):  # noqa: FBT003
        reason = backward_compatible(known, nesting.schema([*without, D, again]))
        assert isinstance(reason, Incompatible)
        assert (reason.field, reason.rule) == (nesting.path + name, EvolutionRule.RECREATED)


@nested
def test_the_migration_type_is_the_current_one_and_what_was_deleted(nesting: Nesting) -> None:
    """It survives being stored, inside lists and maps too."""
    known = _evolved(TrackedSchema(nesting.schema(OLD)), nesting.schema([A, C, D]))
    stored = TrackedSchema(pa.ipc.read_schema(known.schema.serialize()))
    for one in (known, stored):
        assert one.current.equals(nesting.schema([A, C, D]))
        reason = one.evolved(nesting.schema([A, B, C, D]))
        assert isinstance(reason, Incompatible)
        assert reason.rule is EvolutionRule.RECREATED


def test_items_of_lists_and_values_of_maps_may_become_nullable_and_not_the_reverse() -> None:
    """They have no name of their own, and follow the rule all the same."""
    for strict, loose, path in (
        (pa.list_(A.with_name("item")), pa.list_(A.type), "x.item"),
        (pa.map_(pa.string(), A.with_name("value")), pa.map_(pa.string(), A.type), "x.value"),
    ):
        old, new = pa.schema([("x", strict)]), pa.schema([("x", loose)])
        migration = backward_compatible(old, new)
        assert isinstance(migration, ArrayMigration)
        assert migration.preserves_order
        value = [1, 2] if pa.types.is_list(strict) else [("k", 1)]
        found = migration.apply(pa.record_batch([pa.array([value, None], strict)], schema=old))
        assert found.schema.field("x").type.field(0).equals(loose.field(0))
        assert found.to_pylist() == [{"x": value}, {"x": None}]
        reason = backward_compatible(new, old)
        assert isinstance(reason, Incompatible)
        assert (reason.field, reason.rule) == (path, EvolutionRule.MADE_NOT_NULLABLE)


def test_keys_of_maps_never_change() -> None:
    """They say which value is meant; the rules are for values alone."""
    old = pa.schema([("m", pa.map_(pa.struct([A, B]), pa.int8()))])
    for key in (pa.struct([A]), pa.struct([A, B, C]), pa.string()):
        reason = backward_compatible(old, pa.schema([("m", pa.map_(key, pa.int8()))]))
        assert isinstance(reason, Incompatible)
        assert (reason.field, reason.rule) == ("m.key", EvolutionRule.RETYPED)


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ([A, B, C], [A, B, C], True),
        ([A, B, C], [D, A, B, C], True),
        ([A, B, C], [A, B], True),
        ([A, B, C], [A, D], True),
        ([A, B, C], [], True),
        ([A, B, C], [A, C], False),
        ([A, B, C], [B, C], False),
        ([pa.field("s", pa.struct([A, B])), C], [pa.field("s", pa.struct([A])), C], False),
        ([C, pa.field("s", pa.struct([A, B]))], [C, pa.field("s", pa.struct([A]))], True),
        ([C, pa.field("s", pa.struct([A, B]))], [C, pa.field("s", pa.struct([A, D]))], True),
        ([C, pa.field("s", pa.struct([A, B])), D], [C, pa.field("s", pa.struct([A]))], True),
        ([pa.field("l", pa.list_(pa.struct([A, B])))], [pa.field("l", pa.list_(pa.struct([A])))], False),
        ([pa.field("l", pa.list_(pa.struct([A, B])))], [pa.field("l", pa.list_(pa.struct([A, B, D])))], True),
        (
            [pa.field("m", pa.map_(pa.string(), pa.struct([A, B])))],
            [pa.field("m", pa.map_(pa.string(), pa.struct([A])))],
            False,
        ),
    ],
)
def test_a_migration_says_whether_it_keeps_rows_in_order(old: Fields, new: Fields, kept: bool) -> None:  # noqa: FBT001
    """Rows are compared field by field: only what is compared last can go without a trace."""
    migration = backward_compatible(pa.schema(old), pa.schema(new))
    assert isinstance(migration, ArrayMigration)
    assert migration.preserves_order == kept


def _evolved(known: TrackedSchema, new: pa.Schema) -> TrackedSchema:
    found = known.evolved(new)
    assert isinstance(found, TrackedSchema)
    return found
