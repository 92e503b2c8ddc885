"""What five idle brokers send between regions. Kafka in the same run.

Why:    packets for nothing cost the same as packets for something, and with many brokers they are
        most of what crosses.
How:    `python -m bench.run idle` (root): five brokers, 2 + 2 + 1, round trips of 30, 80 and 90 ms
        (`bench.wide_area`), a topic of one partition with a replica on each. Nothing is produced or
        consumed. The figures are the IP packets and bytes that cross between regions in a second,
        both ways.
Source: docs/decisions/0073-one-exchange-of-heartbeats.md."""

import time
from functools import partial
from pathlib import Path

from chaos.hosts import CALM
from chaos.network import Network
from confluent_kafka.admin import AdminClient

from bench.alone import Say
from bench.crossing import CLIENT
from bench.wide_area import count_both, make_topic, placed_on, sent_between_regions, wait_steady

TOPIC = "idle"
CALM_S, COUNTED_S = 15.0, 30.0


def measure(work: Path, say: Say) -> None:
    """Both systems, each on a network of its own; a line for each."""
    count_both(work, partial(_count, say), CALM)


def _count(say: Say, network: Network, system: str, bootstrap: str) -> None:
    with placed_on(network):
        admin = AdminClient({**CLIENT, "bootstrap.servers": bootstrap})
        make_topic(admin, TOPIC, partitions=1)
        wait_steady(admin, TOPIC, partitions=1)
    del admin  # It asks for metadata now and then.
    time.sleep(CALM_S)
    before = sent_between_regions(network)
    time.sleep(COUNTED_S)
    after = sent_between_regions(network)
    packets, size = (
        round((last - first) / COUNTED_S, 1) for first, last in zip(before, after, strict=True)
    )
    say(system=system, packets_per_s=packets, bytes_per_s=size)
