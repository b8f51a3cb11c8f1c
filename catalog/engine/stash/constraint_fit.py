"""The fit of constraints and types: a constraint that names no field of them is refused before a store is opened.

The gate refuses such constraints too, and with more advice; this is for programs that were never checked by it.
"""

from __future__ import annotations

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from catalog.engine.base.descriptors import descriptor_of, map_entry
from catalog.engine.base.gate_loader import gate_name
from catalog.engine.stash.constraints import Constraints, Reference, Unique
from catalog.engine.stash.registry import Registry
from catalog.errors import UnfitConstraintError


def require_fit(registry: Registry, constraints: Constraints) -> None:
    """Refuse constraints that do not fit the types of a version."""
    for unique in constraints.uniques:
        if isinstance(unique.paths, str):
            raise _unfit(unique, "its paths are one text, and no tuple of texts")
        for path in unique.paths:
            _field_at(registry, unique, path)
    for reference in constraints.references:
        field = _field_at(registry, reference, reference.path)
        if reference.target not in registry.by_name:
            raise _unfit(reference, f"there is no collection `{reference.target}`")
        key = descriptor_of(registry.by_name[reference.target].key_type)
        identity = key.fields_by_name.get("id")
        if identity is None or len(key.fields) != 1 or identity.is_repeated:
            raise _unfit(reference, f"the key of `{reference.target}` is not one field `id`")
        if (field.type, _name(field)) != (identity.type, _name(identity)):
            raise _unfit(reference, f"`{reference.path}` is of another type than the key of `{reference.target}`")


def _field_at(registry: Registry, constraint: Unique | Reference, path: str) -> FieldDescriptor:
    collection = registry.by_name.get(constraint.collection)
    if collection is None:
        raise _unfit(constraint, f"there is no collection `{constraint.collection}`")
    side, *names = path.split(".")
    if side not in {"key", "value"} or not names:
        raise _unfit(constraint, f"`{path}` does not lead from the key or the value to a field")
    message: Descriptor | None = descriptor_of(collection.key_type if side == "key" else collection.value_type)
    field: FieldDescriptor | None = None
    for name in names:
        field = None if message is None else message.fields_by_name.get(name)
        if field is None:
            raise _unfit(constraint, f"`{path}` leads to no field: there is no `{name}`")
        if map_entry(field) is not None:
            raise _unfit(constraint, f"`{path}` leads through the map `{name}`, whose entries have no order")
        message = field.message_type
    if field is None:
        raise _unfit(constraint, f"`{path}` leads to no field")
    return field


def _name(field: FieldDescriptor) -> str:
    return field.message_type.full_name if field.message_type is not None else ""


def _unfit(constraint: Unique | Reference, found: str) -> UnfitConstraintError:
    kind = type(constraint).__name__
    return UnfitConstraintError(f'{kind}("{constraint.collection}", …)', found, gate_name())
