"""The fixtures of whole stores."""

from tests.engine.store.conftest import store_at, store_bucket, templates, victims
from tests.volatile import tmp_path

__all__ = ["store_at", "store_bucket", "templates", "tmp_path", "victims"]
