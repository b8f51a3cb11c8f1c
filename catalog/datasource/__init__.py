"""`spark.read.format("catalog")`: the collections of a store as typed DataFrames. Importing this loads no pyspark."""

from catalog.datasource.frame import dataframe, feed

__all__ = ["dataframe", "feed"]
