"""Spark's parent of Python workers (`spark.python.daemon.module`): loads what workers need before they fork.

Spark puts its own zip first on the path, and modules in a zip are compiled anew by every process. Where the same
package is installed as files, those are used. Nothing is loaded that starts threads or opens connections, such as
delta-rs. A module that is missing, as on a machine of a cluster, is left to the task that needs it.
"""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Final

OF_TASKS: Final = (
    "numpy",
    "pyarrow.compute",
    "pyarrow.parquet",
    "ptars",
    "google.protobuf.message",
    "pyspark.worker",
    "catalog.engine.spark.collection_frame",
    "catalog.engine.spark.jobs",
    "catalog.engine.migrate.frame_action",
    "catalog.engine.migrate.rewrite_task",
    "catalog.engine.migrate.step_job",
)
"""The modules of the engine's tasks, and those that they load first."""


def prefer_files(path: list[str]) -> list[str]:
    """Return a path for modules without zips, if pyspark is found on it too."""
    files = [entry for entry in path if not entry.endswith(".zip")]
    sys.path[:] = files
    try:
        return files if find_spec("pyspark") and find_spec("py4j") else path
    finally:
        sys.path[:] = path


def load(names: tuple[str, ...] = OF_TASKS) -> None:
    """Load modules in which no thread may start: numpy's pool of threads is for sums that no task does."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name in names:
        with suppress(ImportError):
            import_module(name)


if __name__ == "__main__":
    sys.path[:] = prefer_files(sys.path)

    if "pyspark.sql.worker.lookup_data_sources" not in sys.argv:  # which only asks modules for their names
        load()
    from pyspark.daemon import manager

    gc.freeze()  # workers collect garbage after every task, and need not visit, and so copy, what is here
    manager()
