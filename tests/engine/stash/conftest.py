"""The places that logs are tested on."""

from tests.engine.log.conftest import bucket, folder, place
from tests.volatile import tmp_path

__all__ = ["bucket", "folder", "place", "tmp_path"]
