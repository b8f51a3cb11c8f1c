"""`spark.read.format("catalog")`: the collections of a store as typed DataFrames. Importing this loads no pyspark."""

from catalog.engine.spark.datasource.dataframe import dataframe, feed

__all__ = ["dataframe", "feed"]
