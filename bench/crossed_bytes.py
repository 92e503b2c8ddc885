"""How many bytes cross to each region for each byte that is produced. Kafka in the same run.

Why:    bytes between regions are slow and cost money: a stretched cluster needs few.
How:    `python -m bench.run crossed-bytes` (root): five brokers, 2 + 2 + 1, far apart
        (`bench.wide_area`), leaders in the east. A producer in the west writes 10 Mbit/s of 1 KiB
        records, acks=all, not compressed. The figure is the bytes that brokers of the east send to
        each other region, TCP/IP, heartbeats and retransmissions included, divided by the bytes of
        the records acknowledged meanwhile.
Source: design section 1 ("Each byte crosses to a remote region once")."""

import time
from collections import Counter
from functools import partial
from pathlib import Path

from chaos.hosts import BROKERS
from chaos.network import Network
from confluent_kafka.admin import AdminClient

from bench.alone import Say
from bench.crossing import CLIENT, RECORD_BYTES, Writer
from bench.wide_area import (
    PARTITIONS,
    count_both,
    make_topic,
    placed_on,
    wait_steady,
)

TOPIC = "crossed"
SOURCE = "east"
RATE = 1_220
CALM_S, COUNTED_S = 15.0, 60.0


def measure(work: Path, say: Say) -> None:
    """Both systems, each on a network of its own; a line for each."""
    count_both(work, partial(_count, say))


def _count(say: Say, network: Network, system: str, bootstrap: str) -> None:
    with placed_on(network):
        admin = AdminClient({**CLIENT, "bootstrap.servers": bootstrap})
        make_topic(admin, TOPIC)
        wait_steady(admin, TOPIC)
        writer = Writer(bootstrap, TOPIC, partitions=PARTITIONS, rate=RATE)
        try:
            time.sleep(CALM_S)
            before, acknowledged = crossed(network), len(writer.acknowledged)
            time.sleep(COUNTED_S)
            after = crossed(network)
            produced = (len(writer.acknowledged) - acknowledged) * RECORD_BYTES
        finally:
            writer.stop()
        say(
            system=system,
            produced_mb=round(produced / 1e6, 1),
            **{
                f"to_{region}": round((count - before[region]) / produced, 3)
                for region, count in sorted(after.items())
            },
        )


def crossed(network: Network) -> Counter[str]:
    """{region: what brokers of the source have sent to brokers there so far}."""
    regions = {one.name: one.region for one in BROKERS}
    total: Counter[str] = Counter()
    for (one, other), count in network.sent_bytes().items():
        if regions.get(one) == SOURCE and other in regions and regions[other] != SOURCE:
            total[regions[other]] += count
    return total
