"""Rules about the numbers of fields and enum values: given up, reserved, and never used again."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ..protos.engine_types import ENGINE_TYPES
from ..workspace import Workspace
from .version_types import ProtoVersion, all_types, amended


def check(workspace: Workspace) -> None:
    sequence = list(all_types(workspace))
    _check_numbers(workspace, sequence)
    _check_reserved(workspace, sequence)


def _check_numbers(workspace: Workspace, sequence: Sequence[ProtoVersion]) -> None:
    """Check that a number that was ever given up is never used again."""
    retired = workspace.hashes.retired_numbers if workspace.hashes else {}
    ever: _Uses = {part: {number: (name, "") for number, name in named.items()} for part, named in retired.items()}
    previous: _Uses = {}
    for each in sequence:
        for part, numbers in each.types.numbers.items():
            for number, (name, kind) in numbers.items():
                before = _other_use(part, number, (name, kind), ever, previous, follows=each.follows)
                if before is not None:
                    what = f"{part}.{name} = {number}: {before}"
                    fix = "give the new one a number that was never used, and reserve the old one"
                    workspace.add("T110", each.path, what, fix)
                ever.setdefault(part, {})[number] = (name, kind)
        previous = each.types.numbers


_Uses = dict[str, dict[int, tuple[str, str]]]
"""Per message or enum, the name and the kind of each number; the kind is empty where it is not recorded."""


def _other_use(
    part: str, number: int, use: tuple[str, str], ever: _Uses, previous: _Uses, *, follows: bool
) -> str | None:
    """Describe the earlier use of a number, if it now has another meaning."""
    name, kind = use
    earlier = ever.get(part, {}).get(number)
    if earlier is None:
        return None
    if part not in previous:
        same = earlier[0] == name and earlier[1] in {"", kind}
        return None if same or not (follows or not previous) else f"`{earlier[0]}` of an earlier {part} had that number"
    was = previous[part].get(number)
    if was is None:
        return f"`{earlier[0]}`, since deleted, had that number"
    if was[0] != name and was[1] != kind and follows:
        return f"it was `{was[0]}` ({was[1]}) one version before"
    return None


def _check_reserved(workspace: Workspace, sequence: Sequence[ProtoVersion]) -> None:
    """Check that types that can still be corrected reserve the numbers that they give up."""
    for before, after in pairwise(sequence):
        if not after.is_open:
            continue
        for part, old in before.types.shapes.items():
            new = after.types.shapes.get(part)
            if new is None or part in ENGINE_TYPES:  # nothing is ever deleted there
                continue
            used = {member["number"] for member in new["members"]}
            given_up = {member["number"]: member["name"] for member in old["members"] if member["number"] not in used}
            for number, name in sorted(given_up.items()):
                if not _reserves(new, number):
                    what = f"{part}.{name} = {number} is deleted, and {part} does not reserve its number"
                    workspace.add("T113", after.path, what, _reserve(workspace, after, part, str(number)))
            for first, last in old["reserved"]:
                kept = [number for number in (first, last) if _reserves(new, number) or number in used]
                if len(kept) < len({first, last}):
                    span = str(first) if first == last else f"{first} to {last}"
                    what = f"{part} no longer reserves {span}"
                    workspace.add("T113", after.path, what, _reserve(workspace, after, part, span))


def _reserves(shape: dict[str, Any], number: int) -> bool:
    return any(first <= number <= last for first, last in shape["reserved"])


def _reserve(workspace: Workspace, types: ProtoVersion, part: str, span: str) -> str:
    return f"write `reserved {span};` in {part}{amended(workspace, types)}"
