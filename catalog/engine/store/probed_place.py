"""The record that a build has probed the place of a store: a row of `config`, so that later starts need not do so.

It names the build and, hashed, the address and the server of an object store or the file system of a folder. So a copy
of the store at another place is probed again.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

from catalog.engine.base.project import Project
from catalog.engine.stash.registry import Registry, encode
from catalog.engine.stash.view import View
from catalog.engine.storage.base import Storage
from catalog.engine.storage.write_probe import require_exclusive

PROBED: Final = "storage_probed"
"""The name of the row."""


def probe_mark(storage: Storage, project: Project) -> str:
    """Return the text of the row once this build has probed a place."""
    place = hashlib.sha256(f"{storage.uri}\0{storage.server()}".encode()).hexdigest()
    return f"{project.build} {place[:16]}"


def require_probed(storage: Storage, project: Project, view: View) -> None:
    """Probe a place unless a leader of this build has done so; what writes beside a leader records nothing."""
    if not has_mark(view, project, probe_mark(storage, project)):
        require_exclusive(storage)


def has_mark(view: View, project: Project, mark: str) -> bool:
    """Tell if the row of a state has this text."""
    config: Any = Registry.of(project.current_types).named("config")
    stored = view.get("config", encode(config.key_type(name=PROBED)))
    return stored == encode(config.value_type(text=mark))
