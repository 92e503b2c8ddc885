"""CPU of one small acks=all request, over all three brokers; Kafka in the same run.

Why:    small requests cost what a broker does for each of them, whatever they carry.
How:    three brokers on loopback, six partitions of three replicas, batches of one record of 100 B.
        Raw sockets send them (`bench.load`): five requests in flight on each of six connections, as
        librdkafka's and Java's idempotent producers pipeline; then one on each, as a client that
        waits for each answer. Then librdkafka itself, with one record in each request. The CPU is
        that of the brokers' processes, by /proc. The first round of each warms the brokers up; the
        figure is the median of the others.
"""

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from confluent_kafka import Producer

from bench.clusters import Cluster, has_kafka, kafka, strandline
from bench.load import cpu_seconds
from bench.paced import create_topic

TOPIC = "small"
PARTITIONS = 6
BATCH_BYTES, RECORD_BYTES = 200, 100
ROUNDS = 3
CLIENT_S = 6
QUEUED_MAX = 100
FLUSH_S = 30
Load = Callable[..., dict[str, object]]
Say = Callable[..., None]


def run(work: Path, load: Load, say: Say) -> None:
    """Both products. `load`: runs bench.load against a cluster."""
    with strandline(work / "strandline", regions="east=1,west=1,south=1") as cluster:
        measure(cluster, load, say)
    if has_kafka():
        with kafka(work / "kafka", brokers=3) as cluster:
            measure(cluster, load, say)


def measure(cluster: Cluster, load: Load, say: Say) -> None:
    """All clients on one cluster."""
    create_topic(cluster.bootstrap, TOPIC, partitions=PARTITIONS, replicas=3)
    for client, in_flight in (("pipelining", 5), ("one request at a time", 1)):
        found = [
            load(
                cluster, TOPIC, batch_bytes=BATCH_BYTES, record_bytes=RECORD_BYTES, acks=-1,
                connections=PARTITIONS, in_flight=in_flight,
            )
            for _ in range(ROUNDS + 1)
        ][1:]  # fmt: skip
        assert not any(one["errors"] for one in found), found
        say(
            system=cluster.name,
            client=client,
            **{
                name: median(float(str(one[name])) for one in found)
                for name in ("requests_per_s", "broker_cores", "cpu_us_per_request")
            },
        )
    rounds = [_librdkafka(cluster) for _ in range(ROUNDS + 1)][1:]
    say(
        system=cluster.name,
        client="librdkafka",
        requests_per_s=median(rate for rate, _ in rounds),
        cpu_us_per_request=median(cpu_us for _, cpu_us in rounds),
    )


def _librdkafka(cluster: Cluster) -> tuple[float, float]:
    """Records a second, each in a request of its own, and the CPU us of each."""
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 0,
            "batch.num.messages": 1,
        }
    )
    count = 0
    pids = list(cluster.pids.values())
    before, begin = cpu_seconds(pids), time.monotonic()
    while time.monotonic() - begin < CLIENT_S:
        producer.produce(TOPIC, bytes(RECORD_BYTES), partition=count % PARTITIONS)
        count += 1
        while len(producer) >= QUEUED_MAX:
            producer.poll(0.1)
    producer.flush(FLUSH_S)
    elapsed = time.monotonic() - begin
    cpu = cpu_seconds(pids) - before
    producer.close()
    return round(count / elapsed, 1), round(cpu / count * 1e6)
