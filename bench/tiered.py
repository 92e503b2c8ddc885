"""What uploads cost: beside producing, for each GB, and for partitions that have nothing to upload.

Why:    tiered storage must not be felt by producers, and thousands of idle partitions must be free.
How:    `python -m bench.run tiered`: three brokers in three regions, each with a directory for a
        bucket, so that each GB is uploaded three times.
            produce  topics with and without tiered storage, in turns: 1,000 records/s of 1 KB for
                     their latency, then as much as goes with six connections
            upload   a closed backlog, copied at once: the brokers' CPU less that of an idle while
            idle     partitions that have an object in each bucket; and as many without
Source: decision 0059."""

import time
from pathlib import Path

from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from bench.alone import Say
from bench.clusters import Cluster, strandline
from bench.load import cpu_seconds
from bench.paced import PacedProducer, create_topic

REGIONS = "east=1,west=1,south=1"
SEGMENT_BYTES = 64 << 20
BACKLOG_MB = 400
ROUNDS = 3
IDLE_S = 60
SETTLED_S = 330
"""A round of the maintenance of all logs, in which leaders append their first checkpoints."""
TIMEOUT_S = 300
STILL_S = 12
"""More than the time between two exports."""
POLL_S = 0.2
TIERED = {"remote.storage.enable": "true", "segment.bytes": str(SEGMENT_BYTES)}
PLAIN = {"segment.bytes": str(SEGMENT_BYTES)}
USUAL = ("--set", "storage.retention_check_interval_ms=300000")
"""The default: `dev start --tiered` looks at each log every 5 s."""
COPY_OFF = "remote.log.copy.disable"


def measure(work: Path, say: Say, *, partitions: int) -> None:
    """All three; a cluster for each."""
    with strandline(work / "produce", regions=REGIONS, options=("--tiered",)) as cluster:
        _produce(cluster, say)
    with strandline(work / "upload", regions=REGIONS, options=("--tiered",)) as cluster:
        _upload(cluster, say)
    for name in ("plain", "tiered"):
        with strandline(work / name, regions=REGIONS, options=("--tiered", *USUAL)) as cluster:
            _idle(cluster, say, name, partitions=partitions)


def _produce(cluster: Cluster, say: Say) -> None:
    from bench.run import load  # It imports this module.

    limits = {"retention.bytes": str(256 << 20), "local.retention.bytes": str(128 << 20)}
    for name, configs in (("off", PLAIN), ("on", {**TIERED, **limits})):
        configs = configs if name == "on" else {**configs, "retention.bytes": str(128 << 20)}
        create_topic(cluster.bootstrap, name, partitions=6, replicas=3, configs=configs)
    for round_number in range(ROUNDS):
        for name in ("off", "on"):
            paced = PacedProducer(cluster.bootstrap, name, partitions=6)
            paced.run(rate=1000, seconds=8)
            paced.close()
            result = load(cluster, name, batch_bytes=128_000, acks=-1, connections=6)
            if round_number:  # The first round warms the brokers up.
                say(
                    step="produce",
                    tiering=name,
                    p50_ms=paced.deliveries.percentile_ms(50),
                    p99_ms=paced.deliveries.percentile_ms(99),
                    failed=paced.deliveries.failed,
                    mb_per_s=result["mb_per_s"],
                    cpu_s_per_gb=result["cpu_s_per_gb"],
                )
            _wait_still(cluster)


def _upload(cluster: Cluster, say: Say) -> None:
    from bench.run import load

    configs = {**TIERED, "segment.bytes": str(SEGMENT_BYTES // 2), COPY_OFF: "true"}
    create_topic(cluster.bootstrap, "backlog", partitions=6, replicas=3, configs=configs)
    written = 0.0
    while written < BACKLOG_MB:
        result = load(cluster, "backlog", batch_bytes=128_000, acks=-1, connections=6)
        written += float(str(result["mb_per_s"])) * 6
    pids = list(cluster.pids.values())
    idle_s, before = 5.0, cpu_seconds(pids)
    time.sleep(idle_s)
    idle_cpu = (cpu_seconds(pids) - before) / idle_s
    before, begin = cpu_seconds(pids), time.monotonic()
    _set(cluster, "backlog", COPY_OFF, "false")
    _wait_still(cluster)
    elapsed = time.monotonic() - begin
    uploaded = _stored_bytes(cluster) / 1e9
    cpu = cpu_seconds(pids) - before - idle_cpu * elapsed
    say(
        step="upload",
        gb=round(uploaded, 2),
        seconds=round(elapsed, 1),
        cpu_s_per_gb=round(cpu / uploaded, 2),
    )


def _idle(cluster: Cluster, say: Say, name: str, *, partitions: int) -> None:
    pids = list(cluster.pids.values())
    configs = {"internal.segment.bytes": "3000"}
    if name == "tiered":
        configs["remote.storage.enable"] = "true"
    create_topic(cluster.bootstrap, name, partitions=partitions, replicas=3, configs=configs)
    time.sleep(partitions / 100)  # Until the client knows all leaders.
    paced = PacedProducer(cluster.bootstrap, name, partitions=partitions)
    paced.run(rate=300, seconds=2 * partitions / 300, record_bytes=2_000)  # Closes one segment.
    paced.close()
    _wait_still(cluster)
    time.sleep(SETTLED_S)
    _wait_still(cluster)
    before, begin = cpu_seconds(pids), time.monotonic()
    time.sleep(IDLE_S)
    spent = (cpu_seconds(pids) - before) / (time.monotonic() - begin)
    say(
        step="idle",
        topic=name,
        partitions=partitions,
        objects=_object_count(cluster),
        core_percent_of_a_broker=round(100 * spent / len(pids), 2),
    )


def _set(cluster: Cluster, topic: str, name: str, value: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(TIMEOUT_S)


def _objects(cluster: Cluster) -> list[Path]:
    return list((cluster.directory / "buckets").rglob("*.segment"))


def _object_count(cluster: Cluster) -> int:
    return len(_objects(cluster))


def _stored_bytes(cluster: Cluster) -> int:
    return sum(one.stat().st_size for one in _objects(cluster))


def _wait_still(cluster: Cluster) -> None:
    """Wait until no object has come for some seconds, exports included; a bound, not a figure."""
    deadline = time.monotonic() + TIMEOUT_S
    last, since = -1, time.monotonic()
    while time.monotonic() < deadline and time.monotonic() - since < STILL_S:
        count = sum(1 for _ in (cluster.directory / "buckets").rglob("*"))
        if count != last:
            last, since = count, time.monotonic()
        time.sleep(POLL_S)
