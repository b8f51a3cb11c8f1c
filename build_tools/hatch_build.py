"""Where hatchling finds the build hook of this repository; other projects have it as `catalog`, from the wheel."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from build_tools.build_hook import GateBuildHook

__all__ = ["GateBuildHook"]
