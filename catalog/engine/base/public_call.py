"""Calls of the public API: a wrong number or name of arguments, and a member that is none, say what was meant."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import wraps
from typing import TYPE_CHECKING, ClassVar, Final, ParamSpec, TypeVar

from catalog.errors import NoSuchMemberError, WrongArgumentError

_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")
_NAMES: Final = {"Catalog": "catalog", "Transaction": "tx", "_TransactionBlock": "catalog.transaction()"}
"""The names that examples give to objects of a class."""


def public_call(function: Callable[_Given, _Answer]) -> Callable[_Given, _Answer]:
    """Translate the TypeError of a call whose arguments do not fit the signature; any other is raised as it is."""

    @wraps(function)
    def call(*given: _Given.args, **named: _Given.kwargs) -> _Answer:
        try:
            return function(*given, **named)
        except TypeError:
            wrong = _wrong_call(function, len(given), named)
            if wrong is None:
                raise
        raise wrong

    return call


def _wrong_call(function: Callable[..., object], given: int, named: Mapping[str, object]) -> WrongArgumentError | None:
    signature = inspect.signature(function)
    own = list(signature.parameters.values())
    if own and own[0].name == "self":
        own, given = own[1:], given - 1
    by_place = [one for one in own if one.kind is not one.KEYWORD_ONLY]
    taken = {one.name for one in by_place[:given]}
    unknown = [name for name in named if name not in signature.parameters or name in taken]
    missing = [one.name for one in own if one.default is one.empty and one.name not in taken | set(named)]
    if unknown:
        found = f"{unknown[0]} twice" if unknown[0] in taken else unknown[0]
    elif given > len(by_place):
        found = f"{given} values without a name"
    elif missing:
        found = f"no {missing[0]}"
    else:
        return None
    owner, _, name = function.__qualname__.rpartition(".")
    path = f"{_NAMES[owner]}.{name}" if owner in _NAMES else name
    plain = inspect.Signature([one.replace(annotation=one.empty) for one in own])
    close = get_close_matches(unknown[0], [one.name for one in own], 1) if unknown else []
    fix = f"did you mean {close[0]}?" if close and close[0] not in taken else f"call it as {path}{plain}"
    return WrongArgumentError(path, ", ".join(one.name for one in own) or "no argument", found, fix)


class PublicMembers:
    """A class whose members are public: one that it does not have is told with those that were meant."""

    __slots__ = ()
    elsewhere: ClassVar[Mapping[str, str]] = {}
    """Advice about names that people look for here."""

    if not TYPE_CHECKING:  # a type checker finds such members by itself

        def __getattr__(self, name: str) -> object:
            kind = type(self)
            if name.startswith("_"):
                raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")
            known = [one for one in dir(kind) if _is_public(one, getattr(kind, one))]
            close = get_close_matches(name, known, 1)
            fix = self.elsewhere.get(name) or (f"did you mean {close[0]}?" if close else f"use {', '.join(known)}")
            raise NoSuchMemberError(_NAMES.get(kind.__name__, kind.__name__), name, fix)


def _is_public(name: str, member: object) -> bool:
    return not name.startswith("_") and (isinstance(member, property) or hasattr(member, "__wrapped__"))
