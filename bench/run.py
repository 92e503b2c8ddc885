"""`make bench`: the figures of bench/README.md, one scenario after the other.

    python -m bench.run [SCENARIO...]      one-broker, three-replicas, mixed-acks, round-trip,
                                           quorum, failover, start, memory, recovery, partitions,
                                           restart, controller-log, placement, region-loss,
                                           promotion, returning-region, crossed-bytes,
                                           small-records, stand-ins, spark, lake, stream, plan,
                                           audit, cold, tiered, restore, tls, access, quotas,
                                           idle-tls, scram-flood, cores, idle, small-requests

Each scenario starts a cluster of its own below a temporary directory and prints one JSON line for
each figure. Absolute figures vary with the machine and its other load; MB per CPU second varies
less.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from confluent_kafka.admin import AdminClient

import bench.access
import bench.audit
import bench.cold
import bench.controller_log
import bench.cores
import bench.crossed_bytes
import bench.idle
import bench.lake
import bench.logins
import bench.partitions
import bench.placement
import bench.plan
import bench.promotion
import bench.quotas
import bench.region_loss
import bench.restart
import bench.restore
import bench.returning_region
import bench.small_records
import bench.small_requests
import bench.spark
import bench.spark_bucket
import bench.stand_ins
import bench.stream
import bench.tiered
import bench.tls
from bench.clusters import Cluster, has_kafka, kafka, memory_mb, strandline
from bench.load import leaders_of
from bench.mixed_acks import mixed_acks_latencies
from bench.paced import PacedProducer, create_topic

LOAD_S = 6
TIMEOUT_S = 30
RECOVERY_MB = 400
RECOVERY_AWAY_S = 3
"""Until the partitions that the killed broker led have another leader."""


def say(scenario: str, **figures: object) -> None:
    """One line of results."""
    print(json.dumps({"scenario": scenario, **figures}), flush=True)


def load(cluster: Cluster, topic: str, **options: object) -> dict[str, object]:
    """Run load.py against the cluster, counting its brokers' CPU."""
    arguments = ["--bootstrap", cluster.bootstrap, "--topic", topic, "--seconds", str(LOAD_S)]
    for name, value in options.items():
        arguments += [f"--{name.replace('_', '-')}", str(value)]
    for pid in cluster.pids.values():
        arguments += ["--pid", str(pid)]
    done = subprocess.run(
        [sys.executable, "-m", "bench.load", *arguments], check=True, capture_output=True, text=True
    )
    result: dict[str, object] = json.loads(done.stdout)
    return result


def floor(work: Path) -> None:
    """What this machine asks for copying 1 GB into preallocated files, and for nothing else: no
    broker can take less. Files of 64 MB, each removed before the next one, after a first round."""
    data = os.urandom(1_000_000)
    work.mkdir(parents=True, exist_ok=True)
    for size_mb in (512, 1_024):
        before = os.times()
        for _ in range(0, size_mb, 64):
            descriptor = os.open(work / "floor", os.O_CREAT | os.O_WRONLY)
            os.posix_fallocate(descriptor, 0, 64 * len(data))
            for position in range(0, 64 * len(data), len(data)):
                os.pwrite(descriptor, data, position)
            os.fdatasync(descriptor)
            os.close(descriptor)
            os.remove(work / "floor")
        after = os.times()
    cpu_s = after.user + after.system - before.user - before.system
    say("floor", cpu_s_per_gb=round(cpu_s / 1.024, 2))


def one_broker(work: Path) -> None:
    """acks=1 on one broker: 16 KB and 1 MB batches; before it the machine's own floor.

    Retention keeps the log at a few hundred MB: a virtual machine gets memory from its host when it
    is first touched, which may take several CPU seconds for a GB of new page cache, and would be
    counted as the broker's. Each size has a broker of its own, with nothing left to be written
    back, and a first round that is not counted."""
    floor(work / "floor")
    configs = {"segment.bytes": str(64 << 20), "retention.bytes": str(128 << 20)}
    options = ("--set", "storage.retention_check_interval_ms=100")
    for batch_bytes in (16_384, 1_000_000):
        os.sync()
        with strandline(work / str(batch_bytes), regions="east=1", options=options) as cluster:
            create_topic(cluster.bootstrap, "one", partitions=1, replicas=1, configs=configs)
            for _ in range(2):
                result = load(cluster, "one", batch_bytes=batch_bytes, record_bytes=1000, acks=1)
            say("one-broker", **result)


def three_replicas(work: Path) -> None:
    """acks=all on three replicas: latency at 1,000 records/s, then throughput; Kafka in the same
    run."""
    with strandline(work / "strandline", regions="east=1,west=1,south=1") as cluster:
        _measure_replicated(cluster)
    if has_kafka():
        with kafka(work / "kafka", brokers=3) as cluster:
            _measure_replicated(cluster)


def _measure_replicated(cluster: Cluster) -> None:
    for partitions in (1, 6):
        topic = f"three-{partitions}"
        create_topic(cluster.bootstrap, topic, partitions=partitions, replicas=3)
        for _ in range(2):  # The first round warms the brokers up.
            paced = PacedProducer(cluster.bootstrap, topic, partitions=partitions)
            paced.run(rate=1000, seconds=8)
            paced.close()
        deliveries = paced.deliveries
        say(
            "three-replicas-latency",
            system=cluster.name,
            partitions=partitions,
            p50_ms=deliveries.percentile_ms(50),
            p99_ms=deliveries.percentile_ms(99),
            failed=deliveries.failed,
        )
    for batch_bytes in (128_000, 16_000):
        options = {"batch_bytes": batch_bytes, "acks": -1, "connections": 6}
        load(cluster, topic, **options)
        result = load(cluster, topic, **options)
        say("three-replicas-throughput", system=cluster.name, **result)


def mixed_acks(work: Path) -> None:
    """acks=all alone, beside acks=1 and beside more of acks=all on the same partition; with cached
    writes; Kafka in the same run."""
    with strandline(work / "strandline", regions="east=1,west=1,south=1") as cluster:
        for configs in (dict[str, str](), {"write.caching": "true"}):
            for figures in mixed_acks_latencies(cluster.bootstrap, configs):
                say("mixed-acks", system=cluster.name, **configs, **figures)
    if has_kafka():
        with kafka(work / "kafka", brokers=3) as cluster:
            for figures in mixed_acks_latencies(cluster.bootstrap, {}):
                say("mixed-acks", system=cluster.name, **figures)


def round_trip(work: Path) -> None:
    """One record at a time, acks=all on three replicas: the cost of each, with either flusher."""
    for flush_by in ("kernel", "thread"):
        options = ("--set", f"storage.flush_by={flush_by}")
        with strandline(work / flush_by, regions="east=1,west=1,south=1", options=options) as one:
            create_topic(one.bootstrap, "single", partitions=1, replicas=3)
            for _ in range(2):  # The first round warms the brokers up.
                result = load(one, "single", batch_bytes=1_000, connections=1, in_flight=1, acks=-1)
            say("round-trip", flush_by=flush_by, **result)


def small_requests(work: Path) -> None:
    """CPU of one small acks=all request over three brokers; Kafka in the same run."""
    bench.small_requests.run(work, load, partial(say, "small-requests"))


def quorum(work: Path) -> None:
    """acks=all over 2 + 2 + 1 replicas in regions 30, 80 and 90 ms apart: a write costs the round
    trip to the nearest quorum, wherever the leader is."""
    rtt = ("--rtt", "east-west=30,east-south=80,west-south=90")
    nearest_ms = {"east": 30, "west": 30, "south": 80}
    with strandline(work, regions="east=2,west=2,south=1", options=rtt) as cluster:
        create_topic(cluster.bootstrap, "quorum", partitions=10, replicas=5)
        regions = {1: "east", 2: "east", 3: "west", 4: "west", 5: "south"}
        paced = PacedProducer(cluster.bootstrap, "quorum", partitions=10)
        paced.run(rate=50, seconds=10)
        paced.close()
        leaders = leaders_of(cluster.bootstrap, "quorum")
        first_port = int(cluster.bootstrap.partition(",")[0].rpartition(":")[2])
        for region, nearest in nearest_ms.items():
            here = [p for p, one in leaders.items() if regions[one[1] - first_port + 1] == region]
            latencies = sorted(ms for p in here for ms in paced.deliveries.by_partition_ms[p])
            if latencies:
                p50 = round(latencies[len(latencies) // 2], 1)
                say("quorum", leader_region=region, nearest_quorum_ms=nearest, p50_ms=p50)


def failover(work: Path) -> None:
    """kill -9 of the broker that leads most: the longest silence of any partition."""
    with strandline(work, regions="east=1,west=1,south=1") as cluster:
        create_topic(cluster.bootstrap, "failover", partitions=12, replicas=3)
        producer = PacedProducer(cluster.bootstrap, "failover", partitions=12)
        producer.run(rate=240, seconds=3)
        killer = threading.Timer(2.0, lambda: cluster.kill(1))
        killer.start()
        producer.run(rate=240, seconds=8)
        producer.close()
        gaps = sorted(producer.deliveries.gap_s.values())
        say(
            "failover",
            partitions=len(gaps),
            longest_silence_s=round(gaps[-1], 2),
            median_silence_s=round(gaps[len(gaps) // 2], 2),
            failed=producer.deliveries.failed,
        )


def start(work: Path) -> None:
    """From `strandline dev start` with five brokers to the first acknowledged write."""
    begin = time.monotonic()
    with strandline(work, regions="east=2,west=2,south=1") as cluster:
        started = time.monotonic() - begin
        create_topic(cluster.bootstrap, "start", partitions=1, replicas=5)
        producer = PacedProducer(cluster.bootstrap, "start", partitions=1)
        producer.run(rate=1, seconds=1)
        producer.close()
        say("start", serving_s=round(started, 2), first_write_s=round(time.monotonic() - begin, 2))


def memory(work: Path) -> None:
    """A broker's resident memory after 1 GB went through three replicas."""
    with strandline(work, regions="east=1,west=1,south=1") as cluster:
        create_topic(cluster.bootstrap, "memory", partitions=6, replicas=3)
        written = 0.0
        while written < 1000:
            result = load(cluster, "memory", batch_bytes=128_000, acks=-1, connections=6)
            written += float(str(result["mb_per_s"])) * LOAD_S
        say("memory", gb=round(written / 1000, 2), rss_mb=[
            round(memory_mb(pid), 1) for pid in cluster.pids.values()
        ])  # fmt: skip


def recovery(work: Path) -> None:
    """acks=all beside a returning replica that catches up from the log: with the configured rate
    limit, without one, and before, without a returning replica."""
    unlimited = ("--set", f"replication.recovery_bytes_per_s={1 << 36}")
    for name, options in (("limited", ()), ("unlimited", unlimited)):
        with strandline(work / name, regions="east=1,west=1,south=1", options=options) as cluster:
            create_topic(cluster.bootstrap, "recovery", partitions=3, replicas=3)
            _paced_latency(cluster, f"{name}, nobody is behind")  # The first round warms up.
            _paced_latency(cluster, f"{name}, nobody is behind")
            cluster.kill(3)
            time.sleep(RECOVERY_AWAY_S)
            written_mb = 0.0
            while written_mb < RECOVERY_MB:
                result = load(cluster, "recovery", batch_bytes=128_000, acks=-1, connections=6)
                written_mb += float(str(result["mb_per_s"])) * LOAD_S
            begin = time.monotonic()
            cluster.start(3)
            _paced_latency(cluster, f"{name}, a replica returns")
            while not _is_in_sync(cluster, "recovery"):
                time.sleep(0.1)
            caught_up_s = round(time.monotonic() - begin, 1)
            say("recovery", limit=name, backlog_mb=round(written_mb), caught_up_s=caught_up_s)


def _paced_latency(cluster: Cluster, what: str) -> None:
    paced = PacedProducer(cluster.bootstrap, "recovery", partitions=3)
    paced.run(rate=300, seconds=6)
    paced.close()
    one = paced.deliveries
    p50_ms, p99_ms = one.percentile_ms(50), one.percentile_ms(99)
    say("recovery", what=what, p50_ms=p50_ms, p99_ms=p99_ms, failed=one.failed)


def _is_in_sync(cluster: Cluster, topic: str) -> bool:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    partitions = admin.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions
    return all(len(one.isrs) == len(one.replicas) for one in partitions.values())


def partitions(work: Path) -> None:
    """10,000 partitions on five brokers: created, idle, and a broker killed."""
    with strandline(work, regions=bench.partitions.REGIONS) as cluster:
        bench.partitions.measure(
            cluster, partial(say, "partitions"), partitions=10_000, replicas=3, idle_s=60
        )


def restart(work: Path) -> None:
    """10 GB on one broker that is killed: in 1,000 partitions, and in 100."""
    for count, megabytes in ((1_000, 10), (100, 100)):
        with strandline(work / str(count), regions="east=1") as cluster:
            bench.restart.measure(
                cluster, partial(say, "restart"), partitions=count, megabytes=megabytes
            )
        shutil.rmtree(work / str(count))


def controller_log(work: Path) -> None:
    """A million records in the controller's log of one broker."""
    with strandline(work, regions="east=1") as cluster:
        bench.controller_log.measure(cluster, partial(say, "controller-log"), count=1_000_000)


def plan(work: Path) -> None:
    """100,000 simulated losses; see the module."""
    bench.plan.measure(partial(say, "plan"))


def placement(work: Path) -> None:
    """10,000 partitions of five replicas over 200 brokers, by several policies; no cluster."""
    bench.placement.measure(partial(say, "placement"))


def promotion(work: Path) -> None:
    """Forty simulated histories of an observer that stands in; no cluster."""
    say("promotion", **bench.promotion.measure(bench.promotion.RUNS))


def region_loss(work: Path) -> None:
    """The region with the leaders cut off twenty times; five times with Kafka."""
    bench.region_loss.measure(work, partial(say, "region-loss"), drills=20, kafka_drills=5)


def returning_region(work: Path) -> None:
    """A region cut off for a minute, five times; twice with Kafka."""
    told = partial(say, "returning-region")
    bench.returning_region.measure(work, told, cuts=5, kafka_cuts=2)


def crossed_bytes(work: Path) -> None:
    """What crosses to each region for each byte produced; with Kafka, too."""
    bench.crossed_bytes.measure(work, partial(say, "crossed-bytes"))


def idle(work: Path) -> None:
    """What crosses while nothing is asked of five brokers in three regions; with Kafka, too."""
    bench.idle.measure(work, partial(say, "idle"))


def small_records(work: Path) -> None:
    """What crosses between regions for each byte of small records; with Kafka, too."""
    bench.small_records.measure(work, partial(say, "small-records"))


def stand_ins(work: Path) -> None:
    """1,000 partitions that lose a voter each, and have an observer; then two of four voters."""
    told = partial(say, "stand-ins")
    for brokers in sorted(bench.stand_ins.LOSSES):
        with strandline(work / str(brokers), regions=bench.partitions.REGIONS) as cluster:
            bench.stand_ins.measure(cluster, told, partitions=1_000, brokers=brokers)


def spark(work: Path) -> None:
    """Spark reads 5 million records of 100 B and 1 million of 1 KB by its Kafka connector and by
    `strandline`, from either system; then tiered segments, also out of their bucket."""
    bench.spark.run(work, partial(say, "spark"))
    bench.spark_bucket.run(work / "tiered", partial(say, "spark"))


def lake(work: Path) -> None:
    """2 million records of 100 B into a table, as bytes and with four fields."""
    bench.lake.run(work, partial(say, "lake"))


def stream(work: Path) -> None:
    """A Spark stream of 200,000 records/s of 100 B."""
    bench.stream.run(work, partial(say, "stream"))


def audit(work: Path) -> None:
    """1 GB of three replicas compared by digests, and a producer's latency beside that."""
    bench.audit.run(work, partial(say, "audit"))


def cold(work: Path) -> None:
    """0.5 GB of old records out of a bucket, and a producer's latency beside that."""
    bench.cold.run(work, partial(say, "cold"))


def tiered(work: Path) -> None:
    """Three brokers with a bucket each: producing with and without uploads, the cost of uploads,
    and 1,000 idle partitions."""
    bench.tiered.measure(work, partial(say, "tiered"), partitions=1_000)


def restore(work: Path) -> None:
    """1 GB of a lost cluster's records, brought back by copying objects and by producing."""
    bench.restore.run(work, partial(say, "restore"))


def tls(work: Path) -> None:
    """One broker, plain and with TLS, beside Kafka: producing, reading, handshakes, memory."""
    bench.tls.run(work, partial(say, "tls"))


def access(work: Path) -> None:
    """Two brokers in turn, one that enforces a thousand rules."""
    bench.access.run(work, partial(say, "access"))


def quotas(work: Path) -> None:
    """A greedy client beside a quiet one, without a quota and with one."""
    bench.quotas.run(work, partial(say, "quotas"))


def cores(work: Path) -> None:
    """A machine of one broker and one of two under the same load."""
    bench.cores.run(work, load, partial(say, "cores"))


def idle_tls(work: Path) -> None:
    """10,000 connections with TLS that have logged in, and as many that have not."""
    bench.logins.run_idle(work, partial(say, "idle-tls"))


def scram_flood(work: Path) -> None:
    """A producer beside 200 clients that log in again and again."""
    bench.logins.run_flood(work, partial(say, "scram-flood"))


SCENARIOS: dict[str, Callable[[Path], None]] = {
    "one-broker": one_broker,
    "three-replicas": three_replicas,
    "mixed-acks": mixed_acks,
    "round-trip": round_trip,
    "small-requests": small_requests,
    "quorum": quorum,
    "failover": failover,
    "start": start,
    "memory": memory,
    "partitions": partitions,
    "recovery": recovery,
    "restart": restart,
    "controller-log": controller_log,
    "placement": placement,
    "plan": plan,
    "promotion": promotion,
    "region-loss": region_loss,
    "returning-region": returning_region,
    "crossed-bytes": crossed_bytes,
    "small-records": small_records,
    "stand-ins": stand_ins,
    "spark": spark,
    "lake": lake,
    "stream": stream,
    "audit": audit,
    "cold": cold,
    "tiered": tiered,
    "restore": restore,
    "tls": tls,
    "access": access,
    "quotas": quotas,
    "cores": cores,
    "idle-tls": idle_tls,
    "scram-flood": scram_flood,
    "idle": idle,
}


def main() -> None:
    """Run the scenarios named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scenario", nargs="*", metavar="SCENARIO")
    wanted = parser.parse_args().scenario or list(SCENARIOS)
    unknown = [name for name in wanted if name not in SCENARIOS]
    if unknown:
        parser.error(f"no scenario {', '.join(unknown)}; there are {', '.join(SCENARIOS)}")
    for name in wanted:
        with tempfile.TemporaryDirectory(prefix="strandline-bench-") as work:
            SCENARIOS[name](Path(work) / name)


if __name__ == "__main__":
    main()
