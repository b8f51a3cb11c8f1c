"""Errors of the connection to Java: it was killed, or had too little memory. Importing this loads no pyspark."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from catalog.errors import SparkJobError


@contextmanager
def java_errors() -> Iterator[None]:
    """Raise SparkJobError where Java has ended: it was killed, or had too little memory."""
    try:
        yield
    except Exception as error:
        if not is_of_java(error):
            raise
        fix = "find what ended Java, or give it more memory, and repeat in a new session; the store is unchanged"
        raise SparkJobError("its Java process ended", fix) from error


def is_of_java(error: BaseException) -> bool:
    """Tell if an error is that of the connection to Java, which raises Python's own and those of py4j."""
    if type(error).__name__ == "Py4JNetworkError":
        return True
    if not (isinstance(error, ConnectionError | EOFError) or type(error).__name__ == "Py4JError"):
        return False
    frame = error.__traceback__
    while frame is not None:
        if f"{os.sep}py4j{os.sep}" in frame.tb_frame.f_code.co_filename:
            return True
        frame = frame.tb_next
    return False
