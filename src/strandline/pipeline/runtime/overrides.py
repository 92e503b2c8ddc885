"""Spark settings for the length of one statement.

Why:    some of Delta's statements take options only from the session, which other statements
        share."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def overridden(spark: "SparkSession", settings: Mapping[str, str]) -> Iterator[None]:
    """The settings hold within the block; afterwards the session has its own again."""
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)
