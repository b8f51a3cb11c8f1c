"""Arguments of calls on rows: refused with what was meant, before anything is read or written."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from google.protobuf.message import Message

from catalog.engine.stash.registry import Collection, Registry, key_text
from catalog.errors import UnknownCollectionError, WrongArgumentError

_TEXT_MAX = 60


def collection_of_key(registry: Registry, call: str, key: object) -> Collection:
    """Return the collection of a key; refuse anything that is no key."""
    if not isinstance(key, Message):
        if isinstance(key, type) and issubclass(key, Message):
            fix = f"pass one key, such as {key.__name__}(...); `rows` takes the type itself"
        else:
            fix = f"pass a message, such as {_example(registry)}(...)"
        raise WrongArgumentError(call, "a key", described(key), fix)
    _require_key_type(registry, call, "a key", type(key), key)
    return registry.of_key(key)


def collection_of_key_type(registry: Registry, call: str, kind: object) -> Collection:
    """Return the collection of a type of keys; refuse anything that is none."""
    if isinstance(kind, type) and issubclass(kind, Message) and kind.DESCRIPTOR is not None:
        _require_key_type(registry, call, "a type of keys", kind, kind)
        return registry.of_key(kind)
    if isinstance(kind, Message):
        fix = f"pass the type, {type(kind).__name__}; `get` in a transaction takes one key"
    elif isinstance(kind, str) and (found := _named(registry, kind)) is not None:
        fix = f"pass the type of its keys, {found.key_type.__name__}"
    else:
        fix = f"pass a type, such as {_example(registry)}"
    raise WrongArgumentError(call, "a type of keys", described(kind), fix)


def _require_key_type(registry: Registry, call: str, needed: str, kind: type[Message], given: object) -> None:
    """Refuse the type of a value, and a type of another version: both name a collection, and are not its keys."""
    if (full_name := kind.DESCRIPTOR.full_name) in registry.by_key:
        return
    for own in registry.by_name.values():
        if full_name == own.value_type.DESCRIPTOR.full_name:
            fix = f"pass the key, {own.key_type.__name__}, as the first argument; {kind.__name__} is the value of a row"
            raise WrongArgumentError(call, needed, described(given), fix)
        if kind.DESCRIPTOR.name == own.key_type.DESCRIPTOR.name:
            fix = f"pass {own.key_type.__name__} of {own.key_type.__module__}, the types of this version"
            raise WrongArgumentError(call, needed, f"{described(given)} of {kind.__module__}", fix)


def collection_by_name(registry: Registry, call: str, name: object) -> Collection:
    """Return the collection of a name; refuse anything that is none."""
    if not isinstance(name, str):
        kind = name if isinstance(name, type) else type(name)
        known = next((own for own in registry.by_name.values() if kind in {own.key_type, own.value_type}), None)
        fix = f"pass its name, {(known or registry.by_name[min(registry.by_name)]).name!r}"
        raise WrongArgumentError(call, "the name of a collection", described(name), fix)
    return registry.named(name)


def require_value(collection: Collection, call: str, value: object) -> None:
    """Refuse anything that is no message; its type is checked elsewhere."""
    if not isinstance(value, Message):
        needed = collection.value_type.__name__
        more = "; `delete` removes a row" if value is None else ""
        raise WrongArgumentError(call, f"a {needed}", described(value), f"pass a message, {needed}(...){more}")


def require_ts(call: str, name: str, ts: object, *words: str) -> None:
    """Refuse anything that is no ts: a whole number from 0 on, or a word that the call knows."""
    if isinstance(ts, int) and not isinstance(ts, bool) and ts >= 0:
        return
    if isinstance(ts, str) and ts in words:
        return
    others = "".join(f", or {word!r}" for word in words)
    fix = f"pass a number of the log such as `catalog.ts`{others}; `catalog history` lists them with their times"
    raise WrongArgumentError(call, f"a ts as {name}", described(ts), fix)


def require_session(call: str, spark: object) -> None:
    """Refuse anything that is no session of Spark."""
    if spark is not None and all(kind.__name__ != "SparkSession" for kind in type(spark).__mro__):
        fix = "pass a session, such as `SparkSession.builder.getOrCreate()`, or leave it out"
        raise WrongArgumentError(call, "a session of Spark as spark", described(spark), fix)


def require_text(call: str, needed: str, text: object, example: str) -> None:
    """Refuse anything that is no text."""
    if not isinstance(text, str):
        raise WrongArgumentError(call, needed, described(text), f"pass a text such as {example}")


def described(value: object) -> str:
    """Return a value as a message names it, in one line."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the type {value.__name__}"
    try:
        text = key_text(value) if isinstance(value, Message) else " ".join(repr(value).split())
    except Exception:  # noqa: BLE001 - of the caller's own class, and no reason to fail otherwise
        text = "that cannot be shown"
    return f"the {type(value).__name__} {text if len(text) <= _TEXT_MAX else text[:_TEXT_MAX] + '…'}"


def choice(name: str, known: Iterable[str]) -> str:
    """Return the beginning of an advice: the name that is most alike, if there is one."""
    close = get_close_matches(name.lower(), list(known), 1)
    return f"did you mean {close[0]}? " if close else ""


def _named(registry: Registry, name: str) -> Collection | None:
    try:
        return registry.named(name)
    except UnknownCollectionError:
        close = get_close_matches(name, registry.by_name, 1)
        return registry.by_name[close[0]] if close else None


def _example(registry: Registry) -> str:
    return registry.by_name[min(registry.by_name)].key_type.__name__
