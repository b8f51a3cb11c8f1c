"""Checks of a transaction's changes against the unique constraints and references of the newest state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from catalog.engine.stash.constraint_columns import row_referred_keys, row_unique_bytes
from catalog.engine.stash.constraints import Reference, Unique
from catalog.engine.stash.keyed_hash import hash_value
from catalog.engine.stash.registry import Registry, key_text
from catalog.engine.stash.replica import StashReplica
from catalog.engine.stash.transaction import RowChange
from catalog.errors import DanglingReferenceError, DuplicateError


def check_changes(head: StashReplica, changes: tuple[RowChange, ...]) -> None:
    """Raise the first violation, if the changes would break a constraint."""
    for violation in violations(head, changes):
        raise violation


def violations(head: StashReplica, changes: tuple[RowChange, ...]) -> Iterator[DuplicateError | DanglingReferenceError]:
    """Yield the error for every constraint that the changes would break."""
    for unique in head.constraints.uniques:
        own = [change for change in changes if change.collection.name == unique.collection]
        if own:
            yield from _duplicates(head, unique, own)
    for reference in head.constraints.references:
        yield from _dangling_in_changes(head, reference, changes)
        yield from _dangling_by_removal(head, reference, changes)


def _duplicates(head: StashReplica, unique: Unique, changes: list[RowChange]) -> Iterator[DuplicateError]:
    counts: Counter[bytes] = Counter()
    for change in changes:
        for value, diff in ((change.before, -1), (change.after, 1)):
            if value is not None:
                counts[row_unique_bytes(unique, *change.collection.decode(change.key, value))] += diff
    stored = head.index(unique.collection).counts.uniques[unique]
    for common, added in counts.items():
        if added > 0 and stored[hash_value(common)] + added > 1:
            rows = _rows_with(head, unique, changes, common)
            if len(rows) > 1:
                yield DuplicateError(unique.collection, unique.paths, rows)


def _rows_with(head: StashReplica, unique: Unique, changes: list[RowChange], common: bytes) -> tuple[str, ...]:
    """Return the keys, as text, of the rows that will have these unique bytes."""
    collection = head.registry.named(unique.collection)
    rows = head.view.rows(collection.name, {change.key: change.after for change in changes})
    decoded = (collection.decode(key, value) for key, value in rows)
    return tuple(key_text(key) for key, value in decoded if row_unique_bytes(unique, key, value) == common)


def _dangling_in_changes(
    head: StashReplica, reference: Reference, changes: tuple[RowChange, ...]
) -> Iterator[DanglingReferenceError]:
    """Yield an error for every reference of a changed row to a row that will not exist."""
    after = {change.key: change.after for change in changes if change.collection.name == reference.target}
    for change in changes:
        if change.collection.name == reference.collection and change.after is not None:
            decoded = change.collection.decode(change.key, change.after)
            for referred in row_referred_keys(reference, head.registry, *decoded):
                if referred in after:
                    exists = after[referred] is not None
                else:
                    exists = hash_value(referred) in head.index(reference.target).keys
                if not exists:
                    yield _dangling(head.registry, reference, key_text(decoded[0]), referred)


def _dangling_by_removal(
    head: StashReplica, reference: Reference, changes: tuple[RowChange, ...]
) -> Iterator[DanglingReferenceError]:
    """Yield an error for every reference to a removed row; scan the rows only if the index counts such references."""
    removed = {
        change.key
        for change in changes
        if change.collection.name == reference.target and change.before is not None and change.after is None
    }
    if not removed:
        return
    counts = head.index(reference.collection).counts.referred[reference]
    referred_to = {key for key in removed if counts[hash_value(key)] != 0}
    if not referred_to:
        return
    collection = head.registry.named(reference.collection)
    changed = {change.key: change.after for change in changes if change.collection.name == collection.name}
    for key, value in head.view.rows(collection.name, changed):
        decoded = collection.decode(key, value)
        for referred in row_referred_keys(reference, head.registry, *decoded):
            if referred in referred_to:
                yield _dangling(head.registry, reference, key_text(decoded[0]), referred)


def _dangling(registry: Registry, reference: Reference, row: str, referred: bytes) -> DanglingReferenceError:
    target = key_text(registry.named(reference.target).key_type.FromString(referred))
    return DanglingReferenceError(reference.collection, row, reference.path, reference.target, target)
