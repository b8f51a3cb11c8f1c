"""Rules about migrations: each exists, is well formed and pure, and covers every changed collection."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from ..project_tree import MIGRATION_NAME, SNAPSHOT, SNAPSHOT_MODULE, step_name
from ..protos.types import ENGINE_COLLECTIONS, ProtoTypes, changed_collections, collection_differences
from ..protos.wire_compat import NARROWING, WireReason, wire_compatible
from ..sources.migration import ActionCall, Form, Import, MigrationSource
from ..sources.migration_test import read_migration_test
from ..sources.outside_uses import ORDER_OF_A_SET
from ..sources.syntax_tree import SyntaxProblemError
from ..sources.version_and_dispatch import Versions
from ..spelling import suggestion
from ..workspace import Workspace

_SUPPORT = {"__init__", "legacy_json_objects"}
_ALLOWED = {"pyarrow", "pyarrow.compute", "typing", "collections.abc", "__future__", "catalog.actions"}
_IN_FRAMES = {"pyspark.sql.functions", "pyspark.sql.Window", "pyspark.sql.window"}
"""The modules and names of pyspark that a frame function may import: they make columns, and reach nothing else."""


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
            what = f"{name} is listed as unwritten, but it is {'missing' if found is None else 'written'}"
            fix = f'remove "{name}" from `unwritten` under [tool.catalog]'
            workspace.add("M616", workspace.tree.root / "pyproject.toml", what, fix)


def _check_sequence(workspace: Workspace, versions: Versions) -> None:
    folder = workspace.tree.migrations
    there = workspace.migrations.keys() | workspace.broken_migrations
    for version in versions.steps:
        if step_name(version) not in there:
            path = workspace.tree.migration(step_name(version))
            workspace.add("M601", path, f"{path.name} is missing", workspace.restore(path))
    used = {arm.target for arm in workspace.dispatch.arms if arm.guarded} if workspace.dispatch else set()
    for path in sorted(folder.glob("*.py")) if folder.is_dir() else []:
        name = MIGRATION_NAME.fullmatch(path.stem)
        if name is None:
            if path.stem not in _SUPPORT:
                fix = "name it after its versions, or move it elsewhere"
                workspace.add("M602", path, f"{path.name} is not named vN_to_vM.py", fix)
        elif int(name["new"]) != int(name["old"]) + 1 or int(name["old"]) not in versions.steps:
            what = f"{path.stem} is not a step within v{versions.minimum}..v{versions.current}"
            fix = f"one step per module, one version at a time; to make one: {SNAPSHOT}"
            workspace.add("M602", path, what, fix)
        elif path.stem != step_name(int(name["old"])) and path.stem not in used:
            workspace.add("M602", path, f"no guarded arm runs {path.stem}", "name it in a guarded arm, or delete it")


def _check_shape(workspace: Workspace, name: str, migration: MigrationSource) -> None:
    path = workspace.tree.migration(name)
    if not migration.docstring.strip():
        workspace.add(
            "M603", path, f"{name} does not explain what changes and why", "begin the module with a docstring", 1
        )
    if not migration.has_upgrade:
        fix = "write: def upgrade() -> list[Action]: return [...]"
        workspace.add("M604", path, f"{name} has no function upgrade()", fix)
    for problem in migration.problems:
        fix = "return one literal list of actions over named collections"
        workspace.add("M605", path, problem.message, fix, problem.line)
    for action, line in migration.unknown_actions:
        workspace.add("M606", path, f"there is no action `{action}`", f"use one of: {', '.join(sorted(Form))}", line)
    imported = {found.name for found in migration.imports if found.module == "catalog.actions"}
    for form in sorted({action.form for action in migration.actions} - imported):
        what = f"`{form}` is used, but not imported"
        workspace.add("M606", path, what, f"from catalog.actions import {', '.join(_actions_used(migration))}")
    for collection, times in _covered(migration).items():
        if times > 1:
            what = f"{times} actions cover the rows of `{collection}`"
            workspace.add("M605", path, what, "keep one of them; one function can do the work of both")


def _check_functions(workspace: Workspace, path: Path, migration: MigrationSource) -> None:
    for declared in migration.actions:
        if declared.function is not None and declared.function not in migration.functions:
            what = f"{declared.form} names {declared.function}, which is not a function of this module"
            workspace.add("M605", path, what, f"define {declared.function} in {path.name}", declared.line)
    for used, line in migration.outside_uses:
        if used == ORDER_OF_A_SET:
            workspace.add("M620", path, f"it uses {used}, which differs between processes", "sort it: sorted(…)", line)
            continue
        fix = "compute everything from the rows; write other values as literals"
        workspace.add("M620", path, f"it uses {used}()", fix, line)


def _covered(migration: MigrationSource) -> Counter[str]:
    """Count the actions that cover each collection; rows that are moved before it is retired count once."""
    moved = {name for action in migration.actions if action.form is Form.PER_ROW for name in action.reads}
    return Counter(
        name
        for action in migration.actions
        for name in action.covers
        if action.form is not Form.RETIRE or name not in moved
    )


def _actions_used(migration: MigrationSource) -> list[str]:
    return ["Action", *sorted({str(action.form) for action in migration.actions})]


def _check_imports(workspace: Workspace, name: str, migration: MigrationSource) -> None:
    match = MIGRATION_NAME.fullmatch(name)
    if match is None:
        return
    neighbours = {f"objects_v{match[side]}_pb2" for side in ("old", "new")}
    frames = {action.function for action in migration.actions if action.form is Form.FRAME}
    for imported in migration.imports:
        if _allowed(workspace, imported, name, neighbours, frames):
            continue
        fix = "remove it, and write the needed parts as literals or functions in this module"
        if SNAPSHOT_MODULE.fullmatch(imported.name) or "objects" in imported.path:
            names = ", ".join(sorted(neighbours))
            fix = f"use the frozen types of its two versions: from {workspace.tree.project}.generated import {names}"
        elif imported.module.startswith("pyspark"):
            fix = (
                "inside the frame function, import pyspark.sql.functions or pyspark.sql.Window; name types of columns\n"
                'as texts, such as cast("bigint"); under TYPE_CHECKING, import types of pyspark.sql'
            )
        workspace.add("M608", workspace.tree.migration(name), f"it imports {imported.path}", fix, imported.line)


def _allowed(workspace: Workspace, imported: Import, name: str, neighbours: set[str], frames: set[str | None]) -> bool:
    project = workspace.tree.project
    if imported.module == f"{project}.generated":
        return imported.name in neighbours
    if imported.module.startswith("pyspark"):
        return (imported.typing_only and imported.module.startswith("pyspark.sql")) or (
            bool(_IN_FRAMES & {imported.module, imported.path}) and imported.inside in frames
        )
    if (
        imported.path == f"{project}.migrations.legacy_json_objects"
        or imported.module == f"{project}.migrations.legacy_json_objects"
    ):
        return workspace.versions is not None and _new(name) == workspace.versions.first_proto
    if imported.module == "pyarrow" and imported.name:
        return imported.name == "compute" or imported.name[0].isupper()
    return imported.module in _ALLOWED or imported.path in _ALLOWED


def _check_written(workspace: Workspace, name: str, migration: MigrationSource) -> None:
    path, test = workspace.tree.migration(name), workspace.tree.migration_test(name)
    for action in migration.actions:
        if action.form is Form.UNDECIDED:
            _add_undecided(workspace, name, action)
    if name in workspace.tree.unwritten:
        return
    for stub in migration.stubs:
        fix = f"write {stub.function}, or delete it if no action names it"
        workspace.add("M616", path, f"{stub.function} raises NotImplementedError", fix, stub.line)
    _check_test(workspace, test)


def _check_test(workspace: Workspace, test: Path) -> None:
    write_test = "write it: old rows in, new rows out"
    if not test.is_file():
        workspace.add("M617", test, f"{workspace.tree.relative(test)} is missing", write_test)
        return
    if test in workspace.conflicted:
        return
    try:
        written = read_migration_test(test.read_bytes())
    except SyntaxProblemError as problem:
        workspace.add("M617", test, problem.message, "correct the test", problem.line)
        return
    if not written.is_written:
        workspace.add("M617", test, f"{workspace.tree.relative(test)} has no test", write_test)
    for stub in written.stubs:
        fix = "assert in the test which old rows become which new rows"
        workspace.add("M616", test, f"{stub.function} raises NotImplementedError", fix, stub.line)
    for stub in written.empty:
        fix = "assert which old rows become which new rows, by the types or functions of the migration"
        workspace.add("M617", test, f"{stub.function} asserts nothing about the migration", fix, stub.line)


def _add_undecided(workspace: Workspace, name: str, action: ActionCall) -> None:
    (collection,) = action.reads
    old, new = _neighbours(workspace, name)
    rewriting = f'per_row("{collection}", migrate_{collection}) and write migrate_{collection}, or columnar for speed'
    fix, what = f"write instead: {rewriting}", f"`{collection}` is undecided"
    if old is not None and new is not None and {collection} <= set(old.collections) & set(new.collections):
        what += f": {'; '.join(collection_differences(old, new, collection)) or 'its types did not change'}"
        if not _wire_reasons(old, new, collection):
            fix = (
                f"if old rows may stay unchanged (verified: they can), import and write "
                f'wire_compatible("{collection}")\ninstead, and delete migrate_{collection} with its imports\n'
                f"if old rows need new content, write {rewriting}"
            )
    workspace.add("M615", workspace.tree.migration(name), what, fix, action.line)


def _check_coverage(workspace: Workspace, versions: Versions, name: str, migration: MigrationSource) -> None:
    path = workspace.tree.migration(name)
    old, new = _neighbours(workspace, name)
    old_is_lost = old is None and _new(name) - 1 in versions.snapshots
    altered = bool({_new(name) - 1, _new(name)} & workspace.altered_snapshots)
    unreadable = migration.problems or migration.unknown_actions or not migration.has_upgrade
    if new is None or old_is_lost or altered or unreadable:
        return
    before = set(old.collections) if old is not None else set(new.collections)
    after = set(new.collections)
    created = {made for action in migration.actions if action.form is Form.CREATE for made in action.makes}
    created |= {made for action in migration.actions if action.form is Form.FRAME for made in action.rewrites}
    retired = {gone for action in migration.actions if action.form is Form.RETIRE for gone in action.reads}
    for action in migration.actions:
        _check_names(workspace, path, action, before, after | retired if action.form is Form.PER_ROW else after)
    for collection in sorted(before - after - retired):
        what = f"`{collection}` is not in v{_new(name)}, and no action retires it"
        workspace.add("M613", path, what, f'add retire("{collection}")')
    for collection in sorted(after - before - created):
        what = f"`{collection}` is new in v{_new(name)}, and no action creates it"
        workspace.add("M614", path, what, f'add create("{collection}")')
    if old is None:
        for collection in sorted(after - set(ENGINE_COLLECTIONS) - created):
            if not migration.covers(collection):
                workspace.add("M611", path, f"`{collection}` gets new types", f'add per_row("{collection}", …)')
        return
    for collection in changed_collections(old, new):
        if not migration.rewrites(collection):
            _check_unrewritten(workspace, versions, name, migration, collection)


def _check_names(workspace: Workspace, path: Path, action: ActionCall, before: set[str], after: set[str]) -> None:
    twice = {Form.CREATE: (before, "old version already"), Form.RETIRE: (after, "new version still")}
    if action.form in twice:
        known, which = twice[action.form]
        for collection in {*action.reads, *action.makes} & known - set(ENGINE_COLLECTIONS):
            what = f"{action.form} names `{collection}`, which the {which} has"
            workspace.add("M607", path, what, "remove the action", action.line)
    for collections, known, side in ((action.reads, before, "old"), (action.makes, after, "new")):
        for collection in collections:
            if collection in ENGINE_COLLECTIONS:
                what = f"`{collection}` belongs to the engine and is never migrated"
                workspace.add("M607", path, what, "remove the action", action.line)
            elif collection not in known:
                what = f"{action.form} names `{collection}`, which the {side} version does not have"
                workspace.add("M607", path, what, suggestion(collection, known - set(ENGINE_COLLECTIONS)), action.line)


def _check_unrewritten(
    workspace: Workspace, versions: Versions, name: str, migration: MigrationSource, collection: str
) -> None:
    """Check a changed collection whose rows no action rewrites: only a verified claim is right."""
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
        workspace.add("M618", path, f"`{collection}`: {reused}", f"{rewrite}; or use a name that was never used")
    claims = [
        action for action in migration.actions if action.form is Form.WIRE_COMPATIBLE and collection in action.reads
    ]
    for claim in claims:
        for reason in reasons:
            workspace.add("M612", path, f"`{collection}`: {reason.path}: {reason.text}", rewrite, claim.line)
    if not migration.covers(collection):
        changes = "; ".join(collection_differences(old, new, collection))
        fix = rewrite if reasons else f'add wire_compatible("{collection}") (verified: it holds), or {rewrite}'
        workspace.add("M611", path, f"`{collection}` changed: {changes}", fix)


def _wire_reasons(old: ProtoTypes, new: ProtoTypes, collection: str) -> tuple[WireReason, ...]:
    return (
        *wire_compatible(old.key(collection), new.key(collection)).reasons,
        *wire_compatible(old.value(collection), new.value(collection)).reasons,
    )


def _reused_names(workspace: Workspace, versions: Versions, name: str, collection: str) -> list[str]:
    """Describe the field names that a collection's messages use again with another number."""
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


def _by_name(types: ProtoTypes, part: str) -> dict[str, int]:
    return {name: number for number, (name, _) in types.numbers.get(part, {}).items()}


def _neighbours(workspace: Workspace, name: str) -> tuple[ProtoTypes | None, ProtoTypes | None]:
    return workspace.snapshots.get(_new(name) - 1), workspace.snapshots.get(_new(name))


def _new(name: str) -> int:
    match = MIGRATION_NAME.fullmatch(name)
    return int(match["new"]) if match else 0
