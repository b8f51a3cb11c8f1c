"""Breadth-first search over every interleaving of a model's moves. It knows no schema change."""

from __future__ import annotations

import gc
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from inspect import getdoc
from typing import Generic, NamedTuple, TypeVar

S = TypeVar("S")


class Step(NamedTuple, Generic[S]):
    """One move: its name, the state it leads to, and what was noteworthy about it."""

    move: str
    state: S
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.move} ({', '.join(self.notes)})" if self.notes else self.move


Move = Callable[[S], Iterator[Step[S]]]
StatePromise = Callable[[S], bool]
StepPromise = Callable[[S, Step[S]], bool]


@dataclass(frozen=True, slots=True)
class Model(Generic[S]):
    """A state machine and its promises; a promise is a function whose docstring says what is promised."""

    initial: tuple[S, ...]
    moves: tuple[Move[S], ...]
    state_promises: tuple[StatePromise[S], ...]
    step_promises: tuple[StepPromise[S], ...] = ()
    rest_promises: tuple[StatePromise[S], ...] = ()
    """Hold in every state that no move leaves."""

    def steps(self, state: S) -> Iterator[Step[S]]:
        for move in self.moves:
            yield from move(state)


@dataclass(frozen=True, slots=True)
class Violation(Generic[S]):
    """A broken promise and the shortest way to it."""

    promise: str
    initial: S
    trace: tuple[Step[S], ...]

    def __str__(self) -> str:
        lines = [f"broken promise: {self.promise}", f"   0. {self.initial}"]
        for number, step in enumerate(self.trace, 1):
            lines += [f"{number:4}. {step}", f"      {step.state}"]
        return "\n".join(lines)


@dataclass(slots=True)
class Exploration(Generic[S]):
    """States and moves visited, how often each noteworthy situation was met, and the first violation, if any."""

    states: int = 0
    moves: Counter[str] = field(default_factory=Counter)
    situations: Counter[str] = field(default_factory=Counter)
    violation: Violation[S] | None = None


def explore(model: Model[S]) -> Exploration[S]:
    """Visit every state that can be reached, nearest first, and stop at the first broken promise."""
    collects = gc.isenabled()
    gc.disable()  # states make no cycles, and looking for some would take a third of the time
    try:
        return _explore(model)
    finally:
        if collects:
            gc.enable()


def _explore(model: Model[S]) -> Exploration[S]:
    found: Exploration[S] = Exploration()
    came_by: dict[S, tuple[S, Step[S]] | None] = dict.fromkeys(model.initial)
    for start in model.initial:
        if broken := _first_broken(model.state_promises, start):
            found.violation = Violation(broken, start, ())
            return found
    waiting = deque(model.initial)
    while waiting:
        state = waiting.popleft()
        found.states += 1
        at_rest = True
        for step in model.steps(state):
            at_rest = at_rest and step.state == state
            found.moves[step.move] += 1
            for note in step.notes:
                found.situations[note] += 1
            origin = (state, step)
            is_new = came_by.setdefault(step.state, origin) is origin  # one lookup: hashing a state is what takes long
            broken = next((_promise(p) for p in model.step_promises if not p(state, step)), "")
            broken = broken or (_first_broken(model.state_promises, step.state) if is_new else "")
            if broken:
                found.violation = _violation(broken, came_by, state, step)
                return found
            if is_new:
                waiting.append(step.state)
        if at_rest and (broken := _first_broken(model.rest_promises, state)):
            found.violation = _violation(broken, came_by, state, None)
            return found
    return found


def _first_broken(promises: Iterable[StatePromise[S]], state: S) -> str:
    return next((_promise(promise) for promise in promises if not promise(state)), "")


def _promise(promise: Callable[..., bool]) -> str:
    function = promise.func if isinstance(promise, partial) else promise
    return f"{function.__name__}: {getdoc(function)}"


def _violation(
    promise: str, came_by: dict[S, tuple[S, Step[S]] | None], state: S, last: Step[S] | None
) -> Violation[S]:
    trace = [] if last is None else [last]
    while (origin := came_by[state]) is not None:
        state, step = origin
        trace.append(step)
    return Violation(promise, state, tuple(reversed(trace)))
