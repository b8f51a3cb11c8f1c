"""The durable, versioned catalog of a Spark environment.

This module is the public API and nothing else; importing it loads neither pyspark nor pyarrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog.errors import CatalogError
from catalog.version import BUILD, MIN_STASH_VERSION, STASH_VERSION

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from catalog.handle import Catalog
    from catalog.notices import Observer

__version__ = BUILD

__all__ = ["MIN_STASH_VERSION", "STASH_VERSION", "CatalogError", "__version__", "open_catalog"]


def open_catalog(  # noqa: PLR0913 - the public entry: each has a default that fits most
    store: str | os.PathLike[str],
    mode: str = "leader",
    *,
    options: Mapping[str, str] | None = None,
    deploy_generation: int = 0,
    lock_timeout_s: float = 60.0,
    spark: SparkSession | str | None = None,
    reapply: bool = False,
    observer: Observer | None = None,
    project: str = "catalog",
) -> Catalog:
    """Open a store: as leader, member, read-only, savepoint or debug.

    `store` is a folder or the address of a prefix in an object store, `options` its storage options. A leader of the
    same deploy generation is waited for while it lives, `lock_timeout_s` at most; one of a lower generation is replaced
    at once.

    A leader takes an older store to this build's version, step by step on Spark: on the session or at the address given
    as `spark`, else on this machine; with `reapply`, steps that somebody undid are applied again.

    `observer` is called with every notice of `catalog.notices`, as it happens, in the thread that opens or commits;
    what it raises is logged as a warning, once, and harms nothing.

    `project` is the name of the package whose types the store holds, for catalogs of one's own.
    """
    from catalog.handle import Mode  # noqa: PLC0415 - importing the package loads no engine
    from catalog.leading import Patience  # noqa: PLC0415
    from catalog.open import Upgrading, open_store  # noqa: PLC0415
    from catalog.project import load_project  # noqa: PLC0415

    patience, upgrading = Patience(deploy_generation, lock_timeout_s), Upgrading(spark, reapply, observer)
    if mode not in set(Mode):
        raise ValueError(f"{mode!r} is no mode of opening a store: there are {', '.join(Mode)}")
    return open_store(load_project(project), store, Mode(mode), options or {}, patience, upgrading)
