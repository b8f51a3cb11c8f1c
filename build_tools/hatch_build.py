"""The build hook of this repository, for hatchling; other projects use the hook `catalog` of the wheel."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from build_tools.build_hook import GateBuildHook

__all__ = ["GateBuildHook"]
