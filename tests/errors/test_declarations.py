"""Errors are declared by their facts and three templates; the base class does the rest."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import pytest

from catalog import errors
from catalog.errors import (
    CatalogError,
    CheckpointMismatchError,
    ConflictError,
    DamagedError,
    FencedError,
    NoSuchRowError,
    RetryableError,
    StatementError,
    StoppedError,
    StoreFullError,
    StoreUnreachableError,
    UnfinishedStepError,
    UnfitJsonError,
    UsageError,
)
from docs.writers.errors import example_of

DECLARED: list[type[CatalogError]] = [
    found for name in errors.__all__ if (found := getattr(errors, name)).facts is not CatalogError.facts
]


@pytest.mark.parametrize("error", DECLARED, ids=lambda error: str(error.__name__))
def test_every_error_fills_its_templates_from_its_facts_and_survives_pickling(error: type[CatalogError]) -> None:
    """A template that names no fact would fail only when something else has gone wrong already."""
    made = example_of(error)
    assert str(made) == f"{made.what}\nwhy:  {made.why}\nnext: {made.next}"
    assert not [text for text in (made.what, made.why, made.next) if not text or "{" in text]
    for restored in (pickle.loads(pickle.dumps(made)), copy.copy(made)):  # noqa: S301 - made on the line before
        assert (type(restored), str(restored), vars(restored)) == (error, str(made), vars(made))


def test_facts_are_given_by_position_or_by_name() -> None:
    """Both make the same error, and the facts are its attributes."""
    made = ConflictError("my-store", expected=3, found=4)
    assert str(made) == str(ConflictError(uri="my-store", found=4, expected=3)) == str(ConflictError("my-store", 3, 4))
    assert (made.uri, made.expected, made.found) == ("my-store", 3, 4)
    assert made.what == "commit refused: my-store is at ts 4, and the commit was prepared for ts 3"
    assert isinstance(made, RetryableError)


@pytest.mark.parametrize(
    ("values", "named"),
    [(("a", 1), {}), (("a", 1, 2, 3), {}), (("a", 1, 2), {"found": 3}), (("a", 1), {"newest": 2})],
    ids=["too few", "too many", "one twice", "an unknown one"],
)
def test_wrong_facts_are_refused(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Type checking finds them too, but not every caller is checked."""
    with pytest.raises(TypeError, match="ConflictError takes uri, expected, found"):
        ConflictError(*values, **named)


def test_a_fact_may_contain_braces() -> None:
    """Facts are never read as templates: they may be JSON, or a statement of SQL."""
    assert str(UsageError("{what}", "{", "}")) == "{what}\nwhy:  {\nnext: }"
    assert CatalogError("{a}", "b", "c").what == "{a}"
    assert StatementError("no {column}", "line 1", "SELECT {", "correct {it}").what == "line 1: no {column}"


def test_facts_have_defaults_and_are_inherited() -> None:
    """A subclass with templates of its own keeps the facts of its parent."""
    assert StoppedError("Ctrl-C").ts is None
    assert StoppedError("Ctrl-C", 7).next == "`--since 7` continues from there"
    assert NoSuchRowError("role", "id: 1").next == "use insert or upsert, or correct the key"
    assert NoSuchRowError("role", "id: 1", ("id: 2", "id: 3")).next == "correct the key; similar keys: id: 2; id: 3"
    full = StoreFullError("/srv", "write to", "no space")
    assert (full.what, full.why) == ("cannot write to /srv: no space", "the storage is full")
    assert isinstance(full, StoreUnreachableError)


def test_templates_depend_on_facts_where_they_must() -> None:
    """Empty facts leave no gap in a sentence."""
    assert UnfitJsonError("RoleKey", "", "it is a list", ()).what == "this JSON is no RoleKey: it is a list"
    assert UnfitJsonError("RoleKey", "id", "it is a list", ("id",)).next == "correct it; the fields of RoleKey are id"
    assert UnfinishedStepError("s", "v1_to_v2", "ERROR", "no space").next == "`catalog start` runs it again"
    assert "did not record" in UnfinishedStepError("s", "v1_to_v2", "RUNNING", "").why
    assert FencedError((1, 2), (3, 4)).what.endswith("the store is at generation 3, epoch 4")
    assert isinstance(CheckpointMismatchError("s", 1, 2), DamagedError)


def test_notes_and_causes_stay() -> None:
    """As with any exception: `add_note`, and `raise from` within one process."""
    error = UsageError("a", "b", "c")
    error.add_note("seen on executor 3")
    with pytest.raises(UsageError) as caught:
        raise error from ValueError("below")
    assert isinstance(caught.value.__cause__, ValueError)
    assert pickle.loads(pickle.dumps(caught.value)).__notes__ == ["seen on executor 3"]  # noqa: S301 - made here


def test_no_error_has_a_constructor_of_its_own() -> None:
    """Or its facts would be stated twice again."""
    assert {inspect.getattr_static(error, "__init__") for error in DECLARED} == {CatalogError.__init__}
