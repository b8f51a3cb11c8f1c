"""The package build: generates the code and runs the gate.

Wheels and sdists are refused on findings. Editable installs only warn, so that the tools that mend a finding can
always be installed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

from .check import check
from .codegen import generate
from .findings import Format, render
from .tree import GateError, find_tree


class GateBuildHook(BuildHookInterface[Any]):
    PLUGIN_NAME = "catalog"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        tree = find_tree(Path(self.root), search=False)
        report = check(tree)
        if not report.ok and version != "editable":
            raise SystemExit(f"{render(report, Format.TEXT)}\nthe package is not built: mend the findings first")
        if report.findings or report.notes:
            self.app.display_warning(render(report, Format.TEXT))
        if self.target_name == "wheel":
            try:
                generate(tree)
            except GateError as error:
                if version != "editable":
                    raise SystemExit(str(error)) from error
                self.app.display_warning(f"no code was generated\n{error}")
