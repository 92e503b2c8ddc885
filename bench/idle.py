"""What five idle brokers send between regions. Kafka in the same run.

Why:    packets for nothing cost the same as packets for something, and with many brokers they are
        most of what crosses.
How:    `python -m bench.run idle` (root): five brokers, 2 + 2 + 1, round trips of 30, 80 and 90 ms
        (`bench.wide_area`), a topic of one partition with a replica on each. Nothing is produced or
        consumed. The figures are the IP packets and bytes that cross between regions in a second,
        both ways.
Source: docs/decisions/0073-one-exchange-of-heartbeats.md."""

import time
from pathlib import Path

from chaos.hosts import BOOTSTRAP, BROKERS, CALM
from chaos.network import Network
from confluent_kafka.admin import AdminClient

from bench.alone import Say
from bench.clusters import has_kafka
from bench.crossing import CLIENT
from bench.wide_area import (
    kafka_far_apart,
    make_topic,
    placed_on,
    strandline_far_apart,
    wait_steady,
)

TOPIC = "idle"
CALM_S, COUNTED_S = 15.0, 30.0


def measure(work: Path, say: Say) -> None:
    """Both systems, each on a network of its own; a line for each."""
    with strandline_far_apart(work, CALM) as network:
        _count(network, say, "strandline", BOOTSTRAP)
    if has_kafka():
        with kafka_far_apart(work, CALM) as (network, bootstrap):
            _count(network, say, "kafka", bootstrap)


def _count(network: Network, say: Say, system: str, bootstrap: str) -> None:
    with placed_on(network):
        admin = AdminClient({**CLIENT, "bootstrap.servers": bootstrap})
        make_topic(admin, TOPIC, partitions=1)
        wait_steady(admin, TOPIC, partitions=1)
    del admin  # It asks for metadata now and then.
    time.sleep(CALM_S)
    before = crossed(network)
    time.sleep(COUNTED_S)
    after = crossed(network)
    packets, size = (
        round((last - first) / COUNTED_S, 1) for first, last in zip(before, after, strict=True)
    )
    say(system=system, packets_per_s=packets, bytes_per_s=size)


def crossed(network: Network) -> tuple[int, int]:
    """Packets and bytes that brokers have sent to brokers of other regions so far."""
    regions = {one.name: one.region for one in BROKERS}
    counts = [
        count
        for (one, other), count in network.sent().items()
        if one in regions and other in regions and regions[one] != regions[other]
    ]
    return sum(one.packets for one in counts), sum(one.size_bytes for one in counts)
