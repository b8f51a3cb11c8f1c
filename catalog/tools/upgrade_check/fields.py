"""Fields before and after a step: how many rows have each set, and warnings of those that empty.

A field that both versions have, by its name or else by its number, loses rows if fewer have it afterwards than the
deleted rows explain. A field inside a message loses rows only beyond those that the message itself loses.
"""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from catalog.actions import Action
from catalog.engine.base.descriptors import descriptor_of, is_optional, map_entry
from catalog.engine.migrate.row_types import RowType
from catalog.engine.stash.registry import Collection
from catalog.tools.upgrade_check.field_scan import FieldScan
from catalog.tools.upgrade_check.report import FieldReport


def compare_fields(
    old: RowType, new: Collection, before: FieldScan, after: FieldScan, gone: int, action: Action | None
) -> list[FieldReport]:
    """Return every field of either version; `gone` rows are no longer there, whatever the fields."""
    reports = []
    losses: dict[str, int] = {}
    for then, now in _paired(old, new, before):
        counts = before.set_in.get(then or ""), after.set_in.get(now or "")
        lost = 0
        if then is not None and now is not None:
            losses[now] = max((counts[0] or 0) - (counts[1] or 0), 0)
            explained = max(gone, losses.get(now.rpartition(".")[0], 0))
            lost = 0 if _is_choice(new, now) else max(losses[now] - explained, 0)
        is_accepted = action is not None and now is not None and action.may_empty(new.name, now)
        reports.append(FieldReport(now or then or "", *counts, lost=lost, is_accepted=is_accepted and lost > 0))
    return reports


def _paired(old: RowType, new: Collection, before: FieldScan) -> Iterator[tuple[str | None, str | None]]:
    """Yield the path of each field in the old and in the new version; none where one of them lacks it."""
    for side, kind in (("key", new.key_type), ("value", new.value_type)):
        message = descriptor_of(kind)
        if isinstance(old, Collection):
            yield from _paired_messages(
                side, side, descriptor_of(old.key_type if side == "key" else old.value_type), message
            )
        else:  # rows from before protobuf have no numbers, and are counted one level deep
            names = {path.rpartition(".")[2] for path in before.set_in if path.rpartition(".")[0] == side}
            yield from ((f"{side}.{name}", f"{side}.{name}") for name in sorted(names & {*message.fields_by_name}))
            yield from ((f"{side}.{name}", None) for name in sorted(names - {*message.fields_by_name}))
            yield from ((None, f"{side}.{name}") for name in sorted({*message.fields_by_name} - names))


def _paired_messages(
    then: str, now: str, old: Descriptor | None, new: Descriptor | None
) -> Iterator[tuple[str | None, str | None]]:
    taken: set[str] = set()
    for member in old.fields if old else ():
        match = _same_field(member, old, new)
        own = f"{then}.{member.name}"
        if match is None:
            yield own, None
            continue
        taken.add(match.name)
        yield own, f"{now}.{match.name}"
        inside = _inside(member), _inside(match)
        if inside[0] is not None and inside[1] is not None:
            yield from _paired_messages(own, f"{now}.{match.name}", *inside)
    for member in new.fields if new else ():
        if member.name not in taken:
            yield None, f"{now}.{member.name}"


def _same_field(member: FieldDescriptor, old: Descriptor | None, new: Descriptor | None) -> FieldDescriptor | None:
    if new is None or old is None:
        return None
    if member.name in new.fields_by_name:
        return new.fields_by_name[member.name]
    renamed = new.fields_by_number.get(member.number)
    return renamed if renamed is not None and renamed.name not in old.fields_by_name else None


def _inside(member: FieldDescriptor) -> Descriptor | None:
    entry = map_entry(member)
    return member.message_type if entry is None else entry.fields_by_name["value"].message_type


def _is_choice(collection: Collection, path: str) -> bool:
    """Tell if a field is one of several members of a oneof, of which a row has only one at a time."""
    side, *names = path.split(".")
    message: Descriptor | None = descriptor_of(collection.key_type if side == "key" else collection.value_type)
    member: FieldDescriptor | None = None
    for name in names:
        if message is None:
            return False
        member = message.fields_by_name[name]
        if member.containing_oneof is not None and not is_optional(member):
            return True
        message = _inside(member)
    return False
