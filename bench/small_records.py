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
from functools import partial
from pathlib import Path

from chaos.hosts import CALM, CLIENTS
from chaos.network import Network
from confluent_kafka.admin import AdminClient

from bench.alone import Say
from bench.crossing import CLIENT
from bench.paced import PacedProducer
from bench.wide_area import count_both, make_topic, placed_on, sent_between_regions, wait_steady

TOPIC = "small"
RATE, RECORD_BYTES = 200, 100
LINGERS_MS = (0, 100)
WARM_S, COUNTED_S = 5.0, 20.0
PRODUCER_HOST = CLIENTS[0]
"""In the region of the leader."""


def measure(work: Path, say: Say) -> None:
    """Both systems, each on a network of its own; a line for each linger."""
    count_both(work, partial(_count, say), CALM)


def _count(say: Say, network: Network, system: str, bootstrap: str) -> None:
    with placed_on(network, PRODUCER_HOST):
        admin = AdminClient({**CLIENT, "bootstrap.servers": bootstrap})
        make_topic(admin, TOPIC, partitions=1)
        wait_steady(admin, TOPIC, partitions=1)
        _, before = sent_between_regions(network)
        time.sleep(COUNTED_S)
        _, after = sent_between_regions(network)
        idle = (after - before) / COUNTED_S
        for linger_ms in LINGERS_MS:
            producer = PacedProducer(
                bootstrap, TOPIC, partitions=1, linger_ms=linger_ms, is_idempotent=True
            )
            try:
                producer.run(rate=RATE, seconds=WARM_S, record_bytes=RECORD_BYTES)
                _, before = sent_between_regions(network)
                delivered = len(producer.deliveries.latencies_ms)
                producer.run(rate=RATE, seconds=COUNTED_S, record_bytes=RECORD_BYTES)
                _, after = sent_between_regions(network)
                delivered = len(producer.deliveries.latencies_ms) - delivered
            finally:
                producer.close()
            say(
                system=system,
                linger_ms=linger_ms,
                per_byte=round((after - before) / (delivered * RECORD_BYTES), 2),
                idle_bytes_per_s=round(idle),
                p50_ms=producer.deliveries.percentile_ms(50),
                p99_ms=producer.deliveries.percentile_ms(99),
            )
