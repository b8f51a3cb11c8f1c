"""Protobuf ↔ Arrow, and the Arrow types that Spark can hold.

Importing this loads pyarrow and ptars, so import it where it is needed. Nothing here imports pyspark.
"""

from catalog.engine.codec.columns import (
    bounded_batches,
    first_difference,
    fit,
    from_spark,
    rebatch,
    spark_type,
    to_spark,
)
from catalog.engine.codec.message_codec import MessageCodec, codec_for

__all__ = [
    "MessageCodec",
    "bounded_batches",
    "codec_for",
    "first_difference",
    "fit",
    "from_spark",
    "rebatch",
    "spark_type",
    "to_spark",
]
