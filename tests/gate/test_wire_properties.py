"""The wire judge against the protobuf runtime, over types and edits that nobody thought of.

A positive verdict is checked by writing messages as the old type and reading them as the new one, a negative
one by building a message that does not survive.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from build_tools.protos.wire_compat import WireRule, WireVerdict, wire_compatible
from tests.gate.wire_messages import descriptor, difference, draw_messages, loss, reread, seeded, witnesses
from tests.gate.wire_schemas import KEYS, KINDS, LABELS, DrawnEnum, DrawnMessage, Field, Schema, draw_schema, edit

if TYPE_CHECKING:
    from random import Random

    from google.protobuf.message import Message

_SEEDS = 1500
_BYTES_SURVIVE = frozenset(
    {
        WireRule.NUMBER_REUSED,
        WireRule.RESERVED_USED,
        WireRule.RESERVED_DROPPED,
        WireRule.SIGN_CHANGED,
        WireRule.INTEGER_BECAME_ENUM,
        WireRule.ONEOF_CHANGED,
        WireRule.ENUM_VALUE_DELETED,
    }
)
"""The rules that leave all bytes as they are; the other rules that break none for sure may break some."""
_INVISIBLE = frozenset(
    {
        WireRule.NUMBER_REUSED,
        WireRule.RESERVED_USED,
        WireRule.RESERVED_DROPPED,
        WireRule.INTEGER_BECAME_ENUM,
        WireRule.ONEOF_CHANGED,
        WireRule.CARDINALITY_REREAD,
        WireRule.MAP_KEY_CHANGED,
        WireRule.NOT_PROTO3,
    }
)
"""The rules about what no single message can show."""


@dataclass(frozen=True)
class Step:
    """A drawn change of types: the root message in an earlier version, before and after, and the verdict."""

    earlier: type[Message]
    old: type[Message]
    new: type[Message]
    verdict: WireVerdict


def draw_step(random: Random) -> Step:
    schema = draw_schema(random)
    earlier, old, new = (edit(random, schema, count).build() for count in (3, 0, random.randint(1, 3)))
    return Step(earlier, old, new, wire_compatible(descriptor(old), descriptor(new), [descriptor(earlier)]))


@cache
def drawn_steps() -> tuple[Step, ...]:
    """Return the same steps on every run."""
    return tuple(draw_step(seeded(seed)) for seed in range(_SEEDS))


steps = st.one_of(st.randoms(use_true_random=True), st.randoms(use_true_random=False)).map(draw_step)
"""Real randomness varies more; what Hypothesis controls shrinks."""
seeds = st.integers(0, 2**32)
slow = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


@slow
@given(steps, seeds)
def test_a_positive_verdict_keeps_every_message(step: Step, seed: int) -> None:
    """Old bytes parse, leave nothing unknown, are written again alike, and hold the same values."""
    if step.verdict.compatible:
        assert first_fault(step, seed) is None
        earlier, old, new = (set(descriptor(kind).fields_by_number) for kind in (step.earlier, step.old, step.new))
        assert not (earlier - old) & new, "a number is reused"


@slow
@given(steps)
def test_a_rule_that_breaks_bytes_has_a_witness(step: Step) -> None:
    """Each such reason leads to a message, set at its path, that does not survive."""
    for reason in step.verdict.reasons:
        assert reason.rule.why
        assert reason.rule.why in reason.text
        if reason.rule.breaks_bytes:
            assert any(loss(message, step.new) for message in witnesses(step.old, reason.path)), reason


@slow
@given(steps, seeds)
def test_a_rule_about_meaning_leaves_the_bytes_alone(step: Step, seed: int) -> None:
    """Where only the meaning is at stake, the verdict does not blame the bytes."""
    if all(reason.rule in _BYTES_SURVIVE for reason in step.verdict.reasons):
        assert not any(loss(message, step.new) for message in draw_messages(step.old, seed))


def test_both_verdicts_and_every_rule_occur() -> None:
    """The properties are not empty: a fixed run has both verdicts often, and every rule but one on syntax."""
    verdicts = Counter(step.verdict.compatible for step in drawn_steps())
    rules = {reason.rule for step in drawn_steps() for reason in step.verdict.reasons}
    assert min(verdicts[True], verdicts[False]) > _SEEDS // 4, verdicts
    assert rules == set(WireRule) - {WireRule.NOT_PROTO3}


@pytest.mark.parametrize("forgotten", [rule for rule in WireRule if rule not in _INVISIBLE])
def test_a_judge_that_forgets_a_rule_is_caught(forgotten: WireRule) -> None:
    """Without the rule, some verdict would be positive and some message would show that it is wrong."""
    wrong = [step for step in drawn_steps() if {reason.rule for reason in step.verdict.reasons} == {forgotten}]
    assert any(first_fault(step, seed) for step in wrong for seed in range(5)), len(wrong)


@pytest.mark.parametrize("label", LABELS)
def test_the_table_of_kinds_is_what_the_runtime_does(label: str) -> None:
    """Every kind is read as every other: allowed if nothing is lost, but for three refused on principle."""
    classes = {kind: single_field(Field("f1", kind, label)) for kind in KINDS}
    for before, old in classes.items():
        for after, new in classes.items():
            verdict = wire_compatible(descriptor(old), descriptor(new))
            messages = list(witnesses(old, "Root.f1"))
            lost = any(loss(message, new) for message in messages)
            same = not lost and not any(difference(message, reread(message, new)) for message in messages)
            on_principle = (before, after) in {("int32", "enum"), ("bool", "enum"), ("message", "bytes")}
            assert verdict.compatible == (same and not on_principle), (before, after, label)
            if any(reason.rule.breaks_bytes for reason in verdict.reasons):
                assert lost, (before, after, label)


@pytest.mark.parametrize("before", KEYS)
def test_no_change_of_a_map_key_is_allowed(before: str) -> None:
    """The order of entries is the serialiser's own, so that not even a wider key is taken for granted."""
    for after in KEYS:
        old, new = (single_field(Field("f1", "int32", "map", key)) for key in (before, after))
        verdict = wire_compatible(descriptor(old), descriptor(new))
        assert verdict.compatible == (before == after), (before, after)
        for reason in verdict.reasons:
            assert reason.path == "Root.f1.key"
            lost = any(loss(message, new) for message in witnesses(old, reason.path))
            assert lost or not reason.rule.breaks_bytes, (before, after)


def single_field(drawn: Field) -> type[Message]:
    """Build a message with one field, and a nested message and an enum that it may use."""
    nested = DrawnMessage("M1", {1: Field("f1", "int32")})
    drawn.target = 1
    return Schema([DrawnMessage("Root", {1: drawn}), nested], [DrawnEnum("E1", {0: "ZERO", 1: "ONE"})]).build()


def first_fault(step: Step, seed: int) -> str | None:
    """Say how a positive verdict is wrong, if one of a number of random messages shows it."""
    for message in draw_messages(step.old, seed):
        fault = loss(message, step.new) or difference(message, reread(message, step.new))
        if fault:
            return f"{fault}: {message}"
    return None
