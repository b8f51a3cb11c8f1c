"""The durable, versioned catalog of a Spark environment.

The folder holds the public API (this module, `authoring`, `actions`, `events`, `errors`), what serves every project
(`engine`, `tools`, `cli`), and one project, this repository's own: the files that `catalog new` writes (`version`,
`objects`, `constraints`, `initialize`, `upgrade`, `migrations`, `generated`) and its optional parts (`builtins`,
`privacy`, `samples`).

Importing this module loads neither pyspark nor pyarrow.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from catalog.engine.base.fence import LOCK_TIMEOUT_S
from catalog.engine.base.public_call import public_call
from catalog.errors import CatalogError
from catalog.version import BUILD, MIN_STASH_VERSION, STASH_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from catalog.engine.store.catalog import Catalog, Mode
    from catalog.events import Observer

__version__ = BUILD

__all__ = ["MIN_STASH_VERSION", "STASH_VERSION", "Catalog", "CatalogError", "Mode", "__version__", "open_catalog"]


@public_call
def open_catalog(  # noqa: PLR0913 - the public entry: each has a default that fits most
    store: str | os.PathLike[str],
    mode: str = "leader",
    *,
    options: Mapping[str, str] | None = None,
    deploy_generation: int = 0,
    lock_timeout_s: float = LOCK_TIMEOUT_S,
    spark: SparkSession | str | None = None,
    reapply: bool = False,
    observer: Observer | None = None,
    project: str = "catalog",
) -> Catalog:
    """Open a store as leader, member, read-only, savepoint or debug.

    `store` is a folder or the address of a prefix in an object store, `options` its storage options. While a leader of
    the same deploy generation is alive, the call waits for it, at most `lock_timeout_s`; a leader of a lower generation
    is replaced at once.

    A leader upgrades an older store to this build's version, step by step on Spark: on the session or at the address
    given as `spark`, else on this machine. With `reapply`, steps that were undone are applied again.

    `observer` is called with every event of `catalog.events` as it happens, in the thread that opens or commits. An
    exception that it raises is logged once as a warning and has no other effect.

    `project` is the name of the package whose types the store holds.
    """
    from catalog.engine.base.project import load_project  # noqa: PLC0415
    from catalog.engine.log.place import StorePlace  # noqa: PLC0415
    from catalog.engine.store.arguments import (  # noqa: PLC0415 - importing the package loads no engine
        parse_mode,
        require_address,
        require_options,
        require_upgrade,
    )
    from catalog.engine.store.leader_upgrade import UpgradeOptions  # noqa: PLC0415
    from catalog.engine.store.leadership import LeadershipOptions  # noqa: PLC0415
    from catalog.engine.store.open import open_store  # noqa: PLC0415
    from catalog.events import ignore  # noqa: PLC0415

    require_address(store)
    wanted = parse_mode(mode)
    require_options(options, deploy_generation, lock_timeout_s, observer, project)
    require_upgrade(spark, reapply)
    place = StorePlace.at(load_project(project), store, options)
    upgrading = UpgradeOptions(spark, reapply, observer or ignore)
    return open_store(place, wanted, LeadershipOptions(deploy_generation, lock_timeout_s), upgrading)


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the classes that the type checker imports above
    """Load the classes of an open store when they are first named: importing the package loads no engine."""
    if name not in {"Catalog", "Mode"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from catalog.engine.store import catalog as home  # noqa: PLC0415

    return getattr(home, name)
