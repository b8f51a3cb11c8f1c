"""The session that the tests of Spark use too."""

from tests.engine.spark.conftest import spark

__all__ = ["spark"]
