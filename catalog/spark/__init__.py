"""Spark as the data plane: sessions that start quickly and quietly. Importing this loads no pyspark."""
