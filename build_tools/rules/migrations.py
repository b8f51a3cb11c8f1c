"""Rules about migrations: that each is there, is well formed, is pure, and covers what changed."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

from ..descriptors import ENGINE_COLLECTIONS, Types, changed_collections, collection_differences
from ..migration import Action, Form, Import, Migration, find_stubs
from ..syntax import SyntaxProblemError, Versions, read_module
from ..tree import MIGRATION_NAME, SNAPSHOT, SNAPSHOT_MODULE, step_name
from ..wire import NARROWING, Reason, wire_compatible
from ..workspace import Workspace

_SUPPORT = {"__init__", "legacy_json_objects"}
_ALLOWED = {"pyarrow", "pyarrow.compute", "typing", "collections.abc", "__future__", "catalog.actions"}


def check(workspace: Workspace) -> None:
    if workspace.versions is None:
        return
    _check_sequence(workspace, workspace.versions)
    for name, migration in workspace.migrations.items():
        _check_shape(workspace, name, migration)
        _check_functions(workspace, workspace.tree.migration(name), migration)
        _check_imports(workspace, name, migration)
        _check_written(workspace, name, migration)
        _check_coverage(workspace, workspace.versions, name, migration)
    for name in workspace.tree.unwritten:
        found = workspace.migrations.get(name)
        if name not in workspace.broken_migrations and (found is None or not found.stubs):
            workspace.add(
                "M616",
                workspace.tree.root / "pyproject.toml",
                f"{name} is listed as unwritten, but it is {'not there' if found is None else 'written'}",
                f'remove "{name}" from `unwritten` under [tool.catalog]',
            )


def _check_sequence(workspace: Workspace, versions: Versions) -> None:
    folder = workspace.tree.migrations
    there = workspace.migrations.keys() | workspace.broken_migrations
    for version in versions.steps:
        if step_name(version) not in there:
            path = workspace.tree.migration(step_name(version))
            workspace.add("M601", path, f"{path.name} is not there", workspace.restore(path))
    used = {arm.target for arm in workspace.dispatch.arms if arm.guarded} if workspace.dispatch else set()
    for path in sorted(folder.glob("*.py")) if folder.is_dir() else []:
        name = MIGRATION_NAME.fullmatch(path.stem)
        if name is None:
            if path.stem not in _SUPPORT:
                workspace.add(
                    "M602",
                    path,
                    f"{path.name} is not named vN_to_vM.py",
                    "name it after its versions, or move it elsewhere",
                )
        elif int(name["new"]) != int(name["old"]) + 1 or int(name["old"]) not in versions.steps:
            workspace.add(
                "M602",
                path,
                f"{path.stem} is no step within v{versions.minimum}..v{versions.current}",
                f"one step per module, one version at a time; to make one: {SNAPSHOT}",
            )
        elif path.stem != step_name(int(name["old"])) and path.stem not in used:
            workspace.add("M602", path, f"no guarded arm runs {path.stem}", "name it in a guarded arm, or delete it")


def _check_shape(workspace: Workspace, name: str, migration: Migration) -> None:
    path = workspace.tree.migration(name)
    if not migration.docstring.strip():
        workspace.add("M603", path, f"{name} does not say what changes and why", "begin the module with a docstring", 1)
    if not migration.has_upgrade:
        workspace.add(
            "M604", path, f"{name} has no function upgrade()", "write: def upgrade() -> list[Action]: return [...]"
        )
    for problem in migration.problems:
        workspace.add(
            "M605", path, problem.message, "return one literal list of actions over named collections", problem.line
        )
    for action, line in migration.unknown_actions:
        workspace.add("M606", path, f"there is no action `{action}`", f"use one of: {', '.join(sorted(Form))}", line)
    imported = {found.name for found in migration.imports if found.module == "catalog.actions"}
    for form in sorted({action.form for action in migration.actions} - imported):
        what = f"`{form}` is used, but not imported"
        workspace.add("M606", path, what, f"from catalog.actions import {', '.join(_actions_used(migration))}")
    for collection, times in _covered(migration).items():
        if times > 1:
            what = f"{times} actions say what happens to the rows of `{collection}`"
            workspace.add("M605", path, what, "leave one of them; a function can do the work of both")


def _check_functions(workspace: Workspace, path: Path, migration: Migration) -> None:
    for declared in migration.actions:
        if declared.function is not None and declared.function not in migration.functions:
            what = f"{declared.form} names {declared.function}, which is no function of this module"
            workspace.add("M605", path, what, f"define {declared.function} in {path.name}", declared.line)
    for used, line in migration.outside_uses:
        fix = "take everything from the rows; what a row needs, write as a literal"
        workspace.add("M620", path, f"it uses {used}()", fix, line)


def _covered(migration: Migration) -> Counter[str]:
    """How many actions cover each collection; rows that move elsewhere before it is retired are covered once."""
    moved = {name for action in migration.actions if action.form is Form.PER_ROW for name in action.reads}
    return Counter(
        name
        for action in migration.actions
        for name in action.covers
        if action.form is not Form.RETIRE or name not in moved
    )


def _actions_used(migration: Migration) -> list[str]:
    return ["Action", *sorted({str(action.form) for action in migration.actions})]


def _check_imports(workspace: Workspace, name: str, migration: Migration) -> None:
    match = MIGRATION_NAME.fullmatch(name)
    if match is None:
        return
    neighbours = {f"objects_v{match[side]}_pb2" for side in ("old", "new")}
    frames = {action.function for action in migration.actions if action.form is Form.FRAME}
    for imported in migration.imports:
        if _allowed(workspace, imported, name, neighbours, frames):
            continue
        fix = "remove it: write what you need of it as literals or functions in this module"
        if SNAPSHOT_MODULE.fullmatch(imported.name) or "objects" in imported.path:
            names = ", ".join(sorted(neighbours))
            fix = f"use the frozen types of its two versions: from {workspace.tree.project}.generated import {names}"
        elif imported.module.startswith("pyspark"):
            fix = "import pyspark.sql.functions inside the frame function, and types of pyspark.sql under TYPE_CHECKING"
        workspace.add("M608", workspace.tree.migration(name), f"it imports {imported.path}", fix, imported.line)


def _allowed(workspace: Workspace, imported: Import, name: str, neighbours: set[str], frames: set[str | None]) -> bool:
    project = workspace.tree.project
    if imported.module == f"{project}.generated":
        return imported.name in neighbours
    if imported.module.startswith("pyspark"):
        functions = {"pyspark.sql.functions", "pyspark.sql.functions."} & {imported.module, imported.path}
        return (imported.typing_only and imported.module.startswith("pyspark.sql")) or (
            bool(functions) and imported.inside in frames
        )
    if (
        imported.path == f"{project}.migrations.legacy_json_objects"
        or imported.module == f"{project}.migrations.legacy_json_objects"
    ):
        return workspace.versions is not None and _new(name) == workspace.versions.first_proto
    if imported.module == "pyarrow" and imported.name:
        return imported.name == "compute" or imported.name[0].isupper()
    return imported.module in _ALLOWED or imported.path in _ALLOWED


def _check_written(workspace: Workspace, name: str, migration: Migration) -> None:
    path, test = workspace.tree.migration(name), workspace.tree.migration_test(name)
    for action in migration.actions:
        if action.form is Form.UNDECIDED:
            _add_undecided(workspace, name, action)
    if name in workspace.tree.unwritten:
        return
    for stub in migration.stubs:
        workspace.add(
            "M616",
            path,
            f"{stub.function} raises NotImplementedError",
            f"write {stub.function}, or delete it if no action names it",
            stub.line,
        )
    if not test.is_file():
        workspace.add(
            "M617", test, f"{workspace.tree.relative(test)} is not there", "write it: old rows in, new rows out"
        )
        return
    if test in workspace.conflicted:
        return
    try:
        module = read_module(test.read_bytes())
    except SyntaxProblemError as problem:
        workspace.add("M617", test, problem.message, "mend the test", problem.line)
        return
    functions = [node.name for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    if not any(function.startswith("test") for function in functions):
        workspace.add(
            "M617", test, f"{workspace.tree.relative(test)} holds no test", "write it: old rows in, new rows out"
        )
    for stub in find_stubs(module):
        workspace.add(
            "M616",
            test,
            f"{stub.function} raises NotImplementedError",
            "say in the test which old rows become which new rows",
            stub.line,
        )


def _add_undecided(workspace: Workspace, name: str, action: Action) -> None:
    (collection,) = action.reads
    old, new = _neighbours(workspace, name)
    rewriting = f'per_row("{collection}", migrate_{collection}) and write migrate_{collection}, or columnar for speed'
    fix, what = f"write instead: {rewriting}", f"`{collection}` is undecided"
    if old is not None and new is not None and {collection} <= set(old.collections) & set(new.collections):
        what += f": {'; '.join(collection_differences(old, new, collection)) or 'its types did not change'}"
        if not _wire_reasons(old, new, collection):
            fix = (
                f"if old rows may stay as they are (checked: they can), import and write "
                f'wire_compatible("{collection}")\ninstead, and delete migrate_{collection} with its imports\n'
                f"if old rows need new content, write {rewriting}"
            )
    workspace.add("M615", workspace.tree.migration(name), what, fix, action.line)


def _check_coverage(workspace: Workspace, versions: Versions, name: str, migration: Migration) -> None:
    path = workspace.tree.migration(name)
    old, new = _neighbours(workspace, name)
    old_is_lost = old is None and _new(name) - 1 in versions.snapshots
    altered = bool({_new(name) - 1, _new(name)} & workspace.altered_snapshots)
    if (
        new is None
        or old_is_lost
        or altered
        or migration.problems
        or migration.unknown_actions
        or not migration.has_upgrade
    ):
        return
    before = set(old.collections) if old is not None else set(new.collections)
    after = set(new.collections)
    created = {made for action in migration.actions if action.form is Form.CREATE for made in action.makes}
    created |= {made for action in migration.actions if action.form is Form.FRAME for made in action.rewrites}
    retired = {gone for action in migration.actions if action.form is Form.RETIRE for gone in action.reads}
    for action in migration.actions:
        _check_names(workspace, path, action, before, after | retired if action.form is Form.PER_ROW else after)
    for collection in sorted(before - after - retired):
        workspace.add(
            "M613",
            path,
            f"`{collection}` is not in v{_new(name)} and nothing retires it",
            f'add retire("{collection}")',
        )
    for collection in sorted(after - before - created):
        workspace.add(
            "M614",
            path,
            f"`{collection}` is new in v{_new(name)} and nothing creates it",
            f'add create("{collection}")',
        )
    if old is None:
        for collection in sorted(after - set(ENGINE_COLLECTIONS) - created):
            if not migration.covers(collection):
                workspace.add("M611", path, f"`{collection}` gets new types", f'add per_row("{collection}", …)')
        return
    for collection in changed_collections(old, new):
        if not migration.rewrites(collection):
            _check_unrewritten(workspace, versions, name, migration, collection)


def _check_names(workspace: Workspace, path: Path, action: Action, before: set[str], after: set[str]) -> None:
    twice = {Form.CREATE: (before, "old version already"), Form.RETIRE: (after, "new version still")}
    if action.form in twice:
        known, which = twice[action.form]
        for collection in {*action.reads, *action.makes} & known - set(ENGINE_COLLECTIONS):
            what = f"{action.form} names `{collection}`, which the {which} has"
            workspace.add("M607", path, what, "remove the action", action.line)
    for collections, known, side in ((action.reads, before, "old"), (action.makes, after, "new")):
        for collection in collections:
            if collection in ENGINE_COLLECTIONS:
                workspace.add(
                    "M607",
                    path,
                    f"`{collection}` belongs to the engine and is never migrated",
                    "remove the action",
                    action.line,
                )
            elif collection not in known:
                workspace.add(
                    "M607",
                    path,
                    f"{action.form} names `{collection}`, which the {side} version does not have",
                    f"known there: {', '.join(sorted(known))}",
                    action.line,
                )


def _check_unrewritten(
    workspace: Workspace, versions: Versions, name: str, migration: Migration, collection: str
) -> None:
    """A collection changed and no action rewrites its rows: only a verified claim can be right."""
    path = workspace.tree.migration(name)
    old, new = _neighbours(workspace, name)
    if old is None or new is None:
        return
    reasons = _wire_reasons(old, new, collection)
    rewrite = f'rewrite the rows: columnar("{collection}", …) or per_row("{collection}", …)'
    for reason in reasons:
        if reason.rule in NARROWING:
            workspace.add("M619", path, f"`{collection}`: {reason.path}: {reason.text}", rewrite)
    for reused in _reused_names(workspace, versions, name, collection):
        workspace.add("M618", path, f"`{collection}`: {reused}", f"{rewrite}; or take a name that was never used")
    claims = [
        action for action in migration.actions if action.form is Form.WIRE_COMPATIBLE and collection in action.reads
    ]
    for claim in claims:
        for reason in reasons:
            workspace.add("M612", path, f"`{collection}`: {reason.path}: {reason.text}", rewrite, claim.line)
    if not migration.covers(collection):
        changes = "; ".join(collection_differences(old, new, collection))
        fix = rewrite if reasons else f'add wire_compatible("{collection}") (checked: it holds), or {rewrite}'
        workspace.add("M611", path, f"`{collection}` changed: {changes}", fix)


def _wire_reasons(old: Types, new: Types, collection: str) -> tuple[Reason, ...]:
    return (
        *wire_compatible(old.key(collection), new.key(collection)).reasons,
        *wire_compatible(old.value(collection), new.value(collection)).reasons,
    )


def _reused_names(workspace: Workspace, versions: Versions, name: str, collection: str) -> list[str]:
    """Field names that a collection's messages take up anew under another number."""
    old_version, new = _new(name) - 1, workspace.snapshots[_new(name)]
    found = []
    for part in sorted(new.parts(collection)):
        fields = _by_name(new, part)
        kept = _by_name(workspace.snapshots[old_version], part)
        for version in range(versions.snapshots.start, old_version + 1):
            earlier = _by_name(workspace.snapshots[version], part) if version in workspace.snapshots else {}
            found += [
                f"{part}.{field} = {number} was {earlier[field]} in v{version}"
                for field, number in fields.items()
                if earlier.get(field, number) != number and kept.get(field) != number
            ]
    return found


def _by_name(types: Types, part: str) -> dict[str, int]:
    return {name: number for number, (name, _) in types.numbers.get(part, {}).items()}


def _neighbours(workspace: Workspace, name: str) -> tuple[Types | None, Types | None]:
    return workspace.snapshots.get(_new(name) - 1), workspace.snapshots.get(_new(name))


def _new(name: str) -> int:
    match = MIGRATION_NAME.fullmatch(name)
    return int(match["new"]) if match else 0
