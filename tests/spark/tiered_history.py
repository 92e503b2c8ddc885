"""A cluster with one history, most of it in buckets only, and what its brokers hand over."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.integration.bucket_contents import ends_of
from tests.integration.ports import free_ports
from tests.integration.test_reading_near import served
from tests.integration.test_tiered_reading import RECORDS, fill, let_go
from tests.integration.test_tiered_uploads import Tiered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Kept:
    """See the module. `pages`: where each broker is scraped; `ends`: {partition: where the buckets
    end}."""

    def __init__(self, directory: Path) -> None:
        base = free_ports(1)[0]
        self.tiered = Tiered(directory, f"metrics.port={base}")
        self.pages = {one: f"http://127.0.0.1:{base + one - 1}" for one in (1, 2, 3)}
        self.first_ms = int(time.time() * 1_000) - 3_600_000
        self.tiered.create("t")
        fill(self.tiered, "t", 0, RECORDS, first_ms=self.first_ms)
        let_go(self.tiered, "t")
        self.ends = ends_of(self.tiered.buckets["east"])

    @property
    def buckets(self) -> str:
        return ",".join(f"{name}=file://{path}" for name, path in self.tiered.buckets.items())

    @property
    def tiered_count(self) -> int:
        return sum(self.ends.values())

    def served(self, at_least: int = 0) -> int:
        return int(sum(served(self.pages, sum_bytes=at_least).values()))

    def load(self, spark: "SparkSession", **options: str) -> "DataFrame":
        read = spark.read.format("strandline").option("subscribe", "t")
        read = read.option("kafka.bootstrap.servers", self.tiered.cluster.bootstrap)
        return read.options(**options).load()
