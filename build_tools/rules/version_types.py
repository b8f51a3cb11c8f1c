"""The types of all versions in their order, as rules compare them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..project_tree import AMEND
from ..protos.types import ProtoTypes
from ..workspace import Workspace


@dataclass(frozen=True, slots=True)
class ProtoVersion:
    """One set of types in the sequence of versions."""

    path: Path
    types: ProtoTypes
    follows: bool
    """True if the one before it in the sequence is the version before it; a snapshot between may be lost or altered."""
    is_open: bool
    """True if no release has frozen it, so that it can be corrected."""


def all_types(workspace: Workspace) -> Iterator[ProtoVersion]:
    """Yield every set of types from oldest to newest; the current ones only if they differ from their snapshot.

    A snapshot that was altered after it was frozen is left out, because its difference is the finding.
    """
    recorded = workspace.hashes.snapshots if workspace.hashes is not None else {}
    newest, before = None, None
    for version, types in sorted(workspace.snapshots.items()):
        if version not in workspace.altered_snapshots:
            entry, newest = recorded.get(version), types
            is_open = entry is None or entry.released is None
            yield ProtoVersion(workspace.tree.snapshot(version), types, before == version - 1, is_open)
            before = version
    if workspace.current is not None and (newest is None or workspace.current.hash != newest.hash):
        last = max(workspace.snapshots, default=None)
        yield ProtoVersion(workspace.tree.objects, workspace.current, before == last, is_open=True)


def amended(workspace: Workspace, types: ProtoVersion) -> str:
    """Return the rest of a fix: where to write it, and how to bring the snapshot in line."""
    return "" if types.path == workspace.tree.objects else f" in proto/objects.proto, then {AMEND}"
