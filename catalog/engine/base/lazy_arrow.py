"""Arrow's modules, loaded at the first use of a name of theirs: to import them takes longer than to open a store.

Modules that a command loads before it knows if it needs columns import `pa`, `pc` and `pq` from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
else:
    from importlib import import_module
    from types import ModuleType

    class _LazyModule(ModuleType):
        """A module that looks its names up in another one, and keeps them."""

        def __getattr__(self, name: str) -> object:
            found = getattr(import_module(self.__name__), name)
            setattr(self, name, found)
            return found

    pa, pc, pq = map(_LazyModule, ("pyarrow", "pyarrow.compute", "pyarrow.parquet"))

__all__ = ["pa", "pc", "pq"]
