"""Many partitions whose voters are lost at once: how long acks=all waits for observers.

Why:    each partition changes its own voters; a thousand of them must not wait in sequence.
How:    `python -m bench.stand_ins --partitions 1000`: five brokers in three regions, one topic with
        three voters, an observer and min.insync.replicas=3. The only broker of its region, a voter
        of each partition, is killed; then a record is produced to each with acks=all. The
        figure is the time of the last one, with detection (2 s and more) and librdkafka's own
        retries.
        With `--brokers 2` the partitions have two voters in each of two regions, and their observer
        in the third. One of the two regions is killed: no majority is left, so the controller has
        to fence the remaining voters of each partition and appoint one of them.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.alone import Say, run_alone
from bench.clusters import Cluster
from bench.partitions import REGIONS, SETTLE_S, cpu_of, spent_since

TOPIC = "stand-ins"
TIMEOUT_S = 300
CONFIG = {"voters.shrink.enable": "true", "min.insync.replicas": "3"}


@dataclass(frozen=True, slots=True)
class _Loss:
    """`victims`: the brokers of a region, in a cluster of `REGIONS`. `voters`: {region: count}."""

    victims: tuple[int, ...]
    voters: Mapping[str, int]
    observer: str

    @property
    def policy(self) -> str:
        """For `confluent.placement.constraints`."""
        rules = [{"count": n, "constraints": {"rack": one}} for one, n in self.voters.items()]
        observers = [{"count": 1, "constraints": {"rack": self.observer}}]
        promotion = {"observerPromotionPolicy": "under-min-isr"}
        return json.dumps({"version": 2, "replicas": rules, "observers": observers, **promotion})


LOSSES = {
    1: _Loss(victims=(5,), voters={"east": 1, "west": 1, "south": 1}, observer="east"),
    2: _Loss(victims=(3, 4), voters={"east": 2, "west": 2}, observer="south"),
}
"""By how many brokers are killed."""


def measure(cluster: Cluster, say: Say, *, partitions: int, brokers: int) -> None:
    """Create, write to all, kill, write to all again; one line."""
    loss = LOSSES[brokers]
    config = {**CONFIG, "confluent.placement.constraints": loss.policy}
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    made = admin.create_topics([NewTopic(TOPIC, partitions, -1, config=config)])
    made[TOPIC].result(TIMEOUT_S)
    options = {"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0}
    producer = Producer({**options, "message.timeout.ms": TIMEOUT_S * 1_000})
    _write_to_all(producer, partitions)
    time.sleep(SETTLE_S)
    survivors = {one: pid for one, pid in cluster.pids.items() if one not in loss.victims}
    alive = Cluster(cluster.name, cluster.bootstrap, survivors, cluster.directory)
    before = cpu_of(alive)
    for victim in loss.victims:
        cluster.kill(victim)
    acknowledged_s = _write_to_all(producer, partitions)
    spent = spent_since(alive, before)
    say(
        partitions=partitions,
        brokers_killed=brokers,
        acknowledged=len(acknowledged_s),
        p50_s=round(acknowledged_s[len(acknowledged_s) // 2], 2) if acknowledged_s else None,
        last_s=round(acknowledged_s[-1], 2) if acknowledged_s else None,
        broker_cpu_s=spent,
    )


def _write_to_all(producer: Producer, partitions: int) -> list[float]:
    """A record to each partition; after how many seconds each was acknowledged, in order."""
    begin = time.monotonic()
    found: list[float] = []

    def on_delivery(error: KafkaError | None, _: Message) -> None:
        if error is None:
            found.append(time.monotonic() - begin)

    for partition in range(partitions):
        producer.produce(TOPIC, b"x" * 100, partition=partition, on_delivery=on_delivery)
    producer.flush(TIMEOUT_S)
    return found


def main() -> None:
    """One run with the given number of partitions."""
    run_alone(measure, description=__doc__, regions=REGIONS, partitions=1_000, brokers=1)


if __name__ == "__main__":
    main()
