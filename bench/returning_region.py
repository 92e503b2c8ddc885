"""Bytes that cross to a returning region for each byte that it missed. Kafka in the same run.

Why:    two brokers of a region have missed the same bytes; the link should carry them once, beside
        the current writes.
How:    `python -m bench.run returning-region` (root): five brokers, 2 + 2 + 1, far apart
        (`bench.wide_area`), leaders in the east. The brokers of the west are cut off for a minute,
        while a producer in the west keeps writing 10 Mbit/s of 1 KiB records with acks=all, not
        compressed, and does so when they are back. The figure is the bytes that other brokers send
        to the west, TCP/IP, heartbeats and retransmissions included, from the end of the cut until
        all replicas are in sync, divided by the bytes of the records acknowledged from the start of
        the cut until then. `calm`: the same for 20 s before the cut, with all replicas in sync: the
        overhead of batch and packet headers.
Source: design sections 1 and 8; decision 0022."""

import time
from pathlib import Path

from chaos.hosts import BOOTSTRAP, BROKERS
from chaos.network import Network
from confluent_kafka.admin import AdminClient

from bench.alone import Say
from bench.clusters import has_kafka
from bench.crossing import CLIENT, RECORD_BYTES, Writer
from bench.wide_area import (
    PARTITIONS,
    cut_off,
    kafka_far_apart,
    make_topic,
    placed_on,
    strandline_far_apart,
    wait_steady,
)

TOPIC = "returning"
REGION = "west"
RATE = 1_220
"""Records each second: 10 Mbit/s."""
SETTLE_S, CALM_S, CUT_S = 5.0, 20.0, 60.0
LOOKS = 6
"""Kafka's brokers that were cut off learn of it in some seconds."""
INSIDE = tuple(one for one in BROKERS if one.region == REGION)
OUTSIDE = tuple(one for one in BROKERS if one.region != REGION)
CUT = cut_off(f"brokers of {REGION}", INSIDE, OUTSIDE)


def measure(work: Path, say: Say, *, cuts: int, kafka_cuts: int) -> None:
    """Both systems, each on a network of its own; a line for each cut."""
    with strandline_far_apart(work) as network:
        _return(network, say, "strandline", BOOTSTRAP, count=cuts)
    if has_kafka() and kafka_cuts:
        with kafka_far_apart(work) as (network, bootstrap):
            _return(network, say, "kafka", bootstrap, count=kafka_cuts)


def _return(network: Network, say: Say, system: str, bootstrap: str, *, count: int) -> None:
    with placed_on(network):
        admin = AdminClient({**CLIENT, "bootstrap.servers": bootstrap})
        make_topic(admin, TOPIC)
        wait_steady(admin, TOPIC)
        writer = Writer(bootstrap, TOPIC, partitions=PARTITIONS, rate=RATE)
        try:
            for number in range(1, count + 1):
                time.sleep(SETTLE_S)
                calm = _Meter(network, writer)
                time.sleep(CALM_S)
                calm_ratio = calm.crossed_bytes() / calm.acknowledged_bytes()
                lost = _Meter(network, writer)
                network.set_faults([CUT])
                time.sleep(CUT_S)
                back, back_s = _Meter(network, writer), time.monotonic()
                network.set_faults([])
                wait_steady(admin, TOPIC, looks=LOOKS)
                took_s = time.monotonic() - back_s - LOOKS + 1
                crossed, missed = back.crossed_bytes(), lost.acknowledged_bytes()
                say(
                    system=system,
                    cut=number,
                    missed_mb=round(missed / 1e6, 1),
                    crossed_mb=round(crossed / 1e6, 1),
                    ratio=round(crossed / missed, 3),
                    calm=round(calm_ratio, 3),
                    in_sync_after_s=round(took_s, 1),
                )
        finally:
            writer.stop()


class _Meter:
    """What has crossed to the region, and what was acknowledged, since it was made."""

    def __init__(self, network: Network, writer: Writer) -> None:
        self._network, self._writer = network, writer
        self._crossed = self._acknowledged = 0
        self._crossed, self._acknowledged = self.crossed_bytes(), self.acknowledged_bytes()

    def crossed_bytes(self) -> int:
        """What brokers elsewhere have sent to those of the region."""
        inside, outside = ({one.name for one in some} for some in (INSIDE, OUTSIDE))
        sent = sum(
            count
            for (one, other), count in self._network.sent_bytes().items()
            if one in outside and other in inside
        )
        return sent - self._crossed

    def acknowledged_bytes(self) -> int:
        """Of the values of records."""
        return len(self._writer.acknowledged) * RECORD_BYTES - self._acknowledged
