"""Spark reads tiered segments: by its Kafka connector and by `strandline` from the broker, and by
`strandline` out of the bucket; the same records each time.

Why:    history out of a bucket should cost less than through a broker, which may read it there too.
How:    a topic whose closed segments are in a bucket and on the broker's disk alike, so that the
        connector's own way is as short as it can be. All three read up to the end of the bucket."""

import json
import time
from pathlib import Path

from bench.clusters import Cluster, strandline
from bench.paced import create_topic
from bench.spark import PARTITIONS, QUESTIONS, RECORDS, Say, compare, fill, session
from strandline.client.cluster import Client
from strandline.client.operations.tier import tier_status
from strandline.config.addresses import parse_bootstrap
from strandline.protocol.messages.describe_tier import TierBucketStatus

VALUE_BYTES = 100
TOPIC = "spark-tiered"
CONFIG = {"remote.storage.enable": "true", "segment.bytes": str(64 << 20)}
UPLOADED_S_MAX = 300


def measure(cluster: Cluster, bucket: Path, say: Say, scratch: Path) -> None:
    """Reading all columns to no sink, and counting."""
    create_topic(cluster.bootstrap, TOPIC, partitions=PARTITIONS, replicas=1, configs=CONFIG)
    count = RECORDS[VALUE_BYTES]
    fill(cluster.bootstrap, TOPIC, value_bytes=VALUE_BYTES, count=count)
    ends = uploaded_ends(cluster.bootstrap, TOPIC)
    records = sum(ends.values())
    upto = {"endingOffsets": json.dumps({TOPIC: {str(one): end for one, end in ends.items()}})}
    from_bucket = {"readFrom": "bucket", "buckets": f"east=file://{bucket}"}
    with session(scratch / "spark") as spark:
        for question in QUESTIONS:
            ways = {
                "kafka": upto,
                "broker": upto | question.ours,
                "bucket": upto | question.ours | from_bucket,
            }
            best = compare(spark, cluster, (TOPIC, ways), question, scratch)
            kafka, ours = best["kafka"], best["bucket"]
            say(
                question=f"{question.name} of tiered segments",
                system=cluster.name,
                value_bytes=VALUE_BYTES,
                records=records,
                connector_s=round(kafka.wall_s, 2),
                broker_s=round(best["broker"].wall_s, 2),
                bucket_s=round(ours.wall_s, 2),
                bucket_records_s=round(records / ours.wall_s),
                ratio=round(kafka.wall_s / ours.wall_s, 2),
                connector_cpu_s=round(kafka.cpu_s, 2),
                broker_cpu_s=round(best["broker"].cpu_s, 2),
                bucket_cpu_s=round(ours.cpu_s, 2),
                cpu_ratio=round(kafka.cpu_s / ours.cpu_s, 2),
            )


def uploaded_ends(bootstrap: str, topic: str) -> dict[int, int]:
    """{partition: up to where the bucket has it}, once it has every closed segment."""
    until = time.monotonic() + UPLOADED_S_MAX
    with Client(parse_bootstrap(bootstrap)) as client:
        while True:
            rows = tier_status(client, [topic]).partitions
            buckets: dict[int, TierBucketStatus] = {one.partition: one.buckets[0] for one in rows}
            if all(one.end_offset and not one.pending_bytes for one in buckets.values()):
                return {partition: one.end_offset for partition, one in sorted(buckets.items())}
            assert time.monotonic() < until, buckets
            time.sleep(0.5)


def run(work: Path, say: Say) -> None:
    """One broker with a directory for a bucket."""
    bucket = work / "bucket"
    bucket.mkdir(parents=True)
    tiered = ("--set", f"tiered.buckets=east=file://{bucket}")
    with strandline(work / "strandline", regions="east=1", options=tiered) as cluster:
        measure(cluster, bucket, say, work)
