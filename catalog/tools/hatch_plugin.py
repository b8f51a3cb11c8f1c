"""The build hook `catalog` of hatchling, by which a project of one's own runs the gate when its package is built.

Named as an entry point, and loaded by hatchling alone.
"""

from __future__ import annotations

from typing import Any

from hatchling.plugin import hookimpl

from catalog.engine.base.gate_loader import load_gate


@hookimpl
def hatch_register_build_hook() -> type[Any]:
    hook: type[Any] = load_gate("build_hook").GateBuildHook
    return hook
