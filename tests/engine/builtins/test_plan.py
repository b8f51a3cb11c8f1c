"""What is to become of each builtin: instructions, fingerprints, and builds that are older than the store."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from catalog.engine.builtins.declaration import Builtin, Declaration, Instruction, Mechanism, fingerprint
from catalog.engine.builtins.plan import ExistingBuiltin, NewBuiltin, StoredBuiltin, StoredBuiltins, plan, select
from catalog.engine.shard.schema import Column, Schema
from catalog.errors import BuiltinsTooNewError, UnfitBuiltinsError, UninstructedSchemaError
from tests.engine.builtins.releases import build, name

A, B = name("a"), name("b")
EVOLUTION, REPLACEMENT = Mechanism.EVOLUTION, Mechanism.REPLACEMENT
ID, NOTE = Column(0, "id", pa.int64(), nullable=False), Column(1, "note", pa.string())
FIRST, SECOND = Schema.of(ID), Schema.of(ID, NOTE)


def declared(number: int, *instructions: Instruction, **schemas: Schema) -> Declaration:
    builtins = tuple(Builtin(name(text), schema) for text, schema in schemas.items())
    return Declaration(build(number), builtins, instructions)


def stored(number: int | None, begun: int | None = None, **schemas: Schema) -> StoredBuiltins:
    mapped = {
        name(text): StoredBuiltin(id_, fingerprint(schema), f"s{id_}")
        for id_, (text, schema) in enumerate(schemas.items(), start=1)
    }
    return StoredBuiltins(None if number is None else build(number), None if begun is None else build(begun), mapped)


def test_instructions_after_the_stores_build_up_to_this_one_count() -> None:
    """(X, Y]: what the store has been through is over, and what is yet to come is not due."""
    listed = [Instruction(build(number), name(f"v{number}"), EVOLUTION) for number in range(1, 7)]
    assert set(select(listed, build(2), build(5))) == {name("v3"), name("v4"), name("v5")}
    assert select(listed, build(5), build(5)) == {}
    assert len(select(listed, None, build(6))) == 6


@pytest.mark.parametrize("order", [(EVOLUTION, REPLACEMENT, EVOLUTION), (REPLACEMENT, EVOLUTION), (REPLACEMENT,)])
def test_of_several_instructions_about_a_builtin_a_replacement_wins(order: tuple[Mechanism, ...]) -> None:
    """Wherever it stands, for no evolution leads across it."""
    listed = [Instruction(build(number), A, mechanism) for number, mechanism in enumerate(order, start=2)]
    assert select(listed, build(1), build(9)) == {A: REPLACEMENT}
    assert select([*listed, Instruction(build(5), B, EVOLUTION)], build(1), build(9))[B] is EVOLUTION


def test_each_builtin_is_planned_for() -> None:
    """Kept, evolved, replaced, created or given up."""
    instructions = [
        Instruction(build(2), name("e"), EVOLUTION),
        Instruction(build(2), name("r"), REPLACEMENT),
        Instruction(build(2), name("g"), REPLACEMENT),
    ]
    own = declared(2, *instructions, k=FIRST, e=SECOND, r=SECOND, c=FIRST)
    found = plan(own, stored(1, k=FIRST, e=FIRST, r=FIRST, g=FIRST))
    assert [change.builtin.name for change in found.kept] == [name("k")]
    assert found.evolved == (ExistingBuiltin(Builtin(name("e"), SECOND), StoredBuiltin(2, fingerprint(FIRST), "s2")),)
    assert [change.mapped.shard for change in found.replaced] == ["s3"]
    assert found.created == (NewBuiltin(Builtin(name("c"), FIRST), None),)
    assert found.given_up == (name("g"),)
    assert found.has_work
    assert not plan(declared(2, a=FIRST), stored(1, a=FIRST)).has_work


def test_a_changed_schema_without_an_instruction_is_refused_with_what_to_add() -> None:
    """Nobody's data are migrated, or lost, by accident."""
    with pytest.raises(UninstructedSchemaError) as caught:
        plan(declared(3, Instruction(build(1), A, EVOLUTION), a=SECOND), stored(1, a=FIRST))
    assert caught.value.name == "catalog.a"
    assert (caught.value.stored, caught.value.own) == (fingerprint(FIRST), fingerprint(SECOND))
    assert "add (0.3.0, catalog.a, EVOLUTION) to the instructions, or REPLACEMENT" in caught.value.next


def test_builtins_that_a_build_does_not_know_are_left_alone() -> None:
    """They may be of another build; only an instruction gives them up."""
    found = plan(declared(2, a=FIRST), stored(1, a=FIRST, b=FIRST))
    assert (found.given_up, found.has_work) == ((), False)


def test_an_older_build_goes_on_with_what_a_newer_one_left_as_it_was() -> None:
    """So that a patch can be taken back; nothing is migrated, whatever the instructions say."""
    found = plan(declared(2, Instruction(build(2), A, REPLACEMENT), a=FIRST), stored(3, a=FIRST, b=SECOND))
    assert plan(declared(2, a=FIRST), stored(1, begun=3, a=FIRST)).overtaken_by == build(3)
    assert [change.mapped.shard for change in found.kept] == ["s1"]
    assert (found.has_work, found.overtaken_by) == (False, build(3))


@pytest.mark.parametrize("state", [stored(3, a=SECOND), stored(3), stored(1, begun=3, a=SECOND)])
def test_an_older_build_is_told_which_to_use_if_a_newer_one_changed_something(state: StoredBuiltins) -> None:
    """Also if that has only begun."""
    with pytest.raises(BuiltinsTooNewError) as caught:
        plan(declared(2, Instruction(build(2), A, EVOLUTION), a=FIRST), state)
    assert caught.value.names == ("catalog.a",)
    assert caught.value.next == "run build 0.3.0 or later"


def test_an_older_build_that_has_not_finished_itself_is_told_to_leave_it_to_the_newer() -> None:
    """That one follows the same instruction again, and would give up what was written meanwhile."""
    with pytest.raises(BuiltinsTooNewError) as caught:
        plan(declared(2, Instruction(build(2), A, REPLACEMENT), a=FIRST), stored(1, begun=3, a=FIRST))
    assert caught.value.names == ("catalog.a",)


@pytest.mark.parametrize(
    "other",
    [
        Schema.of(ID, Column(2, "note", pa.string())),
        Schema.of(ID, Column(1, "text", pa.string())),
        Schema.of(ID, Column(1, "note", pa.large_string())),
        Schema.of(ID, Column(1, "note", pa.string(), nullable=False)),
        Schema.of(NOTE, ID),
        Schema.of(ID, Column(1, "note", pa.struct([("a", pa.string())]))),
    ],
)
def test_a_fingerprint_tells_every_change_of_a_schema(other: Schema) -> None:
    """Ids, names, types, nullability and order."""
    assert fingerprint(other) != fingerprint(SECOND)
    assert fingerprint(Schema.of(ID, replace(NOTE))) == fingerprint(SECOND)


def test_a_fingerprint_looks_inside_of_types() -> None:
    """Fields of structs, items of lists and values of maps, and whether they are nullable."""
    within = [
        pa.struct([("a", pa.int8())]),
        pa.struct([("b", pa.int8())]),
        pa.struct([pa.field("a", pa.int8(), nullable=False)]),
        pa.list_(pa.int8()),
        pa.list_(pa.field("item", pa.int8(), nullable=False)),
        pa.map_(pa.string(), pa.int8()),
        pa.map_(pa.string(), pa.int16()),
        pa.map_(pa.binary(), pa.int8()),
    ]
    assert len({fingerprint(Schema.of(Column(0, "x", type_))) for type_ in within}) == len(within)


def test_fingerprints_stay_what_they_are() -> None:
    """They are in stores: another way to make them would make every schema look changed."""
    nested = pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.timestamp("us", tz="UTC"))))])
    found = fingerprint(Schema.of(ID, Column(1, "n", nested), Column(2, "d", pa.decimal128(20, 2))))
    assert found == "bd883c0f9900601ce83820aa1bbbc272"


@pytest.mark.parametrize(
    ("reason", "builtins", "instructions"),
    [
        ("it is declared twice", (Builtin(A, FIRST), Builtin(A, SECOND)), ()),
        ("two instructions for build 0.1.0", (Builtin(A, FIRST),), (EVOLUTION, REPLACEMENT)),
        ("its last instruction is no REPLACEMENT", (Builtin(B, FIRST),), (EVOLUTION,)),
    ],
)
def test_a_declaration_that_leaves_something_open_is_refused(
    reason: str, builtins: tuple[Builtin, ...], instructions: tuple[Mechanism, ...]
) -> None:
    """When it is made, and so in every test of the build."""
    listed = tuple(Instruction(build(1), A, mechanism) for mechanism in instructions)
    with pytest.raises(UnfitBuiltinsError, match=reason):
        Declaration(build(2), builtins, listed)


def test_an_instruction_for_a_build_that_is_yet_to_come_is_refused() -> None:
    """It would change the schema of this build, and be due only in that one."""
    with pytest.raises(UnfitBuiltinsError, match=r"an instruction for 0.3.0, and this is 0.2.0"):
        declared(2, Instruction(build(3), A, EVOLUTION), a=FIRST)
