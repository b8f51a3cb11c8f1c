"""Spark looks for packages named so, and finds `spark.read.format("catalog")` here without a call to register it."""

from catalog.datasource.source import CatalogDataSource as DefaultSource

__all__ = ["DefaultSource"]
