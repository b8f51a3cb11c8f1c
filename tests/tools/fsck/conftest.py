"""The places that logs are tested on."""

from tests.engine.log.conftest import bucket, folder, place

__all__ = ["bucket", "folder", "place"]
