"""What a query that writes asks for, checked before a row is read.

Source: Spark's guide to its Kafka connector; docs/decisions/0054-spark-sink.md."""

from collections.abc import Mapping
from dataclasses import dataclass

from strandline.client.access import Access, AccessTransport
from strandline.client.cluster import Client
from strandline.client.producer import BATCH_BYTES, ProducerSettings
from strandline.model.cluster import Address
from strandline.records.codec import CODEC_NAMES
from strandline.spark.access import parse_reach
from strandline.spark.reading.option_values import Values, known_option
from strandline.spark.writing.option_table import OPTIONS

DELIVERY_TIMEOUT_MS = 120_000
BATCH_BYTES_MAX = 16 << 20


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """One query's options; Spark sends them to its executors."""

    bootstrap: tuple[Address, ...]
    topic: str
    """Of all rows; empty: each row names its own."""
    codec: int
    batch_bytes: int
    delivery_timeout_ms: int
    client_id: str
    access: Access | None = None
    """None: over plain connections."""

    def connect(self) -> Client:
        """A client whose operations take at most the delivery timeout."""
        return Client(
            self.bootstrap,
            client_id=self.client_id,
            timeout_ms=self.delivery_timeout_ms,
            transport=AccessTransport(self.access),
        )

    def producer_settings(self) -> ProducerSettings:
        """acks=all, idempotent."""
        return ProducerSettings(codec=self.codec, batch_bytes=self.batch_bytes)


def parse_write_options(given: Mapping[str, str]) -> WriteOptions:
    """The options of a query, whose names may be in any case. Raises OperatorError, one line."""
    values = Values({known_option(name, OPTIONS).name: text for name, text in given.items()})
    bootstrap, access = parse_reach(values)
    values.word("kafka.acks", ("all", "-1"))
    values.word("kafka.enable.idempotence", ("true",))
    timeout_ms = values.integer("kafka.delivery.timeout.ms") or DELIVERY_TIMEOUT_MS
    return WriteOptions(
        bootstrap=bootstrap,
        topic=values.text("topic"),
        codec=CODEC_NAMES.index(values.word("kafka.compression.type", CODEC_NAMES)),
        batch_bytes=min(values.integer("kafka.batch.size") or BATCH_BYTES, BATCH_BYTES_MAX),
        delivery_timeout_ms=timeout_ms,
        client_id=values.text("kafka.client.id") or "strandline-spark",
        access=access,
    )
