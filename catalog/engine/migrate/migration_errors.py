"""Errors that the code of a migration raises outside of any row. Importing this loads no Arrow and no pyspark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from catalog.engine.base.raised_text import error_text
from catalog.engine.spark.java_errors import is_of_java
from catalog.errors import CatalogError, MigrationFailedError


@contextmanager
def migration_errors(step: str) -> Iterator[None]:
    """Translate what a migration raises, with its file and line."""
    try:
        yield
    except CatalogError:
        raise
    except Exception as error:
        if is_of_java(error):
            raise
        raise MigrationFailedError(step, error_text(error)) from error
