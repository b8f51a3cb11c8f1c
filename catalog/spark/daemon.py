"""Spark's parent of Python workers (`spark.python.daemon.module`): what workers need is loaded before they fork.

Spark puts its own zip first on the path, and modules in a zip are compiled anew by every process. Where the same
package is installed as files, those are used. Nothing is loaded that starts threads or opens connections.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec


def prefer_files(path: list[str]) -> list[str]:
    """A path for modules without zips, if pyspark is found all the same."""
    files = [entry for entry in path if not entry.endswith(".zip")]
    sys.path[:] = files
    try:
        return files if find_spec("pyspark") and find_spec("py4j") else path
    finally:
        sys.path[:] = path


if __name__ == "__main__":
    sys.path[:] = prefer_files(sys.path)

    if "pyspark.sql.worker.lookup_data_sources" not in sys.argv:  # which only asks modules for their names
        import ptars  # noqa: F401 - for the workers
        import pyarrow.compute
        import pyarrow.parquet  # noqa: F401
    from pyspark.daemon import manager

    manager()
