"""An audit of 1 GB in three replicas: how long, how many bytes on the wire, and what a producer
beside it notices.

Why:    an audit that moves records, or that holds up producers, does not run every day.
How:    a topic of 1 KB records is filled with the same batch again and again. A producer of a fixed
        rate writes to another topic: alone, then while audits follow each other without a pause.
        Then a compacted topic, of which the brokers look at each record.
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path

from bench.clusters import strandline
from bench.load import cpu_seconds
from bench.paced import PacedProducer, create_topic
from bench.spark import PARTITIONS, fill
from strandline.pipeline.audit.job import Audit, AuditOptions
from strandline.pipeline.audit.results import AuditResult, Verdict
from strandline.pipeline.audit.runners import ThreadRunner

RECORDS, VALUE_BYTES = 1_000_000, 1_000
KEYED_RECORDS, KEYED_BYTES = 400_000, 100
ROUNDS = 3
RATE, PACED_S = 500, 15
WARM_UP_S = 2
SETTLE_S = 3
Say = Callable[..., None]


def audit(bootstrap: str, topic: str, *, from_disk: bool = False) -> AuditResult:
    """One audit, which must find every replica equal."""
    options = AuditOptions(bootstrap, (topic,), from_disk=from_disk)
    result = Audit(options, ThreadRunner()).run()
    assert result.verdict is Verdict.EQUAL, (result.findings, result.not_compared)
    return result


def latencies(bootstrap: str, seconds: float) -> dict[str, float]:
    """Of a producer of a fixed rate."""
    producer = PacedProducer(bootstrap, "paced", partitions=3)
    producer.run(rate=RATE, seconds=WARM_UP_S)
    producer.deliveries.latencies_ms.clear()
    producer.run(rate=RATE, seconds=seconds)
    producer.close()
    deliveries = producer.deliveries
    assert not deliveries.failed
    return {
        "p50_ms": deliveries.percentile_ms(50),
        "p95_ms": deliveries.percentile_ms(95),
        "p99_ms": deliveries.percentile_ms(99),
        "max_ms": deliveries.percentile_ms(100),
    }


def run(work: Path, say: Say) -> None:
    """All figures, on a cluster of three brokers."""
    with strandline(work, regions="east=1,west=1,south=1") as cluster:
        bootstrap, pids = cluster.bootstrap, list(cluster.pids.values())
        create_topic(bootstrap, "paced", partitions=3, replicas=3)
        create_topic(bootstrap, "audited", partitions=PARTITIONS, replicas=3)
        fill(bootstrap, "audited", value_bytes=VALUE_BYTES, count=RECORDS)
        time.sleep(SETTLE_S)
        for from_disk in (False, True):
            for _ in range(ROUNDS):
                before = cpu_seconds(pids)
                result = audit(bootstrap, "audited", from_disk=from_disk)
                say(
                    from_disk=from_disk,
                    records=sum(one.records for one in result.partitions),
                    digested_mb=round(result.digested_bytes / 1e6),
                    seconds=result.took_ms / 1000,
                    brokers_cpu_s=round(cpu_seconds(pids) - before, 2),
                    wire_bytes=result.wire_bytes,
                    wire_percent=round(100 * result.wire_bytes / result.digested_bytes, 5),
                )
        say(beside="nothing", **latencies(bootstrap, PACED_S))
        say(beside="audits", **_beside(bootstrap, "audited"))
        say(beside="nothing", **latencies(bootstrap, PACED_S))
        create_topic(
            bootstrap,
            "compacted",
            partitions=PARTITIONS,
            replicas=3,
            configs={"cleanup.policy": "compact"},
        )
        fill(bootstrap, "compacted", value_bytes=KEYED_BYTES, count=KEYED_RECORDS)
        time.sleep(SETTLE_S)
        result = audit(bootstrap, "compacted")
        say(kind="latest", records=KEYED_RECORDS, seconds=result.took_ms / 1000)
        say(beside="audits of a compacted topic", **_beside(bootstrap, "compacted"))


def _beside(bootstrap: str, topic: str) -> dict[str, float]:
    """Latencies while audits run, and how many there were."""
    ended = threading.Event()
    count = 0

    def go_on() -> None:
        nonlocal count
        while not ended.is_set():
            audit(bootstrap, topic)
            count += 1

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        found = latencies(bootstrap, PACED_S)
    finally:
        ended.set()
        thread.join()
    return {"audits": count, **found}
