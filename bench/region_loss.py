"""Cuts the region with the leaders off repeatedly: how long writes stopped, and whether an
acknowledged record is missing. Kafka in the same run.

Why:    this is what a stretched cluster is for; one drill says little, because the controller's
        leader and the requests in flight vary.
How:    `python -m bench.run region-loss` (root): five brokers, 2 + 2 + 1, each in a network
        namespace of its own; round trips, jitter and loss between them are those of the profile
        `atl` (`chaos.relay`). A producer in the west writes 10 Mbit/s of 1 KiB records to six
        partitions of five replicas, min.insync.replicas=3. Before each cut the preferred replicas
        lead, in the east, and all replicas are in sync. A partition's writes have resumed with its
        first acknowledgement after the cut; a drill's time is that of its last partition.
Source: reference/regions-rtt.md, the profiles."""

import time
from math import ceil
from pathlib import Path

from chaos.hosts import BOOTSTRAP, HOSTS, hosts_in
from chaos.network import Network
from confluent_kafka.admin import AdminClient

from bench.alone import Say
from bench.clusters import has_kafka
from bench.crossing import CLIENT, Writer, count_numbers
from bench.wide_area import (
    CLIENT_HOST,
    PARTITIONS,
    cut_off,
    kafka_far_apart,
    make_topic,
    placed_on,
    strandline_far_apart,
    wait_steady,
)

TOPIC = "crossing"
LOST_REGION = "east"
RATE = 1_220
"""Records of 1 KiB each second: 10 Mbit/s."""
CUT_S, CALM_S = 12.0, 4.0
RESUME_S_MAX = 120.0
"""A drill that takes longer counts as one of so much; the cut ends, and the next one begins."""
POLL_S = 0.05


def measure(work: Path, say: Say, *, drills: int, kafka_drills: int) -> None:
    """Both systems, each on a network of its own; a line for each drill and one for all."""
    with strandline_far_apart(work) as network:
        _drill(network, say, "strandline", count=drills)
    if has_kafka() and kafka_drills:
        with kafka_far_apart(work) as (network, bootstrap):
            _drill(network, say, "kafka", bootstrap=bootstrap, count=kafka_drills)


def _drill(
    network: Network, say: Say, system: str, *, count: int, bootstrap: str = BOOTSTRAP
) -> None:
    outside = tuple(host for host in HOSTS if host.region != LOST_REGION)
    cut = cut_off(f"region {LOST_REGION}", hosts_in(LOST_REGION), outside)
    took: list[float] = []
    with placed_on(network):
        admin = AdminClient({**CLIENT, "bootstrap.servers": bootstrap})
        make_topic(admin, TOPIC)
        writer = Writer(bootstrap, TOPIC, partitions=PARTITIONS, rate=RATE)
        try:
            for number in range(1, count + 1):
                wait_steady(admin, TOPIC)
                time.sleep(CALM_S)
                begin = time.monotonic()
                network.set_faults([cut])
                writer.look_from(time.monotonic())
                resumed = _wait_resumed(writer)
                silent = PARTITIONS - len(resumed)
                took.append(RESUME_S_MAX if silent else max(resumed.values()))
                say(
                    system=system,
                    drill=number,
                    resumed_s=round(took[-1], 2),
                    first_s=round(min(resumed.values(), default=RESUME_S_MAX), 2),
                    silent_partitions=silent,
                )
                time.sleep(max(0.0, begin + CUT_S - time.monotonic()))
                network.set_faults([])
            wait_steady(admin, TOPIC)
        finally:
            writer.stop()
        counts = count_numbers(bootstrap, TOPIC, partitions=PARTITIONS, rack=CLIENT_HOST.region)
    took.sort()
    say(
        system=system,
        drills=count,
        p50_s=round(took[len(took) // 2], 2),
        p95_s=round(took[ceil(len(took) * 0.95) - 1], 2),
        longest_s=round(took[-1], 2),
        acknowledged=len(writer.acknowledged),
        lost=sum(number not in counts for number in writer.acknowledged),
        twice=sum(times > 1 for times in counts.values()),
        refused=len(writer.refused),
    )


def _wait_resumed(writer: Writer) -> dict[int, float]:
    """{partition: seconds until it was written again}, of those that were."""
    end = time.monotonic() + RESUME_S_MAX
    while len(resumed := writer.resumed_s()) < PARTITIONS and time.monotonic() < end:
        time.sleep(POLL_S)
    return resumed
