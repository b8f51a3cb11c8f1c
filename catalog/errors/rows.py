"""Errors of rows, columns and collections: a change or a query that does not fit them."""

from __future__ import annotations

import re
from difflib import get_close_matches

from catalog.errors.base import CatalogError, ConstraintError


class UnknownCollectionError(CatalogError):
    name: str
    known: tuple[str, ...]
    what = "there is no collection {name}"
    why = "a collection is found by its name, or by the type of its keys at this version"
    next = "{suggestion}"

    @property
    def suggestion(self) -> str:
        """Return the name that is most alike, or all; of a type's name, only what tells the collection."""
        stem = self.name.rpartition(".")[2].removesuffix("Key").removesuffix("Value")
        close = get_close_matches(re.sub(r"(?<!^)(?=[A-Z])", "_", stem).lower(), self.known, 1)
        return f"did you mean {close[0]}?" if close else f"use one of: {', '.join(self.known)}"


class UnknownAllocatorError(CatalogError):
    name: str
    known: tuple[str, ...]
    what = "there is no allocator of ids {name}"
    why = "each collection has one by its own name, and others are rows of `id_alloc`; a new name would count from 1"
    next = "{suggestion}use one of: {known}; to add one, insert its row of `id_alloc`"

    @property
    def suggestion(self) -> str:
        close = get_close_matches(self.name, self.known, 1)
        return f"did you mean {close[0]}? else " if close else ""


class IdsExhaustedError(CatalogError):
    name: str
    following: int
    count: int
    what = "the allocator {name} has no {count} ids left: its next is {following}"
    why = "an id has 64 bits, and none is ever given out twice"
    next = "find what moved it so far: `catalog history`; `catalog debug edit id_alloc … --protected` sets it right"


class KeyExistsError(ConstraintError):
    collection: str
    key: str
    what = "`{collection}` already has a row {key}"
    why = "insert takes new keys only"
    next = "use update or upsert"


class NoSuchRowError(ConstraintError):
    collection: str
    key: str
    close: tuple[str, ...] = ()
    what = "`{collection}` has no row {key}"
    why = "update and delete take existing keys only"
    next = "{suggestion}"

    @property
    def suggestion(self) -> str:
        if self.close:
            return f"correct the key; similar keys: {'; '.join(self.close)}"
        return "use insert or upsert, or correct the key"


class RowChangedError(ConstraintError):
    collection: str
    key: str
    shown_ts: int
    ts: int
    what = "nothing was written: the row {key} of `{collection}` is no longer what it was at ts {shown_ts}"
    why = "another process changed it by ts {ts}, after it was shown"
    next = "read the row again, and decide again"


class ProtectedRowError(ConstraintError):
    collection: str
    fix: str = "to change them nevertheless, add --protected"
    what = "nothing was written: the rows of `{collection}` belong to the engine"
    why = "they hold the version of the store, its leader, its applied migrations and the data of its builtins"


class AllocatorSetBackError(ConstraintError):
    name: str
    stored: int
    found: str
    what = "the allocator {name} cannot be {found}: its next id is {stored}"
    why = "the ids below were given out, and would be given out again"
    next = "leave a gap; if none of these ids is in use, `catalog debug edit id_alloc … --protected` sets it back"


class UnknownFieldsError(ConstraintError):
    collection: str
    key: str
    part: str
    message: str
    fields: tuple[str, ...]
    what = "the {part} of the row {key} of `{collection}` has fields that {message} does not: {fields}"
    why = "no version of the types would read them, and two keys that differ only there look like one"
    next = "leave them out: DiscardUnknownFields(); if a newer build made the message, run that build"


class UndeclaredEnumError(ConstraintError):
    collection: str
    key: str
    path: str
    value: int
    enum: str
    known: tuple[str, ...]
    what = "{path} of the row {key} of `{collection}` is {value}, which {enum} does not declare"
    why = "no name stands for this number, so no reader knows what it means"
    next = "use one of: {known}; if a newer build made the message, run that build"


class MarkedRowError(ConstraintError):
    collection: str
    key: str
    mark: str
    fix: str
    what = "nothing was written: the row {key} of `{collection}` repeats the {mark} of the log"
    why = "if only the row were changed, it would contradict the log"


class UnfitJsonError(CatalogError):
    message: str
    path: str
    found: str
    fields: tuple[str, ...]
    what = "this JSON is no {message}{place}: {found}"
    why = "read in any other way, it might not mean what was intended"
    next = "correct it{choice}"

    @property
    def place(self) -> str:
        return f" at {self.path}" if self.path else ""

    @property
    def choice(self) -> str:
        return f"; the fields of {self.message} are {', '.join(self.fields)}" if self.fields else ""


class ValueTypeError(ConstraintError):
    collection: str
    found: str
    needed: str
    what = "a row of `{collection}` cannot hold a {found}"
    why = "the type of the key determines the collection, and the collection the type of the value"
    next = "pass a {needed}"


class DuplicateError(ConstraintError):
    collection: str
    paths: tuple[str, ...]
    rows: tuple[str, ...]
    what = "rows of `{collection}` would have the same {paths}: {duplicates}"
    why = "these fields are unique together"
    next = "choose another value, or change the other row first"

    @property
    def duplicates(self) -> str:
        return "; ".join(self.rows)


class DanglingReferenceError(ConstraintError):
    collection: str
    row: str
    path: str
    target: str
    referred: str
    what = "{path} of `{collection}` {row} would refer to `{target}` {referred}, which would not exist"
    why = "a row may only refer to rows that exist"
    next = "insert the row that is referred to, or change or delete the row that refers to it"


class UnfitColumnError(CatalogError):
    column: str
    found: str
    needed: str
    what = "{column} holds {found}; needed: {needed}"
    why = "written as it is, it would be lost or become another value"
    next = "correct the migration or query that makes this column"


class ReadOptionError(CatalogError):
    option: str
    found: str
    needed: str
    what = "option {option} of the catalog format: {found}"
    why = "without a valid option, the query might return other rows than requested"
    next = "needed: {needed}"


class OtherFeedError(CatalogError):
    uri: str
    collection: str
    found: str
    what = "the feed of {collection} in {uri} cannot continue from this checkpoint"
    why = "the checkpoint belongs to a feed of {origin}, whose offsets do not apply here"
    next = "name the store and the collection of the checkpoint, or begin with a new checkpoint"

    @property
    def origin(self) -> str:
        if self.found == self.collection:
            return "another store"
        return f"the collection {self.found}" if self.found else "something else"
