"""The record of the types that a store's rows have: a row of `config` for each version, with a hash and a build.

A number alone does not tell: two branches may both make a version 2, and an unreleased version may be amended. The row
is written in the commit that brings a store to its version. Stores of earlier builds have none until they are led.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf.message import Message

from catalog.engine.base.project import Project
from catalog.engine.stash.registry import Registry, encode
from catalog.engine.stash.view import View
from catalog.errors import OtherTypesError


def record_name(version: int) -> str:
    """Return the name of the row of a version."""
    return f"types_v{version}"


def record_text(project: Project, version: int) -> str | None:
    """Return the record of a version as this build makes it; none if its rows have no descriptors."""
    return None if version < project.first_proto else f"{project.types_hash(version)} {project.build}"


def record_rows(project: Project, version: int) -> list[tuple[Message, Message]]:
    """Return the row that belongs to a version, if it has one."""
    text, config = record_text(project, version), Registry.of(project.current_types).named("config")
    return [] if text is None else [(config.key_type(name=record_name(version)), config.value_type(text=text))]


def require_types(project: Project, view: View) -> None:
    """Refuse rows whose version this build does not know, or knows with other types."""
    version = view.state.stash_version
    if version is not None:
        project.check_version(version)
        require_recorded(project, view, version)


def require_recorded(project: Project, view: View, version: int) -> None:
    """Refuse a version whose recorded types are not those of this build; without a record it is accepted."""
    found = _record(project, view, version)
    if found is None or version < project.first_proto:
        return
    recorded, _, build = found.partition(" ")
    if not project.has_types(version, recorded):
        own = project.types_hash(version)
        raise OtherTypesError(view.bases.log.uri, version, recorded, build, own, str(project.build))


def is_same_record(version: int, earlier: View, later: View) -> bool:
    """Tell if rows of a version have the same types in two states, as far as that is recorded; needs no project."""
    name = record_name(version).encode()
    key = b"\x0a" + bytes([len(name)]) + name  # a `ConfigKey`, which has one encoding at every version
    before, after = (view.get("config", key) for view in (earlier, later))
    return before is None or after is None or _hash_in(before) == _hash_in(after)


def _hash_in(raw: bytes) -> bytes:
    """Return the hash in the bytes of a record; two builds may have recorded the same."""
    return raw.partition(b"sha256:")[2].partition(b" ")[0]


def missing_record(project: Project, view: View) -> Mapping[str, str]:
    """Return the record that a state lacks, as a row of `config`: name and text."""
    version = view.state.stash_version
    if version is None or _record(project, view, version) is not None:
        return {}
    text = record_text(project, version)
    return {} if text is None else {record_name(version): text}


def _record(project: Project, view: View, version: int) -> str | None:
    config: Any = Registry.of(project.current_types).named("config")
    raw = view.get("config", encode(config.key_type(name=record_name(version))))
    return None if raw is None else str(config.value_type.FromString(raw).text)
