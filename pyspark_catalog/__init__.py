"""The data source `catalog` under a name that Spark searches, so that `spark.read.format("catalog")` needs no call."""

from catalog.engine.spark.datasource.source import CatalogDataSource as DefaultSource

__all__ = ["DefaultSource"]
