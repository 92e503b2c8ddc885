"""What crosses between regions for each byte of small records. Kafka in the same run.

Why:    packets without records, and headers around few, cost more than the records themselves.
How:    `python -m bench.run small-records` (root): five brokers, 2 + 2 + 1, in regions 30, 80 and
        90 ms apart (`bench.wide_area`, profile `calm`), one partition led in the east. A producer
        there writes 200 records/s of 100 B, acks=all, idempotent, without linger and with 100 ms.
        The figure is what all brokers send to brokers of other regions, TCP/IP and heartbeats
        included, divided by the bytes of the values acknowledged meanwhile. `idle_bytes_per_s` is
        the same without a producer.
Source: decision 0072."""

import time
from pathlib import Path

from chaos.hosts import BOOTSTRAP, BROKERS, CALM, CLIENTS
from chaos.network import Network
from confluent_kafka.admin import AdminClient

from bench.alone import Say
from bench.clusters import has_kafka
from bench.crossing import CLIENT
from bench.paced import PacedProducer
from bench.wide_area import (
    kafka_far_apart,
    make_topic,
    placed_on,
    strandline_far_apart,
    wait_steady,
)

TOPIC = "small"
RATE, RECORD_BYTES = 200, 100
LINGERS_MS = (0, 100)
WARM_S, COUNTED_S = 5.0, 20.0
PRODUCER_HOST = CLIENTS[0]
"""In the region of the leader."""


def measure(work: Path, say: Say) -> None:
    """Both systems, each on a network of its own; a line for each linger."""
    with strandline_far_apart(work, CALM) as network:
        _count(network, say, "strandline", BOOTSTRAP)
    if has_kafka():
        with kafka_far_apart(work, CALM) as (network, bootstrap):
            _count(network, say, "kafka", bootstrap)


def _count(network: Network, say: Say, system: str, bootstrap: str) -> None:
    with placed_on(network, PRODUCER_HOST):
        admin = AdminClient({**CLIENT, "bootstrap.servers": bootstrap})
        make_topic(admin, TOPIC, partitions=1)
        wait_steady(admin, TOPIC, partitions=1)
        before = between_regions(network)
        time.sleep(COUNTED_S)
        idle = (between_regions(network) - before) / COUNTED_S
        for linger_ms in LINGERS_MS:
            producer = PacedProducer(
                bootstrap, TOPIC, partitions=1, linger_ms=linger_ms, is_idempotent=True
            )
            try:
                producer.run(rate=RATE, seconds=WARM_S, record_bytes=RECORD_BYTES)
                before = between_regions(network)
                delivered = len(producer.deliveries.latencies_ms)
                producer.run(rate=RATE, seconds=COUNTED_S, record_bytes=RECORD_BYTES)
                crossed = between_regions(network) - before
                delivered = len(producer.deliveries.latencies_ms) - delivered
            finally:
                producer.close()
            say(
                system=system,
                linger_ms=linger_ms,
                per_byte=round(crossed / (delivered * RECORD_BYTES), 2),
                idle_bytes_per_s=round(idle),
                p50_ms=producer.deliveries.percentile_ms(50),
                p99_ms=producer.deliveries.percentile_ms(99),
            )


def between_regions(network: Network) -> int:
    """What brokers have sent to brokers of other regions so far."""
    regions = {one.name: one.region for one in BROKERS}
    return sum(
        count
        for (one, other), count in network.sent_bytes().items()
        if one in regions and other in regions and regions[one] != regions[other]
    )
