"""Whether changes may be committed: unique fields and references, against the newest state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from catalog.errors import DanglingReferenceError, DuplicateError
from catalog.stash.collections import Registry
from catalog.stash.constraints import Reference, Unique, digest, referred_keys, unique_digest
from catalog.stash.head import Head
from catalog.stash.transaction import RowChange


def check_changes(head: Head, changes: tuple[RowChange, ...]) -> None:
    """Refuse changes that would break a constraint, naming the rows."""
    for unique in head.constraints.uniques:
        _check_unique(head, unique, changes)
    for reference in head.constraints.references:
        _check_reference(head, reference, changes)


def _check_unique(head: Head, unique: Unique, changes: tuple[RowChange, ...]) -> None:
    own = [change for change in changes if change.collection.name == unique.collection]
    if not own:
        return
    counts = _unique_counts(unique, own)
    stored = head.index(unique.collection).uniques[head.constraints.uniques_of(unique.collection).index(unique)]
    for hashed, added in counts.items():
        if added > 0 and stored[hashed] + added > 1:
            rows = _rows_with(head, unique, own, hashed)
            if len(rows) > 1:
                raise DuplicateError(unique.collection, unique.paths, rows)


def _unique_counts(unique: Unique, changes: Iterable[RowChange]) -> Counter[bytes]:
    counts: Counter[bytes] = Counter()
    for change in changes:
        for value, diff in ((change.before, -1), (change.after, 1)):
            if value is not None:
                counts[unique_digest(unique, *change.collection.decode(change.key, value))] += diff
    return counts


def _rows_with(head: Head, unique: Unique, changes: list[RowChange], hashed: bytes) -> tuple[str, ...]:
    """The keys of the rows that collide, found on the rows themselves."""
    collection = head.registry.named(unique.collection)
    rows = head.view.rows(collection.name, {change.key: change.after for change in changes})
    decoded = (collection.decode(key, value) for key, value in rows)
    return tuple(str(key).strip() for key, value in decoded if unique_digest(unique, key, value) == hashed)


def _check_reference(head: Head, reference: Reference, changes: tuple[RowChange, ...]) -> None:
    """Every row that is referred to is there afterwards."""
    after = {(change.collection.name, change.key): change.after for change in changes}
    for change in changes:
        if change.collection.name == reference.collection and change.after is not None:
            decoded = change.collection.decode(change.key, change.after)
            for referred in referred_keys(reference, head.registry, *decoded):
                gone = after.get((reference.target, referred), b"") is None
                there = (reference.target, referred) in after or digest(referred) in head.index(reference.target).keys
                if gone or not there:
                    raise _dangling(head.registry, reference, str(decoded[0]).strip(), referred)
    removed = [
        c.key for c in changes if c.collection.name == reference.target and c.before is not None and c.after is None
    ]
    for key in removed:
        _check_removed(head, reference, changes, key)


def _check_removed(head: Head, reference: Reference, changes: tuple[RowChange, ...], removed: bytes) -> None:
    """Nothing refers to a removed row: first by the index, and on the rows themselves if that says otherwise."""
    if head.index(reference.collection).referred[digest(reference.target.encode(), removed)] == 0:
        return
    collection = head.registry.named(reference.collection)
    changed = {c.key: c.after for c in changes if c.collection.name == collection.name}
    for key, value in head.view.rows(collection.name, changed):
        decoded = collection.decode(key, value)
        if removed in referred_keys(reference, head.registry, *decoded):
            raise _dangling(head.registry, reference, str(decoded[0]).strip(), removed)


def _dangling(registry: Registry, reference: Reference, row: str, referred: bytes) -> DanglingReferenceError:
    target = str(registry.named(reference.target).key_type.FromString(referred)).strip()
    return DanglingReferenceError(reference.collection, row, reference.path, reference.target, target)
