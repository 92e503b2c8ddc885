"""What a query that writes asks for, checked before a row is read.

Source: Spark's guide to its Kafka connector; docs/decisions/0054-spark-sink.md."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from strandline.base.errors import OperatorError
from strandline.client.cluster import Client
from strandline.client.producer import BATCH_BYTES, ProducerSettings
from strandline.config.addresses import parse_bootstrap
from strandline.model.cluster import Address
from strandline.records.codec import CODEC_NAMES
from strandline.spark.reading.option_table import REFUSED_BEGINNINGS, Option, Use
from strandline.spark.reading.option_values import Values
from strandline.spark.writing.option_table import OPTIONS

DELIVERY_TIMEOUT_MS = 120_000
BATCH_BYTES_MAX = 16 << 20
_BY_LOWER_NAME = {option.name.lower(): option for option in OPTIONS}


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

    def connect(self) -> Client:
        """A client whose operations take at most the delivery timeout."""
        return Client(self.bootstrap, client_id=self.client_id, timeout_ms=self.delivery_timeout_ms)

    def producer_settings(self) -> ProducerSettings:
        """acks=all, idempotent."""
        return ProducerSettings(codec=self.codec, batch_bytes=self.batch_bytes)


def parse_write_options(given: Mapping[str, str]) -> WriteOptions:
    """The options of a query, whose names may be in any case. Raises OperatorError, one line."""
    values = Values({_known(name).name: text for name, text in given.items()})
    text = values.text("kafka.bootstrap.servers")
    if not text:
        raise OperatorError("option kafka.bootstrap.servers is missing: give host:port,host:port")
    try:
        bootstrap = parse_bootstrap(text)
    except ValueError as error:
        raise OperatorError(f"kafka.bootstrap.servers {error}") from error
    values.word("kafka.security.protocol", ("PLAINTEXT",))
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
    )


def _known(name: str) -> Option:
    """The option of this name. Raises OperatorError for one that is unknown or refused."""
    lower = name.lower()
    for beginning, why in REFUSED_BEGINNINGS.items():
        if lower.startswith(beginning):
            raise OperatorError(f"option {name}: {why}: remove it")
    option = _BY_LOWER_NAME.get(lower)
    if option is None:
        near = get_close_matches(lower, _BY_LOWER_NAME, n=1)
        hint = f" (did you mean {_BY_LOWER_NAME[near[0]].name}?)" if near else ""
        names = ", ".join(one.name for one in OPTIONS if one.use is Use.WRITE)
        raise OperatorError(f"option {name} is not known{hint}; the options are {names}")
    if option.use is Use.REFUSED:
        raise OperatorError(f"option {option.name}: {option.note}")
    return option
