"""The durable, versioned catalog of a Spark environment.

This module is the public API and nothing else; importing it loads neither pyspark nor pyarrow.
"""

from catalog.errors import CatalogError
from catalog.version import BUILD, MIN_STASH_VERSION, STASH_VERSION

__version__ = BUILD

__all__ = ["MIN_STASH_VERSION", "STASH_VERSION", "CatalogError", "__version__"]
