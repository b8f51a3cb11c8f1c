"""The files of a new version that a person completes: a migration and its test."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from ..project_tree import step_name
from ..protos.types import camel

_LINE_LENGTH_MAX = 120


@dataclass(frozen=True, slots=True)
class StubPlan:
    """The facts about a step from which its stubs are written."""

    project: str
    old: int
    why: str
    changes: tuple[str, ...]
    changed: tuple[str, ...]
    """Collections whose rows need a decision."""
    created: tuple[str, ...]
    retired: tuple[str, ...]

    @property
    def new(self) -> int:
        return self.old + 1


def migration_source(plan: StubPlan) -> str:
    changes = "\n".join(f"- {change}" for change in plan.changes) or "- no type changes, only rows"
    actions = [
        *(f'create("{name}")' for name in plan.created),
        *(f'undecided("{name}")' for name in plan.changed),
        *(f'retire("{name}")' for name in plan.retired),
    ]
    used = sorted({action.partition("(")[0] for action in actions})
    types = [
        f"from {plan.project}.generated import objects_v{v}_pb2 as v{v}\n" for v in (plan.old, plan.new) if plan.changed
    ]
    body = "".join(f"        {action},\n" for action in actions)
    returned = f"[\n{body}    ]" if actions else "[]"
    stubs = "".join(_stub(plan, name) for name in plan.changed)
    third_party = f"from catalog.actions import {', '.join(['Action', *used])}\n"
    own = "".join(types)
    gap = "\n" if own and plan.project != "catalog" else ""
    return (
        f'"""{_sentence(plan.why)}\n\n{changes}\n"""\n\n'
        f"from __future__ import annotations\n\n{third_party}{gap}{own}\n\n"
        f"def upgrade() -> list[Action]:\n    return {returned}\n{stubs}"
    )


def test_source(plan: StubPlan) -> str:
    name = step_name(plan.old)
    promises = {name: f"Old rows of `{name}` become the right new rows." for name in plan.changed or plan.created}
    tests = "".join(
        f'\n\ndef test_{subject}() -> None:\n    """{promise}"""\n    raise NotImplementedError\n'
        for subject, promise in (promises or {"rows": "Old rows become the right new rows."}).items()
    )
    return f'"""{name}: {_sentence(plan.why)}"""\n\nfrom __future__ import annotations\n{tests}'


def _stub(plan: StubPlan, collection: str) -> str:
    name, old, new = camel(collection), plan.old, plan.new
    parameters = f"key: v{old}.{name}Key, value: v{old}.{name}Value"
    result = f"tuple[v{new}.{name}Key, v{new}.{name}Value]"
    signature = f"def migrate_{collection}({parameters}) -> {result}:\n"
    if len(signature) > _LINE_LENGTH_MAX:
        signature = f"def migrate_{collection}(\n    {parameters}\n) -> {result}:\n"
    docstring = f'    """Make the new row of `{collection}` from the old one."""\n'
    return f"\n\n{signature}{docstring}    raise NotImplementedError\n"


def _sentence(why: str) -> str:
    safe = why.replace("\\", "/").replace('"', "'")
    sentence = safe[0].upper() + safe[1:] + ("" if safe.endswith((".", "!", "?")) else ".")
    return textwrap.fill(sentence, _LINE_LENGTH_MAX - len('"""v99_to_v99: """'), break_long_words=False)
