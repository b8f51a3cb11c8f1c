"""The verbs that change a row by hand: debug edit and debug delete. They print nothing."""

from __future__ import annotations

from catalog.cli.answers import Edited
from catalog.cli.environment import Environment
from catalog.cli.reading import parse_key, parse_object
from catalog.cli.results import Answer
from catalog.editing import Edit, apply_edit, plan_delete, plan_edit


def plan(environment: Environment, collection: str, key: str, value: str | None, *, protected: bool) -> Edit:
    """What giving a row this value would do, or with none deleting it; nothing is written."""
    parsed = parse_key(key)
    if value is None:
        return plan_delete(environment.place, collection, parsed, protected=protected)
    return plan_edit(environment.place, collection, parsed, parse_object("the value", value), protected=protected)


def write(environment: Environment, edit: Edit) -> Answer:
    """Do what was planned; whoever leads is fenced, unless there is nothing to do."""
    ts = None if edit.is_same else apply_edit(environment.place, edit, environment.patience)
    return Answer(Edited(environment.storage.uri, edit.collection, edit.key, edit.before, edit.after, ts))
