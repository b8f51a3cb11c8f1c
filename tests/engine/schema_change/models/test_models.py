"""The protocol of online schema change, explored whole: right rules keep every promise, each broken rule breaks one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import pytest

from tests.engine.schema_change.models import column_model, index_model, unique_model
from tests.engine.schema_change.models.search import Exploration, Model, Step, explore

MODELS: dict[str, tuple[Callable[..., Model[Any]], Callable[..., Any]]] = {
    "index": (index_model.index_model, index_model.Rules),
    "unique": (unique_model.unique_model, unique_model.Rules),
    "column": (column_model.column_model, column_model.Rules),
}


@dataclass(frozen=True, slots=True)
class Whole:
    """The size of a complete state space, and situations that must occur in it."""

    states: int
    situations: frozenset[str]


WHOLE = {
    "index": Whole(
        119_246,
        frozenset(
            {
                "STRICT",
                "pinned in ADJACENT",
                "commit in ADJACENT",
                "forced close",
                "overtaken bulk write derived again",
                "rebased by a job",
                "rebased in the commit loop",
                "bulk write expired",
                "files of a gone element left out",
                "files of an element not closed left out",
                "chunk committed under later changes",
                "takeover",
                "late chunk when closed",
                "late chunk when built",
                "late chunk when succeeded",
                "late chunk when undone",
                "late chunk when dropped",
                "undo from submitted",
                "undo from announced",
                "undo from closed",
                "undo from built",
                "drop with a pin",
                "fold dropped a tombstone",
            }
        ),
    ),
    "unique": Whole(
        42_099,
        frozenset(
            {
                "STRICT",
                "pinned in ADJACENT",
                "commit in ADJACENT",
                "forced close",
                "overtaken bulk write",
                "write refused as duplicate",
                "bulk write refused as duplicate",
                "duplicate of the bulk write gone at the head",
                "violators found",
                "violators gone at the second look",
                "failed by a violation",
                "undo from SUBMITTED",
                "undo from INDEX_ANNOUNCED",
                "undo from INDEX_CLOSED",
                "undo from INDEX_BUILT",
                "undo from CHECK_ANNOUNCED",
                "undo from CHECK_CLOSED",
            }
        ),
    ),
    "column": Whole(
        140_756,
        frozenset(
            {
                "STRICT",
                "pinned in ADJACENT",
                "commit in ADJACENT",
                "forced: CLOSE",
                "forced: scrub begins",
                "overtook a pin",
                "overtaken bulk write derived again",
                "rebased",
                "chunk committed under later changes",
                "fold between read and commit of a chunk",
                "fold kept a tombstone",
                "NULL written",
                "bytes of a gone column dropped",
                "scrub ended with a pin",
            }
        ),
    ),
}

INDEX_WRONG = "complete_index_equals_derived_rows"
RESIDUE = "gone_element_has_no_files"
ROW_WRONG = "rows_equal_the_oracle"
COLUMN_WRONG = "public_column_has_its_value"
BYTES_LEFT = "scrubbed_column_has_no_bytes"
NEW_DUPLICATE = "closed_constraint_holds_for_rows_written_since"

CAUGHT: dict[tuple[str, str], tuple[str, int]] = {
    ("index", "overtaken_bulk_write_derives_again"): (INDEX_WRONG, 7),
    ("index", "build_reads_after_close"): (INDEX_WRONG, 5),
    ("index", "build_files_are_dated_read_ts"): (INDEX_WRONG, 4),
    ("index", "rebased_changes_win_ties"): (ROW_WRONG, 4),
    ("index", "tombstones_stay_while_building"): (INDEX_WRONG, 5),
    ("index", "tombstone_even_without_entry"): (INDEX_WRONG, 4),
    ("index", "element_counts_from_close"): (INDEX_WRONG, 8),
    ("index", "rebase_takes_the_image_at_head"): (INDEX_WRONG, 7),
    ("index", "rebase_removes_its_own_first_entry"): (INDEX_WRONG, 7),
    ("index", "files_of_gone_elements_are_left_out"): (RESIDUE, 5),
    ("index", "files_of_elements_not_closed_are_left_out"): (INDEX_WRONG, 8),
    ("index", "chunk_checks_owner_epoch"): (RESIDUE, 5),
    ("unique", "overtaken_bulk_write_derives_again"): (INDEX_WRONG, 5),
    ("unique", "overtaken_bulk_write_checks_again"): (NEW_DUPLICATE, 6),
    ("unique", "bulk_write_looks_again_at_touched_prefixes"): (NEW_DUPLICATE, 6),
    ("unique", "validate_reads_after_close"): ("public_constraint_holds", 7),
    ("unique", "violators_are_looked_at_again"): ("failure_names_violators", 6),
    ("unique", "index_is_complete_before_unique_is_enforced"): (NEW_DUPLICATE, 2),
    ("column", "overtaken_bulk_write_derives_again"): (COLUMN_WRONG, 9),
    ("column", "reorganise_reads_after_close"): (COLUMN_WRONG, 8),
    ("column", "folded_base_is_read_again"): (ROW_WRONG, 5),
    ("column", "old_layers_go_with_the_last_chunk"): (ROW_WRONG, 3),
    ("column", "layers_younger_than_a_chunk_stay"): (ROW_WRONG, 6),
    ("column", "base_wins_ties"): (COLUMN_WRONG, 5),
    ("column", "rebased_rows_win_ties"): (COLUMN_WRONG, 4),
    ("column", "tombstone_stays_above_older_layers"): (ROW_WRONG, 2),
    ("column", "chunk_fills_whatever_it_finds"): (COLUMN_WRONG, 8),
    ("column", "schema_is_written"): (COLUMN_WRONG, 2),
    ("column", "bulk_rows_keep_the_pinned_schema"): (COLUMN_WRONG, 3),
    ("column", "rewriting_fills_in_the_initial_default"): (COLUMN_WRONG, 2),
    ("column", "old_tail_goes_with_the_last_chunk"): (BYTES_LEFT, 8),
    ("column", "gone_bytes_are_dropped_from_the_start_of_the_scrub"): (BYTES_LEFT, 9),
}
"""Each broken rule, the promise that it breaks and the number of moves that this takes."""

MARKED: dict[str, tuple[tuple[str, str], ...]] = {
    "an overtaken bulk write commits what it derived": (
        ("index", "overtaken_bulk_write_derives_again"),
        ("unique", "overtaken_bulk_write_checks_again"),
        ("column", "overtaken_bulk_write_derives_again"),
    ),
    "build reads before the close": (
        ("index", "build_reads_after_close"),
        ("column", "reorganise_reads_after_close"),
    ),
    "validate reads before the close": (("unique", "validate_reads_after_close"),),
    "build's files rank above later changes": (("index", "build_files_are_dated_read_ts"),),
    "ties go to the layer": (
        ("index", "rebased_changes_win_ties"),
        ("column", "base_wins_ties"),
        ("column", "rebased_rows_win_ties"),
    ),
    "tombstones go while an index is built": (("index", "tombstones_stay_while_building"),),
    "tombstone only if the entry is there": (("index", "tombstone_even_without_entry"),),
    "an element counts from ADVANCE on": (("index", "element_counts_from_close"),),
    "rebase keeps the old image": (("index", "rebase_takes_the_image_at_head"),),
    "files of gone elements are committed": (("index", "files_of_gone_elements_are_left_out"),),
    "prefix outside a bulk write's conflict set": (("unique", "bulk_write_looks_again_at_touched_prefixes"),),
    "chunk without the owner's epoch": (("index", "chunk_checks_owner_epoch"),),
    "violators not looked at again": (("unique", "violators_are_looked_at_again"),),
    "chunk commits over a folded base": (("column", "folded_base_is_read_again"),),
    "old layers go with the first chunk": (("column", "old_layers_go_with_the_last_chunk"),),
}
"""The broken rules that the design marks as shown by a model, and the flags that break them."""


def explored(name: str, **broken: bool) -> Exploration[Any]:
    model, rules = MODELS[name]
    return explore(model(rules(**broken)))


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_right_rules_keep_every_promise(name: str) -> None:
    """No interleaving breaks a promise, the whole space is visited, and nothing interesting is missing from it."""
    found = explored(name)
    assert found.violation is None, str(found.violation)
    assert found.states == WHOLE[name].states
    assert set(found.situations) == WHOLE[name].situations


@pytest.mark.parametrize(("name", "flag"), CAUGHT)
def test_broken_rule_is_caught(name: str, flag: str) -> None:
    """Without any one rule some interleaving breaks a promise, so no rule is there for nothing."""
    violation = explored(name, **{flag: False}).violation
    assert violation is not None, f"{name}: nothing depends on {flag}"
    promise, moves = CAUGHT[name, flag]
    assert (violation.promise.split(":")[0], len(violation.trace)) == (promise, moves), str(violation)


def test_every_flag_is_tried() -> None:
    """A rule that is added to a model is also broken."""
    assert set(CAUGHT) == {(name, field.name) for name, (_, rules) in MODELS.items() for field in fields(rules())}


@pytest.mark.parametrize("broken_rule", MARKED)
def test_every_marked_rule_has_a_flag(broken_rule: str) -> None:
    """Each broken rule that the design marks is caught by at least one model."""
    assert MARKED[broken_rule]
    assert set(MARKED[broken_rule]) <= set(CAUGHT)


def test_search_finds_the_shortest_trace() -> None:
    """A violation is told by the fewest moves that lead to it, and by what was promised."""

    def add(number: int) -> Iterator[Step[int]]:
        yield from (Step(f"add {amount}", number + amount) for amount in (1, 3))

    def stays_below_five(number: int) -> bool:
        """The number stays below five."""
        return number < 5

    violation = explore(Model((0,), (add,), (stays_below_five,))).violation
    assert violation is not None
    assert [step.move for step in violation.trace] == ["add 3", "add 3"]
    assert str(violation).startswith("broken promise: stays_below_five: The number stays below five.\n   0. 0\n   1.")
