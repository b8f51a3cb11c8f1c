"""The hook of the package build: it runs the gate and generates the code.

Findings stop the build of a wheel or an sdist. An editable install only prints a warning, so that the tools that
resolve a finding can always be installed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

from .check import check
from .findings import Format, render
from .project_tree import GateError, find_tree
from .protos.codegen import generate


class GateBuildHook(BuildHookInterface[Any]):
    PLUGIN_NAME = "catalog"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        tree = find_tree(Path(self.root), search=False)
        report = check(tree)
        if not report.ok and version != "editable":
            raise SystemExit(f"{render(report, Format.TEXT)}\nthe package was not built: resolve the findings first")
        if report.findings or report.notes:
            self.app.display_warning(render(report, Format.TEXT))
        if self.target_name == "wheel":
            try:
                generate(tree)
            except GateError as error:
                if version != "editable":
                    raise SystemExit(str(error)) from error
                self.app.display_warning(f"no code was generated\n{error}")
