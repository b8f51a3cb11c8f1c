"""The Java that Spark uses: that of JAVA_HOME if it is set, else the one on the path. Runs none."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_RELEASE = re.compile(r'(?m)^JAVA_VERSION="(?P<version>[^"]+)"')


@dataclass(frozen=True, slots=True)
class Java:
    program: Path
    by_home: bool
    """Named by JAVA_HOME: Spark looks nowhere else then."""

    @property
    def is_there(self) -> bool:
        return os.access(self.program, os.X_OK)

    @property
    def version(self) -> str | None:
        """Return the version by the `release` file of the installation; none if there is no such file."""
        beside = self.program.resolve().parents[1] / "release"
        if not beside.is_file():
            return None
        stated = _RELEASE.search(beside.read_text(encoding="utf-8", errors="replace"))
        return stated["version"] if stated else None


def find_java(variables: Mapping[str, str]) -> Java | None:
    if home := variables.get("JAVA_HOME"):
        return Java(Path(home, "bin", "java"), by_home=True)
    found = shutil.which("java", path=variables.get("PATH"))
    return None if found is None else Java(Path(found), by_home=False)
