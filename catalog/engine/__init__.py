"""Runs migrations: plans a step, rewrites and verifies its rows on Spark, commits it, and undoes it."""
