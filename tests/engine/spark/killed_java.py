"""A process that upgrades a store and reads it while its Java is killed; it prints how each ended."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from unittest.mock import patch

from catalog import open_catalog
from catalog.engine.spark.session import _LocalJava, local_session
from catalog.errors import CatalogError
from catalog.events import Event, StepBegan


def kill() -> None:
    java = _LocalJava.present
    assert java is not None
    assert java.process is not None
    java.process.kill()
    java.process.wait()


def kill_later(event: Event) -> None:
    if isinstance(event, StepBegan):
        threading.Timer(0.5, kill).start()


def tell(use: Callable[[], object]) -> None:
    try:
        use()
    except CatalogError as error:
        print(type(error).__name__, *str(error).splitlines(), sep="|")  # noqa: T201 - the test reads it
    else:
        print("done")  # noqa: T201 - as above


def main(store: str) -> None:
    tell(lambda: open_catalog(store, observer=kill_later))
    with patch.object(_LocalJava, "is_killed", return_value=False):  # its connections end before its process does
        dead = local_session()
    kill()
    tell(lambda: open_catalog(store, spark=dead))
    tell(lambda: open_catalog(store, "debug").dataframe("role", spark=dead))
    tell(lambda: open_catalog(store, "debug").dataframe("role"))


if __name__ == "__main__":
    main(*sys.argv[1:])
