"""Rules about `version.py` and the dispatch in `upgrade.py`."""

from __future__ import annotations

from ..project_tree import MIGRATION_NAME, SNAPSHOT, step_name
from ..sources.version_and_dispatch import DISPATCH, Dispatch, DispatchArm, Versions
from ..workspace import Workspace


def check(workspace: Workspace) -> None:
    versions, dispatch = workspace.versions, workspace.dispatch
    if versions is None:
        return
    if workspace.bumped_to is not None:
        what = f"STASH_VERSION is {workspace.bumped_to}, but v{workspace.bumped_to} has no snapshot and no migration"
        fix = f"set it and StashVersion back to {versions.current}, edit proto/objects.proto, then {SNAPSHOT}"
        workspace.add("V401", workspace.tree.version, what, fix, versions.current_line)
        return
    supported = range(versions.minimum, versions.current + 1)
    if versions.literal != tuple(supported):
        what = f"it is Literal{list(versions.literal)}, the versions are {versions.minimum}..{versions.current}"
        fix = f"StashVersion = Literal[{', '.join(map(str, supported))}]"
        workspace.add("V402", workspace.tree.version, what, fix, versions.literal_line)
    if dispatch is not None:
        _check_arms(workspace, versions, dispatch)


def _check_arms(workspace: Workspace, versions: Versions, dispatch: Dispatch) -> None:
    path = workspace.tree.upgrade
    if not dispatch.ends_in_assert_never:
        what = f"{DISPATCH} does not end with an arm that fails"
        workspace.add("D505", path, what, "end it with: case _: assert_never(version)", dispatch.line)
    for line in dispatch.early_imports:
        workspace.add("D507", path, "a migration is imported at module level", "import it inside its arm", line)
    plain: dict[int, DispatchArm] = {}
    highest = versions.minimum - 1
    for position, arm in enumerate(dispatch.arms):
        following = dispatch.arms[position + 1] if position + 1 < len(dispatch.arms) else None
        if arm.guarded:
            if following is None or following.version != arm.version:
                what = f"no plain arm follows the guarded case {arm.version}"
                workspace.add("D504", path, what, f"put a plain `case {arm.version}:` directly after it", arm.line)
        elif arm.version in plain:
            workspace.add("D502", path, f"case {arm.version} occurs twice", "delete the second one", arm.line)
        elif not versions.minimum <= arm.version <= versions.current or arm.version < highest:
            what = (
                f"case {arm.version} comes after case {highest}"
                if arm.version < highest
                else f"case {arm.version} is not a supported version"
            )
            fix = f"keep the arms {versions.minimum}..{versions.current} in order"
            workspace.add("D506", path, what, fix, arm.line)
            plain[arm.version] = arm
        else:
            plain[arm.version] = arm
            highest = arm.version
        _check_target(workspace, versions, arm)
    for version in range(versions.minimum, versions.current + 1):
        if version not in plain:
            fix = _arm_text(workspace, versions, version)
            workspace.add("D501", path, f"there is no `case {version}:`", fix, dispatch.line)


def _check_target(workspace: Workspace, versions: Versions, arm: DispatchArm) -> None:
    if not versions.minimum <= arm.version <= versions.current:
        return
    name = MIGRATION_NAME.fullmatch(arm.target or "")
    leads_right = name is not None and (int(name["old"]), int(name["new"])) == (arm.version, arm.version + 1)
    variant_allowed = arm.guarded or arm.target == step_name(arm.version)
    right = arm.target is None if arm.version == versions.current else leads_right and variant_allowed
    at_home = arm.package in {None, f"{workspace.tree.project}.migrations"}
    if not (arm.readable and right and at_home):
        does = f"returns {arm.target}" if arm.readable else "does more than import and return one migration"
        does += "" if at_home else f" of {arm.package}"
        fix = _arm_text(workspace, versions, arm.version)
        workspace.add("D503", workspace.tree.upgrade, f"case {arm.version} {does}", fix, arm.line)


def _arm_text(workspace: Workspace, versions: Versions, version: int) -> str:
    if version == versions.current:
        return f"write: case {version}: return None"
    name = step_name(version)
    return f"write: case {version}: from {workspace.tree.project}.migrations import {name}; return {name}"
