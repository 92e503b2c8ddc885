"""The options about buckets: whether old records come out of them, which, and how they are opened.

Source: decision 0065; `[tiered] buckets` of a broker's file."""

from typing import cast, get_args

from strandline.client.buckets.options import BucketOptions, ReadFrom, bucket_options
from strandline.spark.reading.option_values import Values


def parse_bucket_options(values: Values) -> BucketOptions | None:
    """None if all records come from brokers. Raises OperatorError."""
    words = cast(tuple[ReadFrom, ...], get_args(ReadFrom))
    default = "auto" if values.text("buckets") else "broker"
    word = values.word("readFrom", words) if "readFrom" in values.given else default
    return bucket_options(
        cast(ReadFrom, word), values.text("buckets"), values.text("bucketCredentialsFile")
    )
