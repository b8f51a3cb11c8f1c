"""The engine as a project sees it: the only module of it that a project's files import.

`catalog.actions` and `catalog.errors` are public besides: migrations import the first, `version.py` the second. A name
is loaded when it is first used, so that importing a project loads neither pyarrow nor pyspark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from catalog.engine.base.project import (
        BuildVersion,
        MigrationModule,
        Privacy,
        Project,
        load_generated,
        require_fresh,
    )
    from catalog.engine.builtins import store_metrics
    from catalog.engine.builtins.declaration import (
        Builtin,
        BuiltinName,
        Declaration,
        Derivation,
        Instruction,
        Mechanism,
    )
    from catalog.engine.log.place import StorePlace
    from catalog.engine.shard.row_table import Row
    from catalog.engine.shard.schema import Column, Schema
    from catalog.engine.stash.constraints import Constraints, Reference, Unique
    from catalog.engine.stash.transaction import Transaction
    from catalog.tools.generator import random_columns
    from catalog.tools.generator.draw import Draw
    from catalog.tools.generator.generate import generate
    from catalog.tools.generator.sample import Sample, SampleColumn
    from catalog.tools.upgrade_check.check import check_upgrade

_HOMES: Final = {
    "catalog.engine.base.project": (
        "BuildVersion",
        "MigrationModule",
        "Privacy",
        "Project",
        "load_generated",
        "require_fresh",
    ),
    "catalog.engine.builtins.declaration": (
        "Builtin",
        "BuiltinName",
        "Declaration",
        "Derivation",
        "Instruction",
        "Mechanism",
    ),
    "catalog.engine.log.place": ("StorePlace",),
    "catalog.engine.shard.row_table": ("Row",),
    "catalog.engine.shard.schema": ("Column", "Schema"),
    "catalog.engine.stash.constraints": ("Constraints", "Reference", "Unique"),
    "catalog.engine.stash.transaction": ("Transaction",),
    "catalog.tools.generator.draw": ("Draw",),
    "catalog.tools.generator.generate": ("generate",),
    "catalog.tools.generator.sample": ("Sample", "SampleColumn"),
    "catalog.tools.upgrade_check.check": ("check_upgrade",),
}
_MODULES: Final = {
    "random_columns": "catalog.tools.generator.random_columns",
    "store_metrics": "catalog.engine.builtins.store_metrics",
}

__all__ = [
    "BuildVersion",
    "Builtin",
    "BuiltinName",
    "Column",
    "Constraints",
    "Declaration",
    "Derivation",
    "Draw",
    "Instruction",
    "Mechanism",
    "MigrationModule",
    "Privacy",
    "Project",
    "Reference",
    "Row",
    "Sample",
    "SampleColumn",
    "Schema",
    "StorePlace",
    "Transaction",
    "Unique",
    "check_upgrade",
    "generate",
    "load_generated",
    "random_columns",
    "require_fresh",
    "store_metrics",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any of the names above
    if name in _MODULES:
        return import_module(_MODULES[name])
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
