"""Spark as a tool: everything here may start a session; importing it loads no pyspark.

- `session`: a local session that starts fast and prints nothing
- `session_start`: a session that starts in the background, and runs a first task
- `java`: the Java installation that Spark uses
- `java_errors`: the error of a Java that has ended
- `class_archive`: the archive of Java's classes with which it starts sooner
- `archive_maker`: the program that makes it, in the background
- `jobs`: plain functions run as tasks
- `sql_statement`: SQL statements as text: boundaries, names, read-only or not
- `sql_plan`: plans of Spark that only read a store, and a session that cannot write
- `sql_query`: read-only statements run on a session
- `collection_frame`: collections as DataFrames without the data source
- `datasource`: `spark.read.format("catalog")`
- `worker_daemon`: the parent process of Python workers, with imports done before they fork
"""
